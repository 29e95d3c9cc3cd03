"""A private training run on disk: everything that is released is charged first, and the charge is
in the folder.
"""

import math
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from ..backend import namespace_of, to_host
from ..data.arrays import as_rows, refuse_bad_rows, try_rows
from ..errors import CheckpointError, ParameterError
from ..examples import check_weights
from ..mechanism.samplers import sampler_from
from ..mechanism.schedule import value_at
from ..privacy import Filter, Ledger
from ..privacy.accountants import make
from ..privacy.ledger import SETUP
from ..ranks import current
from ..streams import as_streams
from ..train import Progress, Trainer
from ..units import units_of
from ..util.atomic import atomic_write
from ..util.notices import say
from ..util.validate import count
from . import checkpoint, row_bits, versions
from .asked import About, Privacy, Training
from .curves import draw_course
from .figures import facts_of, finished, first_events, release_of
from .fits import check_steps
from .folder import CHECKPOINT, CURVES, METRICS, MODEL, STATEMENT, RunFolder
from .model import as_model
from .model_file import describe, write_model
from .phases import Asked, Ended, Opened, Rows
from .program import program
from .progress import (
    Course,
    Meter,
    diverged,
    make_bar,
    released,
    still_charged,
    stop_on_interrupt,
    write_metrics,
)
from .record import MODEL_FACTS, Record, Release, RowBits
from .resumed import as_begun, as_charged, check_target, resuming, start_of
from .statement import render
from .summary import summary


class Run:
    """A Trainer whose ledger, checkpoint, metrics, result and privacy statement are files of one
    folder.

    >>> import tempfile
    >>> from minidp import mechanism, nn, privacy, streams, train
    >>> streams = streams.Streams(seed=1)
    >>> x, y = np.eye(200, 4, dtype=np.float32), np.arange(200) % 2
    >>> network = nn.Sequential([nn.Dense(4, 2, rng=streams.init)], (4,))
    >>> groups = mechanism.flat_group(network.params, clip_norm=1.0, noise_multiplier=2.0)
    >>> plan = mechanism.Plan(mechanism.PoissonSampler(0.1), mechanism.Sanitizer(groups),
    ...                       steps=20, expected_lot_size=20)
    >>> budget = privacy.Filter(privacy.MomentsAccountant(), epsilon=2.0, delta=1e-5)
    >>> training = Training(network, nn.SoftmaxCrossEntropy(), train.SGD(0.5), streams)
    >>> run = Run(tempfile.mkdtemp(), training, Privacy(plan, budget), About(quiet=True))
    >>> run.train(x, y, x, y)["steps"]
    20

    Before `train`, `run.release_first` may release more from the data, any number of times. The
    same lines again, with the same folder, resume a run that was interrupted or killed, and return
    the result of a finished one. `python -m minidp verify runs/mine` checks the folder. Without a
    seed, lots that a crash took stay charged, and the run gets that many fewer. With a seed, the
    run repeats them exactly.

    folder    its path, or a `RunFolder`

    Raises
        BudgetExceededError   the budget does not pay for all planned steps (see `stop_early` of
                              `Privacy`); nothing was charged
        ParameterError        the folder is in use, or may not hold this run
        DivergedError         weights, or outputs on public rows, overflowed in `train`; the ledger
                              holds what was charged
        CheckpointError       the folder's run had other settings, or its files do not belong
                              together (from `open`, `release_first` or `train`)
    """

    def __init__(self, folder, training: Training, privacy: Privacy, about: About = About()):
        self.folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)
        self.training, self.privacy, self.about = training, privacy, about
        self.network, self.quiet = training.network, about.quiet
        self.plan = plan = as_begun(privacy.plan, self.folder)
        self.streams, budget = as_streams(training.streams), privacy.budget
        if budget.ledger.items():  # `open` may also have put the ledger of another run here
            raise ParameterError(
                "expected a budget with an empty ledger: each run, also a resumed one, has its own"
            )
        self._given = budget.ledger
        # so that anybody can compute the figures again
        make(budget.accountant.name)
        count(1, group_size=privacy.group_size, steps=plan.steps)
        # refuse a layer that model.npz cannot hold before anything is charged
        describe(self.network)
        self.asked = Asked(training, privacy, about, plan, self.streams, current())
        self.facts = facts_of(self.asked)
        sampler_from(vars(self.facts.settings))  # one that `verify` does not know is refused
        plan.check_lot_size(self.asked.dataset_size)
        largest = min(float(np.finfo(array.dtype).max) for array in self.network.params.values())
        plan.check_learning_rate(float(value_at(training.optimizer.learning_rate, 0)), largest)
        if not self.folder.holds_run:
            plan.check_budget(
                budget.accountant, Ledger(plan.relation), budget.epsilon, budget.delta
            )
            check_steps(privacy, budget, Ledger(plan.relation))
        self.setup: list[Release] = []
        self.releases: dict[str, Any] = {}
        self.rows_checked = self._found = False
        self.opened: Opened | None = None
        self.stopped = self.row_bits = None

    @property
    def budget(self) -> Filter:
        """The target, with the ledger of all charges once the folder is open."""
        return self.privacy.budget if self.opened is None else self.opened.budget

    @property
    def ledger(self) -> Ledger | None:
        """All charges of the folder; None before it is open."""
        return None if self.opened is None else self.opened.ledger

    def open(self) -> Opened:
        """Lock the folder, and begin or resume its run; `release_first` and `train` call it."""
        if self.opened is not None:
            return self.opened
        data, given = self.about.data, self.privacy.budget
        if given.ledger is not self._given:
            raise ParameterError("another run has this budget: give each run a Filter of its own")
        private = None if data is None or data.published else data.sha256
        ledger, saved = self.folder.open(
            {**self.facts.began.to_json(), **self.about.inputs},
            self.plan.relation,
            self.streams.reproducible,
            private,
        )
        ledger.protect(self.privacy.unit)
        self.opened = Opened(Filter(given.accountant, given.epsilon, given.delta, ledger), saved)
        given.ledger = ledger  # the caller reads there what was spent
        if self.plan != self.privacy.plan:
            check_target(self.plan, self.budget, self.folder)
        return self.opened

    @property
    def begun(self) -> bool:
        """True if the folder has a checkpoint: all releases before the first step were made."""
        return self.open().saved is not None

    def release_first(self, name, event, what, function):
        """Charge `event`, put the charge on disk, and return the array that `function()` draws;
        once per run.

        name: a word; settings in result.json hold NAME_noise_multiplier. what: its line in the
        statement. A resumed run returns the array that was released. The function must draw its
        noise from `streams.noise(name)`, and may look at the training data only as `event` says. On
        several ranks only rank 0 calls it.
        """
        if not name.isidentifier() or name in self.releases:
            raise ParameterError(
                f"expected name={name!r} to be a word that no other release of the run has"
            )
        opened, checkpoint_path = self.open(), self.folder.path / CHECKPOINT
        if self.begun:
            event = as_charged(opened, len(self.setup), name, event, self.folder)
        self.setup.append(release_of(name, event, what))
        if self.begun:
            stored = self.releases[name] = opened.saved[0].get(f"release/{name}")
            if stored is None:
                raise CheckpointError(
                    f"{checkpoint_path}: release/{name} is missing: make the same calls of "
                    "release_first again"
                )
            return namespace_of(self.asked.like).asarray(stored)
        if self.folder.finished:  # another charge would replace the run's own
            raise CheckpointError(
                f"{checkpoint_path} is missing, and the run is finished: put the file back, or "
                "choose another folder"
            )
        opened.budget.charge(event, purpose=SETUP)
        self.folder.charge(opened.ledger)
        self.releases[name] = self.asked.ranks.of_first(function)
        return self.releases[name]

    def check_rows(self, x, y, example_weight=None, classes=None):
        """Raise DataError, with the number of rows, if x is not finite or y cannot be learned;
        called once, before the first step.

        The message depends on the training data, so it is for their owner; the statement mentions
        this check.
        """
        check = self.privacy.check
        check = self.about.data is None if check is None else check
        if check and not self.rows_checked and not self.folder.finished:
            refuse_bad_rows(x, y, self.network.output_shape[-1], example_weight, classes)
            self.rows_checked = True

    def train(
        self,
        x,
        y,
        x_test=None,
        y_test=None,
        *,
        example_weight=None,
        person=None,
        model=None,
        about=None,
    ):
        """Train to the end, write the files, and return the dictionary of result.json; None after
        an interrupt.

        x, y            inputs (an array or data.Examples) and targets, on the network's device
        x_test, y_test  test set for accuracy, if given; it is not protected
        example_weight  (N,) in [0, 1], factor of each example's clipped gradient, or None for 1;
                        with persons one for each person, in the order of their names
        person          (N,) name of each row's person, whole numbers or texts; only with
                        rows_per_person
        model           the network with fixed layers before it, or a `Model` of it with classes or
                        bounds; model.npz then holds it. By default whole numbers y (N,) are the
                        classes 0 to K-1 of the network's K outputs
        about           a dictionary for result.json, or a function that returns it. The function is
                        called when the network has its released weights, before they are measured;
                        it may change them by public or released numbers. Keys that end in
                        _not_private are listed as such

        Ctrl-C stops after the current step with a checkpoint; `stopped` then says "interrupted".
        The ledger is on disk before each block of `measure_every` steps, by default an epoch, and
        a checkpoint after it.
        """
        try:
            rows = self._rows(x, y, x_test, y_test, example_weight, person, model)
            opened = self.open()
            versions.refuse_false_weights(self.folder, self.privacy, example_weight)
            self._found = self.folder.finished
            if self._found:
                # another version may scale the same rows differently
                if opened.saved and not self.folder.by_another_version:
                    self._check_same(opened, rows)
                result = self.folder.result()
                self.stopped = Record.from_json(result).stopped
                return result
            meter = Meter(self.asked, opened, rows, self._epsilon_of_curve(opened))
            ended = self._train(opened, rows, meter)
            self.stopped = ended.trained.stopped
            if self.stopped == "interrupted":
                return None
            return self.asked.ranks.of_first(lambda: self._finish(about, meter, ended))
        except Exception as error:
            raise still_charged(self.folder, self.ledger, error)
        finally:
            self.folder.close()

    def summary(self):
        """Lines on the outcome, then the figure to quote, the file to read and the next command."""
        if not self.folder.finished:
            return (
                f"interrupted; run the same lines again to resume the run in {self.folder.path}; "
                f"`{program()} verify {self.folder.path}` says what is spent so far"
            )
        found = ["this run had finished before; nothing was trained now"] if self._found else []
        record = Record.from_json(self.folder.result())
        return "\n".join([*found, *summary(record, self.folder.path)])

    def _rows(self, x, y, x_test, y_test, example_weight, person, model):
        """The Rows of what `train` is given. Raises as `train` does."""
        like = self.asked.like
        x, y = as_rows("Run.train", x, y, like)
        tested = None if x_test is None else as_rows("Run.train, test set", x_test, y_test, like)
        made = as_model(model or self.network, self.training.loss, y)
        describe(made.network)
        units = units_of(person, self.privacy.rows_per_person, x.shape[0])
        check_weights(example_weight, units)
        self.check_rows(x, y, example_weight)
        return Rows(x, y, example_weight, units, tested, made)

    def _train(self, opened, rows, meter):
        """Train from the beginning, or from the checkpoint; returns the Ended."""
        every, first = self.training.measure_every, self.asked.ranks.rank == 0
        if opened.saved:
            self._check_same(opened, rows)
        plan, progress, history, before = start_of(self.asked, opened, rows.y)
        trainer = self.rehearse(rows.x, rows.y, plan)
        if opened.saved is None:
            check_steps(self.privacy, opened.budget, opened.ledger, len(self.setup))
        else:
            arrays, header = opened.saved
            self.row_bits = row_bits.of_both(header["extra"].get("row_bits"), self.row_bits)
            path, network = self.folder.path / CHECKPOINT, rows.model.network
            checkpoint.restore_training(path, arrays, header, network, self.training.optimizer)
            if first and not self.quiet:
                say(resuming(self.plan.steps, plan.steps, progress.step))
        with (
            make_bar(plan.steps, progress.step, self.quiet or not first) as bar,
            stop_on_interrupt() as stop,
        ):
            identity = self.folder.identity(rows.unvouched(self.about))
            kept = {"examples": identity, "row_bits": self.row_bits}
            course = Course(meter, self.folder, trainer, self.releases, kept, history, before, bar)
            if opened.saved is None:
                course.save(progress)
            elif not self.streams.reproducible and progress.charged > progress.step:
                # Taken over now; a crash before the next checkpoint must not let them be used
                # twice.
                course.save(Progress(progress.step, progress.step))
                self.folder.renew()
            trained = trainer.train(
                rows.x,
                rows.y,
                self.streams,
                example_weight=rows.weight,
                person=rows.units,
                progress=progress,
                on_charge=self.folder.charge,
                block_steps=max(1, round(self.asked.steps_per_epoch)) if every is None else every,
                on_block=course.on_block,
                should_stop=stop,
            )
        return Ended(trained, history, course.seconds())

    def rehearse(self, x, y, plan=None):
        """Make the Trainer of a plan (default: the run's), and try it on x and y. Call it before
        `release_first`, so that a faulty network fails before anything is charged.
        """
        trainer = Trainer(
            self.network,
            self.training.loss,
            self.training.optimizer,
            plan or self.plan,
            self.budget,
            batch_size=self.training.batch_size,
            augmentation_multiplicity=self.training.augmentation_multiplicity,
            rows_per_person=self.privacy.rows_per_person,
        )
        if self.row_bits is None:
            try_rows(x=x, y=y)
            self.row_bits = row_bits.tried(trainer, x, y)
        return trainer

    def _check_same(self, opened, rows):
        """Raise CheckpointError or DataError unless this is the run of the loaded checkpoint."""
        self.folder.check_same(opened.saved, self.releases, rows.unvouched(self.about))

    def _epsilon_of_curve(self, opened):
        """Epsilon for the column delta_at_epsilon: the target, or that of all planned steps."""
        budget = opened.budget
        if not math.isinf(budget.epsilon):
            return budget.epsilon
        planned = self.plan.ledger(before=first_events(self.setup))
        return budget.accountant.epsilon(planned, budget.delta).upper

    def _finish(self, about, meter, ended):
        """Measure, and write the files of a finished run; returns the dictionary of result.json."""
        path, step, rows = self.folder.path, ended.trained.progress.step, meter.rows
        with released(self.training):
            self._check_outputs(meter.opened, step)
            about = about() if callable(about) else about  # it may still change the weights
            last = meter.row(step, whole=True)
            known = replace(
                self.facts,
                settings=replace(self.facts.settings, setup=self.setup),
                row_bits=RowBits.from_json(self.row_bits),
                rows_checked=self.rows_checked,
                versions=versions.versions() | {"begun_by": self.folder.version},
            )
            record = finished(known, self.asked, meter.opened, rows, ended, last, about or {})
            statement = render(record)
            record = replace(record, statement_sha256=sha256(statement.encode()).hexdigest())
            self.folder.charge(meter.opened.ledger)
            facts = {name: getattr(record, name) for name in MODEL_FACTS}
            rows.model.about = {**rows.model.about, **facts}
            rows.model.ledger_sha256 = record.ledger_sha256
            write_model(path / MODEL, rows.model)
        history = [row for row in ended.history if row["step"] < step] + [last]
        write_metrics(path / METRICS, history)
        draw_course(path / CURVES, history, record)
        with atomic_write(path / STATEMENT) as file:
            file.write(statement)
        self.folder.finish(record)
        return record.to_json()

    def _check_outputs(self, opened, step):
        """Raise DivergedError unless the outputs on public rows, of 0, 1 and -1, are finite."""
        array = self.asked.like
        rows = np.stack([np.full(self.network.input_shape, n, array.dtype) for n in (0, 1, -1)])
        with np.errstate(all="ignore"):
            outputs = to_host(self.network.forward(namespace_of(array).asarray(rows))[0])
        if not np.isfinite(outputs).all():
            raise diverged(self.plan, opened, step)
