"""One private training run from its first charge to its last file; every experiment goes through here."""
import csv
import io
import signal
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from tqdm import tqdm

from minidp.files import atomic_write
from minidp.train import Averaged, Progress, Trainer, evaluate

from .folder import steps_lost

SUBSET = 10_000  # training examples that are evaluated every epoch; all of them at the end
COLUMNS = ("epoch", "step", "test_accuracy", "test_loss", "train_accuracy_not_private", "train_loss_not_private",
           "epsilon", "delta_at_epsilon")


@dataclass
class Task:
    """What is trained, on what, and how it is accounted.

    network                     what is trained
    model                       the network with what stands fixed before it, as it is saved
    nominal_size                public number of training examples
    features, labels            training data on the device, (N, *network.input_shape) and (N,)
    test_features, test_labels  the same for testing
    filter                      privacy.Filter: accountant, target (or infinity), delta, ledger
    setup_count                 events in the ledger from before the first step
    multiplicity                views of each example in a lot, averaged before clipping
    curve_epsilon               the fixed epsilon at which delta is drawn against epochs; may be infinite
    """

    network: object
    model: object
    loss: object
    optimizer: object
    plan: object
    filter: object
    streams: object
    nominal_size: int
    features: object
    labels: object
    test_features: object
    test_labels: object
    curve_epsilon: float
    batch_size: int
    train_metrics: bool
    quiet: bool
    multiplicity: int = 1
    setup_count: int = 0

    def released(self):
        """A context in which the network holds the weights that are evaluated and saved: averages, if asked for."""
        averaged = isinstance(self.optimizer, Averaged)
        return self.optimizer.averaged_weights(self.network.params) if averaged else nullcontext()

    def measure(self, step, whole=False):
        """One row of metrics. Figures from training data are not private and are named so."""
        with self.released():
            return self._measure(step, whole)

    def _measure(self, step, whole):
        test = evaluate(self.network, self.loss, self.test_features, self.test_labels)
        accountant, ledger, delta = self.filter.accountant, self.filter.ledger, self.filter.delta
        row = {
            "epoch": step / self.steps_per_epoch,
            "step": step,
            "test_accuracy": test.accuracy,
            "test_loss": _known(test.loss),
            "epsilon": accountant.epsilon(ledger, delta).upper,
            "delta_at_epsilon": None,
        }
        if self.curve_epsilon < float("inf"):
            row["delta_at_epsilon"] = accountant.delta(ledger, self.curve_epsilon).upper
        if self.train_metrics:
            size = None if whole else SUBSET
            train = evaluate(self.network, self.loss, self.features[:size], self.labels[:size])
            row["train_accuracy_not_private"], row["train_loss_not_private"] = train.accuracy, _known(train.loss)
        return row

    @property
    def steps_per_epoch(self):
        """Expected lots in one pass over the public number of examples, never over those in memory; not rounded."""
        return self.nominal_size / self.plan.expected_lot_size


def _known(loss):
    """None for the loss of a network that diverged."""
    return None if loss is None or loss != loss else loss


def train(task, folder, start, config, began):
    """Train from `start` to the end; returns (TrainRecord, history, (seconds in all, seconds in steps)).

    began is the time.perf_counter() at which this process began with the run.

    The ledger is on disk before each block of one epoch, a checkpoint after it. Ctrl-C stops after the current
    step with a checkpoint; the record then says "interrupted".
    """
    seconds_before, step_seconds = start.seconds
    plan, progress, history = task.plan, start.progress, list(start.history)
    setup_count = start.setup_count
    if start.begun:
        folder.restore(start, task.model, task.optimizer, task.streams)
        lost = steps_lost(start, plan)
        if not task.streams.reproducible:
            plan = plan.with_steps(max(plan.steps - lost, progress.step))
    else:
        setup_count = sum(count for _, count in task.filter.ledger.items())
    task.setup_count = setup_count
    trainer = Trainer(task.network, task.loss, task.optimizer, plan, task.filter, batch_size=task.batch_size,
                      augmentation_multiplicity=task.multiplicity)

    def spent():
        return seconds_before + time.perf_counter() - began, step_seconds + trainer.seconds

    def checkpoint(at):
        folder.checkpoint(config, task.model, task.optimizer, task.filter.ledger, at, task.streams, history,
                          setup_count, spent())

    with _bar(task, plan, progress) as bar, stop_on_interrupt() as stop:
        if not task.streams.reproducible and progress.charged > progress.step:
            # Taken over now; a crash before the next checkpoint must not let them be used twice.
            checkpoint(Progress(progress.step, progress.step))
        elif not start.begun:
            checkpoint(progress)

        def on_block(at):
            if at.step == at.charged:
                history.append(task.measure(at.step))
                shown = history[-1]
                bar.set_postfix_str(f"epoch {shown['epoch']:.4g}, test accuracy {shown['test_accuracy']:.2%}, "
                                    f"epsilon {shown['epsilon']:.3f}")
            bar.update(at.step - bar.n)
            checkpoint(at)

        record = trainer.run(task.features, task.labels, task.streams, progress=progress,
                             block_steps=max(1, round(task.steps_per_epoch)), on_charge=folder.charge,
                             on_block=on_block, should_stop=stop)
    return record, history, spent()


def _bar(task, plan, progress):
    return tqdm(total=plan.steps, initial=progress.step, unit="lot", disable=True if task.quiet else None,
                file=sys.stderr, dynamic_ncols=True)


@contextmanager
def stop_on_interrupt():
    """Yields a function that turns true at the first Ctrl-C or SIGTERM; a second Ctrl-C interrupts at once."""
    asked = []

    def ask(number, frame):
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_metrics(path, history):
    """The history as CSV; an empty cell is a figure that was not measured."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    with atomic_write(path) as file:
        file.write(text.getvalue())
