"""Output of a run while it trains (rows of metrics, a progress bar), and its stop by Ctrl-C."""

import csv
import math
import signal
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from ..errors import DivergedError
from ..mechanism import Plan
from ..privacy.accountants import called
from ..privacy.ledger import STEP
from ..train import Averaged, evaluate
from ..util.atomic import atomic_write
from ..util.files import jsonable
from ..util.notices import Steady
from ..util.text import upper_text
from .asked import Training
from .folder import LEDGER
from .phases import Asked, Opened, Rows

SUBSET = 10_000  # training examples that are evaluated each epoch; the end of the run evaluates all
COLUMNS = (
    "epoch",
    "step",
    "test_accuracy",
    "test_loss",
    "train_accuracy_not_private",
    "train_loss_not_private",
    "epsilon",
    "delta_at_epsilon",
    "test_r2",
    "train_r2_not_private",
)
# epsilon fits 80 columns
BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} lots [{elapsed}<{remaining}{postfix}]"


@dataclass(frozen=True)
class Meter:
    """Measures a run under way.

    curve_epsilon  of the column delta_at_epsilon
    """

    asked: Asked
    opened: Opened
    rows: Rows
    curve_epsilon: float

    def row(self, step, whole=False):
        """One row of metrics at this step, for the weights that would be released now. whole:
        measure on all training data, not on the first SUBSET examples.
        """
        row = dict.fromkeys(COLUMNS)
        row.update(epoch=step / self.asked.steps_per_epoch, step=step, epsilon=self.opened.spent)
        if math.isfinite(self.curve_epsilon):
            accountant = self.opened.budget.accountant
            delta = accountant.delta(self.opened.ledger, self.curve_epsilon).upper
            row["delta_at_epsilon"] = delta
        if self.rows.tested is not None:
            found = self._evaluated(*self.rows.tested)
            row["test_accuracy"], row["test_loss"], row["test_r2"] = found
        if self.asked.privacy.train_metrics:
            seen = (part[: None if whole else SUBSET] for part in (self.rows.x, self.rows.y))
            for figure, value in zip(("accuracy", "loss", "r2"), self._evaluated(*seen)):
                row[f"train_{figure}_not_private"] = value
        return row

    def _evaluated(self, x, y):
        """(accuracy, loss, R2). The loss is None if the network diverged; accuracy or R2 is None if
        the task has none.
        """
        training, bounds = self.asked.training, self.rows.model.target_bounds
        limit = None if bounds is None else 1.0
        found = evaluate(training.network, training.loss, x, y, limit=limit)
        return (
            found.accuracy,
            *(
                None if value is None or math.isnan(value) else value
                for value in (found.loss, found.r2)
            ),
        )


class Course:
    """A run under way: a row of metrics, the bar and a checkpoint after each block of steps.

    releases  {name: array} of what was released before the first step
    kept      what else a checkpoint holds
    history   rows so far; before: the seconds of earlier attempts, in all and in steps
    """

    def __init__(self, meter, folder, trainer, releases, kept, history, before, bar):
        self.meter, self.folder, self.trainer = meter, folder, trainer
        self.releases, self.kept = releases, kept
        self.history, self.before, self.bar = history, before, bar

    def seconds(self):
        """(seconds in all, seconds in steps)."""
        in_all, in_steps = self.before
        elapsed = time.perf_counter() - self.folder.began
        return in_all + elapsed, in_steps + self.trainer.seconds

    def save(self, at):
        """Write the checkpoint of this Progress. Raises DivergedError if weights are not finite."""
        opened, training = self.meter.opened, self.meter.asked.training
        try:
            self.folder.checkpoint(
                self.meter.rows.model.network,
                training.optimizer,
                opened.ledger,
                at,
                jsonable(self.history),
                {"seconds": list(self.seconds()), **self.kept},
                self.releases,
            )
        except DivergedError as error:
            raise diverged(self.meter.asked.plan, opened, at.step) from error

    def on_block(self, at):
        """After a block of steps: measure, update the bar, and write a checkpoint."""
        if at.step == at.charged:
            with released(self.meter.asked.training):
                self.history.append(self.meter.row(at.step))
            self.bar.set_postfix_str(shown(self.history[-1]))
        self.bar.update(at.step - self.bar.n)
        self.save(at)


def released(training: Training):
    """A context in which the network holds the weights that are evaluated and saved: averages, if
    asked for.
    """
    if isinstance(training.optimizer, Averaged):
        return training.optimizer.averaged_weights(training.network.params)
    return nullcontext()


def diverged(plan: Plan, opened: Opened, step: int) -> DivergedError:
    """The error for a run whose weights overflowed: it says that there is no model, and what was
    spent.
    """
    budget, charged = opened.budget, opened.ledger.count_of(STEP) * plan.sampler.period
    return DivergedError(
        f"no model: after {step} lots the weights, or outputs that they give, are too large for "
        f"their dtype; {charged} lots stay charged in {LEDGER}, epsilon "
        f"{upper_text(opened.spent)} at delta {budget.delta:g} by "
        f"{called(budget.accountant.name)}; begin again in another folder with a smaller learning "
        "rate or clip norm"
    )


def make_bar(total, done, quiet):
    """A progress bar on stderr, if that is a terminal or a notebook. It never raises."""
    from tqdm import tqdm

    notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return tqdm(
        total=total,
        initial=done,
        bar_format=BAR,
        file=Steady(sys.stderr),
        disable=True if quiet else False if notebook else None,  # None: unless at a terminal
        dynamic_ncols=True,
    )


def still_charged(folder, ledger, error):
    """Add to an error that ended a run which charges remain and how to resume; returns the error to
    raise. ledger: None where the folder was not opened.
    """
    if ledger is None or not ledger.items() or isinstance(error, DivergedError):
        return error
    charged = f"what {LEDGER} holds stays charged, and the same lines resume the run"
    if not isinstance(error, OSError) or error.strerror is None:
        error.add_note(f"{folder.path}: {charged}")
        return error
    why = f"{error.strerror}; {charged} once its files can be written"
    told = OSError(error.errno, why, error.filename or str(folder.path))
    told.__suppress_context__ = True
    return told


def shown(row):
    """The text at the end of the bar. Epsilon comes first, so that a narrow terminal shows it."""
    found = "" if row["test_accuracy"] is None else f", test {row['test_accuracy']:.2%}"
    found = found if row.get("test_r2") is None else f", test R2 {row['test_r2']:.3f}"
    return f"epsilon {upper_text(row['epsilon'])}{found}"


@contextmanager
def stop_on_interrupt():
    """Yield a function that returns True after the first Ctrl-C or SIGTERM; a second Ctrl-C
    interrupts at once.
    """
    asked = []

    def ask(number, frame):
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # only the main thread gets signals
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_metrics(path, history):
    """Write the history as CSV; an empty cell is a figure that was not measured."""
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


def read_metrics(path):
    """The rows that `write_metrics` wrote; None for a figure that was not measured."""
    with open(path, encoding="utf-8", newline="") as file:
        return [{name: _number(row[name]) for name in row} for row in csv.DictReader(file)]


def _number(text):
    if not text:
        return None
    return int(text) if text.isdigit() else float(text)
