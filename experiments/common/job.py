"""What all private experiments share before and after `minidp.run.Run`: folder, device, data,
budget, verdict.
"""

import math
import sys
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from datasets import cifar, mnist
from datasets.dataset import Dataset
from minidp import nn
from minidp.backend import Backend
from minidp.errors import ParameterError
from minidp.privacy import Filter
from minidp.privacy.accountants import called, make
from minidp.ranks import current
from minidp.run import About, Privacy, Run, RunFolder, Training
from minidp.run.attacker import large_delta
from minidp.run.versions import git_commit
from minidp.streams import Streams

from .config import FREE, command_of, main_of, tell, to_json
from .results import compare

SMOKE_COLOURS = 500  # images
SMOKE = 60, 2  # lot size, epochs


def flags_of(config):
    """The flags that decide about a result, as JSON values."""
    return {key: value for key, value in to_json(config).items() if key not in FREE}


@dataclass(frozen=True)
class Ready:
    """What a run has before its network is made; name: of the experiment."""

    name: str
    config: Any
    folder: RunFolder
    backend: Backend
    streams: Streams
    dataset: Dataset

    def run(self, network, optimizer, plan, budget, *, config=None, multiplicity=1, **about):
        """The `Run` that trains a network by a plan within a budget.

        config   flags, where some follow from others
        about    command: that of a script with commands; more facts: see `About`
        """
        config = config or self.config
        script = f"{self.name}.py {about.pop('command', '')}".strip()
        return Run(
            self.folder,
            Training(
                network.to(self.backend),
                nn.SoftmaxCrossEntropy(),
                optimizer,
                self.streams,
                config.batch_size,
                multiplicity,
            ),
            Privacy(plan, budget, train_metrics=config.train_metrics),
            About(
                name=self.name,
                flags=flags_of(self.config),
                command=command_of(script, self.config, FREE),
                data=self.dataset,
                commit=git_commit(),
                quiet=config.quiet,
                **about,
            ),
        )

    def train(self, run, x, tested, model, about=None):
        """Train on rows x, test on the rows `tested`, and print the outcome; returns how the run
        stopped.
        """
        labels, test_labels = map(self.backend.asarray, (self.dataset.y_train, self.dataset.y_test))
        result = run.train(x, labels, tested, test_labels, model=model, about=about)
        if result is None:
            words = (
                "interrupted; run the same command again with --resume --folder "
                f"{run.folder.path} to resume it"
            )
            print(words, file=sys.stderr)
        else:
            compare(result)
            print(run.summary())
        return run.stopped


def experiment(name, load, train, smoke=SMOKE):
    """The function run(config) of an experiment: everything from data to files; it returns how the
    run stopped.

    load    function of the configuration that returns the data set
    train   function of a `Ready`; not called where the run in --folder is finished already
    smoke   lot size and epochs that --smoke sets where no flag does
    """

    def run(config):
        if config.smoke:
            lot, epochs = smoke
            lot = lot if config.lot_size == type(config).lot_size else config.lot_size
            epochs = config.epochs if config.length_is_set else epochs
            config = replace(config, lot_size=lot, epochs=epochs)
        if config.resume and config.folder is None:
            raise ParameterError("--resume needs --folder FOLDER, that of the run to resume")
        folder = RunFolder(
            config.folder or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}", config.resume
        )
        if folder.finished:  # whatever was deleted of it since, nothing is charged again
            folder.check_result(flags_of(config))
            print(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
            return "finished"
        backend = Backend.pick(config.device, partial(tell, config))
        dataset = current().of_first(lambda: load(config))
        return train(Ready(name, config, folder, backend, Streams(config.seed), dataset))

    return run


def load_digits(config, smoke_sizes=(600, 300)):
    """The digits of --dataset; with --smoke the first few of them."""
    return mnist.load(
        config.dataset,
        config.data_dir,
        on_notice=lambda line: print(f"NOTICE: {line}"),
        sizes=smoke_sizes if config.smoke else None,
        progress=not config.quiet,
    )


def load_colours(config):
    """CIFAR-10; with --smoke the first SMOKE_COLOURS images of each part."""
    dataset = cifar.load_cifar10(config.data_dir, progress=not config.quiet)
    if dataset.notice:
        print(f"NOTICE: {dataset.notice}")
    return dataset.first(SMOKE_COLOURS, SMOKE_COLOURS) if config.smoke else dataset


def within_budget(config, plan, size, epochs, before=(), calibrated=None):
    """(the plan with as many steps as the target allows after the events `before`, or with the
    number that the flags set; the privacy.Filter that stops it).

    size        the public number of training examples
    epochs      length of training if no flag sets it
    calibrated  a number of steps for which the least noise is found that keeps them within the
                target, or within the default target

    Raises BudgetExceededError if no step fits.
    """
    accountant = make(config.accountant, plan.relation)
    if calibrated and config.private:
        target = config.default_target if math.isinf(config.target) else config.target
        plan = plan.with_steps(calibrated).calibrated(accountant, target, config.delta, before)
    if config.private and (why := large_delta(config.delta, size)):
        print(f"NOTICE: delta={config.delta:g} is {why}")
    if math.isinf(config.target):
        epochs = epochs if config.epochs is None else config.epochs
        lots = math.ceil(plan.sampler.steps_of_epochs(epochs) * (1 - 1e-12))
        plan = plan.with_steps(config.steps or lots)
        return plan, Filter(accountant, config.target, config.delta)
    if accountant.kind != "bound":
        print(
            f"NOTICE: {called(accountant.name)}: the true epsilon may exceed "
            f"{config.target:g}; for a bound use --accountant pld, rdp or moments"
        )
    what = f"epsilon {config.target:g} at delta {config.delta:g}"
    tell(config, f"computing how many lots fit into {what}")
    plan = plan.fitted(accountant, config.target, config.delta, before)
    return plan, Filter(accountant, config.target, config.delta)


def exit_status(stopped):
    """130 after an interrupt, else 0."""
    return 130 if stopped == "interrupted" else 0


def command_line(name, config, run, about):
    """The function main(argv) of a script: `run` on a `config` of its flags; it returns the exit
    status.
    """
    return main_of(f"{name}.py", about, {"": (config, lambda config: exit_status(run(config)))})
