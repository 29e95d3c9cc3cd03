"""From flags to a trained network: what every private experiment does in the same order.

Sampler and plan follow from the flags; steps are computed ahead from the target; what comes before the first
step (DP-PCA) is charged, and the charge is on disk, before its noise is drawn; then training; then the files.
"""
import math
import sys
import time
from dataclasses import dataclass, field, replace

from minidp import data, nn
from minidp.backend import Backend
from minidp.errors import BudgetExceededError, ParameterError
from minidp.files import jsonable
from minidp.mechanism import FixedSizeSampler, Plan, PoissonSampler, ShuffleSampler
from minidp.privacy import Filter, Ledger
from minidp.privacy.catalogue import make
from minidp.streams import Streams

from .config import FREE, command_of, to_json
from .finish import finish
from .folder import RunFolder
from .training import Task, train

@dataclass
class Job:
    """One run on its way.

    began         time.perf_counter() at its start
    setup_event   what is released before the first step, or None; setup_lines tell it in privacy.md
    about         what else the result says, {key: value}
    multiplicity  views of each example in a lot, averaged before clipping
    inputs        hashes of other files that decide about the run, {key: value}; a resumed run must have the same
    measured      the same as a function, called when the weights that are released stand in the model; or None
    """

    name: str
    config: object
    backend: object
    folder: RunFolder
    streams: Streams
    dataset: object
    began: float
    setup_event: object = None
    setup_lines: tuple = ()
    released: tuple = ()
    plan: Plan = None
    start: object = None
    filter: Filter = None
    fingerprint: dict = None
    script: str = ""
    about: dict = field(default_factory=dict)
    multiplicity: int = 1
    inputs: dict = field(default_factory=dict)
    measured: object = None

    @property
    def command(self):
        """The command line that makes the same run again, where it has a seed."""
        return command_of(self.script or f"{self.name}.py", self.config, FREE)

    @classmethod
    def begin(cls, name, config, load):
        """Check the folder, pick the device, load the data set; None if the run is finished already."""
        began = time.perf_counter()
        folder = RunFolder(config.out, name, config.resume)
        if folder.finished:
            folder.check_result({key: value for key, value in to_json(config).items() if key not in FREE})
            print(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
            return None
        backend = Backend.pick(config.device)
        if config.device == "auto" and not config.quiet:
            print(f"device auto: took {backend.name}")
        dataset = load()
        if config.lot_size > dataset.nominal_size:
            raise ParameterError(f"expected lot_size={config.lot_size} to be at most the {dataset.nominal_size} "
                                 "training examples")
        if config.private and config.delta >= 1 / dataset.nominal_size:
            print(f"NOTICE: delta={config.delta:g} is not below 1/{dataset.nominal_size}: a mechanism that publishes somebody's "
                  "record would pass such a guarantee")
        return cls(name, config, backend, folder, Streams(config.seed), dataset, began)

    @property
    def sampler(self):
        """The sampler over the data set's public number of examples."""
        size, lot = self.dataset.nominal_size, self.config.lot_size
        if self.config.sampler == "poisson":
            return PoissonSampler(lot / size)
        return {"fixed": FixedSizeSampler, "shuffle": ShuffleSampler}[self.config.sampler](size, lot)

    def open(self, sanitizer, default_epochs):
        """Compute the steps ahead, open the folder, and set plan, start and filter.

        Raises BudgetExceededError, before anything is written, where not one step fits into the target.
        """
        config = self.config
        plan = Plan(self.sampler, sanitizer, 1, config.lot_size)
        accountant = make(config.accountant, plan.relation)
        if accountant.kind != "bound" and not math.isinf(config.target):
            print(f"NOTICE: {accountant.name} is an approximation: the true epsilon may exceed {config.target:g}; a bound "
                  "is held by --accountant loss_distribution, renyi or moments")
        self.plan = self._with_length(plan, accountant, Ledger(plan.relation), default_epochs)
        self.fingerprint = jsonable({
            **{key: value for key, value in to_json(config).items() if key not in FREE}, **self.inputs,
            "device": self.backend.name,
            "dataset": self.dataset.name, "dataset_sha256": self.dataset.sha256})
        self.start = self.folder.open(self.fingerprint, plan.relation, self.streams.reproducible)
        if not self.start.begun:  # charges that a crash left behind leave fewer steps
            self.plan = self._with_length(plan, accountant, self.start.ledger, default_epochs)
        self.filter = Filter(accountant, config.target, config.delta, self.start.ledger)

    def charge_setup(self):
        """Charge what comes before the first step, and put the charge on disk."""
        self.filter.charge(self.setup_event, purpose="setup")
        self.folder.charge(self.filter.ledger)

    def _with_length(self, plan, accountant, ledger, default_epochs):
        config = self.config
        if math.isinf(config.target):
            epochs = default_epochs if config.epochs is None else config.epochs
            steps = math.ceil(epochs * self.dataset.nominal_size / config.lot_size)
            return plan.with_steps(config.steps or steps)
        plan = plan.fitted(accountant, self._after_setup(ledger), config.target, config.delta)
        if plan.steps == 0:
            raise BudgetExceededError(f"not one lot fits into epsilon {config.target:g} at delta={config.delta:g}; "
                                      "raise the target or the noise, or make lots smaller")
        return plan

    def _after_setup(self, ledger):
        after = ledger.copy()
        if self.setup_event is not None:
            after.append(self.setup_event)
        return after

    def curve_epsilon(self):
        """Where delta is drawn against epochs: the target, or what the planned steps come to."""
        if not math.isinf(self.config.target):
            return self.config.target
        whole = self._after_setup(Ledger(self.plan.relation))
        for event, times in self.plan.charges(0, self.plan.steps):
            whole.append(event, times)
        return self.filter.accountant.epsilon(whole, self.config.delta).upper

    def train(self, model, body, optimizer, examples):
        """Train `body`, the part of `model` that is not fixed, and write the files.

        examples  (training inputs of body, labels, test inputs, test labels), host or device arrays
        returns   (result or None, "finished" | "budget" | "interrupted")
        """
        config, asarray = self.config, self.backend.asarray
        features, *rest = examples  # views of images stay what they are: they are indexed, not converted
        features = features if isinstance(features, data.Examples) else asarray(features)
        labels, test_features, test_labels = map(asarray, rest)
        task = Task(network=body, model=model, loss=nn.SoftmaxCrossEntropy(), optimizer=optimizer, plan=self.plan,
                    filter=self.filter, streams=self.streams,
                    nominal_size=self.dataset.nominal_size, features=features, labels=labels,
                    test_features=test_features, test_labels=test_labels, curve_epsilon=self.curve_epsilon(),
                    batch_size=config.batch_size, train_metrics=config.train_metrics, quiet=config.quiet,
                    multiplicity=self.multiplicity)
        try:
            record, history, seconds = train(task, self.folder, self.start, self.fingerprint, self.began)
            if record.stopped == "interrupted":
                return {"steps": record.progress.step, "out": self.folder.path}, "interrupted"
            return finish(self, task, record, history, seconds), record.stopped
        finally:
            self.folder.unlock()


def load_digits(config, smoke_sizes):
    """The digits of --dataset; with --smoke the first few of them."""
    return data.load(config.dataset, config.data_dir, on_notice=lambda line: print(f"NOTICE: {line}"),
                     sizes=smoke_sizes if config.smoke else None, progress=not config.quiet)


def shrink_for_smoke(config, lot_size, epochs):
    """The configuration on a few hundred examples: what was left at its default shrinks with them."""
    if not config.smoke:
        return config
    lot = lot_size if config.lot_size == type(config).lot_size else config.lot_size
    return replace(config, lot_size=lot, epochs=config.epochs if config.length_is_set else epochs)


def exit_status(result, stopped):
    """0, or 130 after an interrupt, with a line on how to go on."""
    if stopped == "interrupted":
        print(f"interrupted after {result['steps']} lots; the same command with --resume --out {result['out']} goes on", file=sys.stderr)
        return 130
    return 0
