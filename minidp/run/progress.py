"""What a run shows while it trains (rows of metrics, a progress bar), and how Ctrl-C stops it."""

import csv
import math
import signal
import sys
import time
from contextlib import contextmanager

from ..errors import DivergedError
from ..train import evaluate
from ..util.atomic import atomic_write
from ..util.files import jsonable
from ..util.notices import Steady
from ..util.text import upper_text
from .folder import LEDGER

SUBSET = 10_000  # training examples that every epoch evaluates; the end of the run takes all
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


def measure(run, step, whole=False):
    """One row of metrics at this step, for the weights that would be released now. whole: measure
    on all training data, not on the first SUBSET examples.
    """
    row, accountant = dict.fromkeys(COLUMNS), run.budget.accountant
    row.update(
        epoch=step / run.steps_per_epoch,
        step=step,
        epsilon=accountant.epsilon(run.ledger, run.budget.delta).upper,
    )
    if math.isfinite(run.curve_epsilon):
        row["delta_at_epsilon"] = accountant.delta(run.ledger, run.curve_epsilon).upper
    if run.tested is not None:
        row["test_accuracy"], row["test_loss"], row["test_r2"] = _evaluated(run, *run.tested)
    if run.privacy.train_metrics:
        seen = (part[: None if whole else SUBSET] for part in run.examples)
        for figure, value in zip(("accuracy", "loss", "r2"), _evaluated(run, *seen)):
            row[f"train_{figure}_not_private"] = value
    return row


def _evaluated(run, x, y):
    """(accuracy, loss, R2). The loss is None if the network diverged; accuracy or R2 is None if the
    task has none.
    """
    limit = None if run.model.target_bounds is None else 1.0
    found = evaluate(run.network, run.loss, x, y, limit=limit)
    return (
        found.accuracy,
        *(
            None if value is None or math.isnan(value) else value
            for value in (found.loss, found.r2)
        ),
    )


class Course:
    """A run under way: a row of metrics, the bar and a checkpoint after each block of steps.

    model    the network with what stands fixed before it
    history  rows so far; before: the seconds of earlier attempts, in all and in steps
    """

    def __init__(self, run, model, trainer, history, before, bar):
        self.run, self.model, self.trainer = run, model, trainer
        self.history, self.before, self.bar = history, before, bar
        self.identity = run.folder.identity(run.unvouched)

    def seconds(self):
        """(seconds in all, seconds in steps)."""
        in_all, in_steps = self.before
        elapsed = time.perf_counter() - self.run.folder.began
        return in_all + elapsed, in_steps + self.trainer.seconds

    def save(self, at):
        """Write the checkpoint of this Progress. Raises DivergedError where there is none."""
        run = self.run
        extra = {
            "seconds": list(self.seconds()),
            "examples": self.identity,
            "row_bits": run.row_bits,
        }
        try:
            run.folder.checkpoint(
                self.model,
                run.optimizer,
                run.ledger,
                at,
                jsonable(self.history),
                extra,
                run.releases,
            )
        except DivergedError as error:
            raise run.diverged(at.step) from error

    def on_block(self, at):
        """Measure and save after a block, which ended with this Progress."""
        if at.step == at.charged:
            with self.run.released():
                self.history.append(measure(self.run, at.step))
            self.bar.set_postfix_str(shown(self.history[-1]))
        self.bar.update(at.step - self.bar.n)
        self.save(at)


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


def still_charged(run, error):
    """The error to raise for one that ended a run: with what stays charged, and how to resume."""
    if run.ledger is None or not run.ledger.items() or isinstance(error, DivergedError):
        return error
    charged = f"what {LEDGER} holds stays charged, and the same lines resume the run"
    if not isinstance(error, OSError) or error.strerror is None:
        error.add_note(f"{run.folder.path}: {charged}")
        return error
    why = f"{error.strerror}; {charged} once its files can be written"
    told = OSError(error.errno, why, error.filename or str(run.folder.path))
    told.__suppress_context__ = True
    return told


def shown(row):
    """The text at the end of the bar. Epsilon comes first, so that a narrow terminal shows it."""
    found = "" if row["test_accuracy"] is None else f", test {row['test_accuracy']:.2%}"
    found = found if row.get("test_r2") is None else f", test R2 {row['test_r2']:.3f}"
    return f"epsilon {upper_text(row['epsilon'])}{found}"


@contextmanager
def stop_on_interrupt():
    """Yields a function that turns true at the first Ctrl-C or SIGTERM; a second Ctrl-C interrupts
    at once.
    """
    asked = []

    def ask(number, frame):
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # only the main thread hears signals
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_metrics(path, history):
    """The history as CSV; an empty cell is a figure that was not measured."""
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
