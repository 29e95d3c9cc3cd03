"""One dense layer, trained privately on fixed features: its flags, the rule that they follow, and
the run.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
from tqdm import tqdm

from features.frozen import feature_path, kept_features
from minidp import nn
from minidp.backend import namespace_of, to_host
from minidp.fitting.defaults import MOMENTUM, mu_of
from minidp.mechanism import Plan, Sanitizer, flat_group, mean_sanitizer, noisy_mean
from minidp.mechanism.samplers import make_sampler
from minidp.privacy.accountants import short_names
from minidp.train import OPTIMIZERS
from minidp.util.validate import non_negative_finite, positive_finite

from .config import FRACTION, FREE, POSITIVE, RunFlags, option
from .job import experiment, within_budget

NORM = 54.0  # that all features are scaled to
ROWS = 1000  # images whose features are computed at a time
BASELINE_EPOCHS = 20
SMOKE = 100, 2  # lot size, epochs
# flags that no rule sets: its inputs, how the run is computed, and what else is written
PUBLIC = """
    target_epsilon delta dataset seed smoke gradients batch_size train_metrics pretrained
""".split()


@dataclass(frozen=True)
class LinearFlags(RunFlags):
    """The flags. Lots, noise, learning rate, clip norm and average follow from --target-epsilon
    unless they are given.

    An experiment's own dataclass sets its `rule` (see `settings`).
    """

    lot_size: int | None = option(None, "examples per lot, on average", POSITIVE)
    accountant: str = option(
        "loss_distribution",
        "accountant that decides when the target is reached (default: pld)",
        names=short_names(),
    )
    optimizer: str = option(
        "momentum", "how gradients update the weights", choices=tuple(OPTIMIZERS)
    )
    average: float | None = option(
        None,
        "decay of a moving average of the weights, which is evaluated and saved in their "
        "place; 0 for none",
        FRACTION,
    )
    noise_multiplier: float | None = option(
        None, "sigma; 0 for no noise", non_negative_finite, noise=True
    )
    mean_noise_multiplier: float | None = option(
        None,
        "sigma of the noise on the features' mean; 0 for no noise",
        non_negative_finite,
        noise=True,
    )
    clip_norm: float | None = option(None, "C of weights and biases together", positive_finite)
    learning_rate: float | None = option(
        None, "learning rate at the first step", non_negative_finite
    )

    @property
    def as_chosen(self):
        """True if every setting follows from the rule; lots and epochs may be those of --smoke."""
        free = {*FREE, *PUBLIC, *(("lot_size", "epochs") if self.smoke else ())}
        return all(
            each.name in free or getattr(self, each.name) == each.default for each in fields(self)
        )

    @property
    def sigma(self):
        """Noise multiplier of training; 1 if it is not given, because it will follow from the
        target.
        """
        return self.chosen(self.noise_multiplier, 1.0)

    @property
    def mean_sigma(self):
        """Noise multiplier of the features' mean, likewise."""
        return self.chosen(self.mean_noise_multiplier, 1.0)

    @property
    def private(self):
        """True if everything that is released carries noise."""
        return self.sigma > 0 and self.mean_sigma > 0


def settings(epsilon, delta, size, rule):
    """{flag: value} from public numbers alone, with mu of the Gaussian mechanism that is (epsilon,
    delta)-DP.

    lots      so large that their sigma is about rule["sigma"] after T = rule["steps"] of them: L =
              N mu sigma / sqrt(T)
    mean      takes rule["share"] of mu^2
    C         rule["clip"] NORM
    rate      such that the weights travel eta C T / (1 - momentum) = rule["travel"] mu N / NORM,
              and the noise on each is rule["travel"] / NORM at every budget (as in
              minidp/fitting/defaults.py)
    The noise multiplier of the lots is calibrated to the budget that the mean leaves.
    """
    mu, steps = mu_of(epsilon, delta), rule["steps"]
    clip_norm = rule["clip"] * NORM
    return {
        "lot_size": min(size, math.ceil(size * mu * rule["sigma"] / math.sqrt(steps))),
        "clip_norm": clip_norm,
        "mean_noise_multiplier": 1 / (mu * math.sqrt(rule["share"])),
        "learning_rate": rule["travel"] * mu * size * (1 - MOMENTUM) / (NORM * clip_norm * steps),
    }


def settle(config, size):
    """The configuration with the settings for `size` training images where none were given."""
    target = config.default_target if config.target_epsilon is None else config.target_epsilon
    found = {**settings(target, config.delta, size, config.rule), "average": config.rule["decay"]}
    if config.baseline:
        del found["mean_noise_multiplier"]
    chosen = {name: value for name, value in found.items() if getattr(config, name) is None}
    return replace(config, **chosen)


@dataclass(frozen=True)
class Problem:
    """Features of images on which an experiment trains a dense layer, and public facts about them.

    width          features D of an image
    rows           function (images, backend, config) that returns their features (N, D) float32
    public         lines of the statement
    chosen_on      data that form and rule were chosen on
    space          prior knowledge that went into the space that was searched
    first          (D, K) and (K,) public weights and biases that training begins with, or None
    inputs         facts about files that the features depend on, for a resumed run
    about          further entries of the result
    others         {entry of the result: function (images, backend, config) of more rows to test on}
    command        of the experiment's script, if it has commands
    """

    width: int
    rows: Callable
    public: tuple
    chosen_on: str
    space: str
    first: tuple | None = None
    inputs: dict = field(default_factory=dict)
    about: dict = field(default_factory=dict)
    others: dict = field(default_factory=dict)
    command: str = ""


def fixed_features(name, form, features):
    """The `rows` of a Problem: features in float16, kept in the cache for the next run.

    name, form     of the experiment; settings of the features: they name the file that keeps them
    features       function (images, backend, form) that yields features, some images at a time
    """

    def rows(images, backend, config):
        def compute():
            parts = tqdm(
                features(images, backend, form),
                desc=f"features of {len(images):,} images",
                unit="part",
                file=sys.stderr,
                disable=True if config.quiet else None,
            )
            return np.concatenate([to_host(part).astype("float16") for part in parts])

        path = feature_path(images, name, form, NORM, backend.name)
        found = kept_features(path, compute)
        return backend.asarray(found, dtype="float32")

    return rows


def linear_experiment(name, load, problem_of):
    """The function run(config) of an experiment; problem_of: function of a `Ready`."""
    return experiment(name, load, lambda ready: train_linear(problem_of(ready), ready), SMOKE)


def begin(dense, first, centre):
    """Give a layer on rows less `centre` the `first` weights and biases, public ones for the rows
    themselves.
    """
    weights, biases = (namespace_of(centre).asarray(each, dtype="float32") for each in first)
    dense.params["W"][:] = weights
    dense.params["b"][:] = biases + centre @ weights


def _tries(ready):
    """The file of all settings that were tried for an experiment's rule, on other data."""
    return f"experiments/results/{ready.name}_settings.json"


def _public(problem, ready):
    """Lines of the statement on public facts, which cost nothing."""
    typed = ready.config
    if not typed.as_chosen:
        return problem.public
    chosen_on = {"strokes": "synthetic digits"}.get(problem.chosen_on, problem.chosen_on)
    but = " but the lots and epochs of --smoke" if typed.smoke else ""
    return [
        *problem.public,
        f"every setting{but}: a rule in epsilon, delta and N, chosen on {chosen_on} "
        f"({_tries(ready)}); {problem.space}",
    ]


def _about(problem, ready, tested):
    """Entries of result.json besides a run's own; tested: features of the test set."""
    about = {**problem.inputs, **problem.about}
    dataset = ready.dataset
    if ready.config.as_chosen:
        about["tuning"] = {
            "chosen_on": problem.chosen_on,
            "looked_at_training_data": dataset.name == problem.chosen_on,
            "by": _tries(ready),
            "space": problem.space,
        }
    if problem.first is not None:
        weights, biases = problem.first
        guessed = (to_host(tested) @ weights + biases).argmax(axis=1)
        about["accuracy_before_training"] = float((guessed == dataset.y_test).mean())
    return about


def _planned(config, body, size, before):
    """The plan of all lots, which follows the mean's release, and its budget."""
    bound = math.inf if config.baseline else config.clip_norm
    groups = flat_group(body.params, bound, config.sigma)
    sampler = make_sampler(config.sampler, size, config.lot_size)
    plan = Plan(sampler, Sanitizer(groups, config.gradients), 1, config.lot_size)
    calibrated = config.noise_multiplier is None and config.rule["steps"]
    return within_budget(config, plan, size, BASELINE_EPOCHS, before, calibrated)


def train_linear(problem, ready):
    """Release the features' mean, train a dense layer on them less the mean; returns how it
    stopped.
    """
    typed, backend, dataset = ready.config, ready.backend, ready.dataset
    size, width = dataset.nominal_size, problem.width
    config = settle(typed, size)
    mean = mean_sanitizer(config.mean_sigma, math.inf if config.baseline else NORM)
    dense = nn.Dense(
        width, dataset.classes, rng=ready.streams.init, init=nn.init.constant(0.0), name="dense"
    )
    body = nn.Sequential([dense], (width,))
    before = [mean.event()]
    plan, budget = _planned(config, body, size, before)
    run = ready.run(
        body,
        config.make_optimizer(config.learning_rate),
        plan,
        budget,
        config=config,
        command=problem.command,
        public=_public(problem, ready),
        inputs=problem.inputs,
    )
    run.open()
    rows, tested = (problem.rows(x, backend, config) for x in (dataset.x_train, dataset.x_test))
    others = {
        entry: make(dataset.x_test, backend, config) for entry, make in problem.others.items()
    }
    about = _about(problem, ready, tested)
    (group,) = mean.groups
    what = (
        f"mean of the features, clipped to norm {group.clip_norm:g}: noise std "
        f"{group.noise_std:g} on the sum"
    )
    released = run.release_first(
        "mean",
        *before,
        what,
        lambda: backend.asarray(
            noisy_mean(rows, mean, size, ready.streams.noise("mean")), dtype="float32"
        ),
    )
    rows -= released
    tested -= released
    if problem.first is not None:
        begin(dense, problem.first, released)

    def found():
        for entry, seen in others.items():
            guessed = to_host(model.predict(seen)).argmax(axis=1)
            about[entry] = float((guessed == dataset.y_test).mean())
        return about

    centre = nn.Standardise(released, backend.xp.ones(1, dtype="float32"), name="centre")
    model = nn.Sequential([centre, dense], (width,)).to(backend)
    return ready.train(run, rows, tested, model, found)
