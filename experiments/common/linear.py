"""One dense layer, trained privately on fixed features: its flags, the rule that they follow, and
the run.
"""

import math
from dataclasses import dataclass, fields, replace

from minidp import nn
from minidp.backend import namespace_of, to_host
from minidp.defaults import MOMENTUM, mu_of
from minidp.mechanism import Sanitizer, flat_group, mean_sanitizer, noisy_mean
from minidp.run import Run
from minidp.run.record import ACCOUNTANTS
from minidp.train import OPTIMIZERS
from minidp.validate import non_negative_finite, positive_finite

from .config import FRACTION, FREE, POSITIVE, option
from .flags import RunFlags
from .job import facts, finish, make_sampler, plan_and_budget

NORM = 54.0  # that all features are scaled to
BASELINE_EPOCHS = 20
# flags that no rule sets: what it starts from, how it is computed, and what else is written
PUBLIC = (
    "target_epsilon",
    "delta",
    "dataset",
    "seed",
    "smoke",
    "arithmetic",
    "gradients",
    "batch_size",
    "train_metrics",
    "pretrained",
)


@dataclass(frozen=True)
class LinearFlags(RunFlags):
    """The flags. Lots, noise, learning rate, clip norm and average follow --target-epsilon where
    they are not given.

    An experiment's own dataclass says its `rule` (see `settings`).
    """

    lot_size: int | None = option(None, "examples per lot, on average", POSITIVE)
    accountant: str = option("loss_distribution", "that the target is held by", choices=ACCOUNTANTS)
    optimizer: str = option("momentum", "of the released gradients", choices=tuple(OPTIMIZERS))
    average: float | None = option(
        None,
        "decay of a moving average of the weights, which is evaluated and saved in their "
        "place; 0 for none",
        FRACTION,
    )
    noise_multiplier: float | None = option(None, "sigma; 0 for no noise", non_negative_finite)
    mean_noise_multiplier: float | None = option(
        None, "sigma of the features' mean; 0 for no noise", non_negative_finite
    )
    clip_norm: float | None = option(None, "C of weights and biases together", positive_finite)
    learning_rate: float | None = option(None, "at the first step", non_negative_finite)

    @property
    def as_chosen(self):
        """True if every setting follows from the rule, none being the user's own (nor --smoke's,
        but for lots and epochs).
        """
        free = {*FREE, *PUBLIC, *(("lot_size", "epochs") if self.smoke else ())}
        return all(
            getattr(self, field.name) == field.default
            for field in fields(self)
            if field.name not in free
        )

    @property
    def sigma(self):
        """Noise multiplier of training; 1 stands for one that follows from the target, where it is
        not given.
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
    C         rule["clip"] NORM mu^rule["power"]
    rate      such that the weights travel eta C T / (1 - momentum) = rule["travel"] mu N / NORM,
              and the noise on each is rule["travel"] / NORM whatever the budget (as in
              minidp/defaults.py)
    The noise multiplier of the lots is calibrated to what the mean leaves.
    """
    mu, steps = mu_of(epsilon, delta), rule["steps"]
    clip_norm = rule["clip"] * NORM * mu ** rule["power"]
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
    return replace(
        config,
        **{
            name: value
            for name, value in found.items()
            if getattr(config, name) is None
            and not (config.baseline and name == "mean_noise_multiplier")
        },
    )


def begin(dense, first, centre):
    """Give a layer on rows less `centre` the `first` weights and biases, public ones for the rows
    themselves.
    """
    if first is not None:
        weights, biases = (namespace_of(centre).asarray(each, dtype="float32") for each in first)
        dense.params["W"][:] = weights
        dense.params["b"][:] = biases + centre @ weights


def train_linear(
    name, ready, width, make_inputs, public, tuning, subcommand="", about=None, first=None, **more
):
    """Release the features' mean, train a dense layer on them less the mean; returns (result, how
    it stopped).

    ready         what `prepare` returned
    width         D of the features
    make_inputs   function that returns rows (N, D) to train on (an array, or CachedViews), rows to
                  test on, and {entry of result.json: more rows of the test set, whose accuracy it
                  is}
    public        lines of the statement; tuning: how the rule was chosen, for result.json
    about, more   further entries of result.json; keywords of Run
    first         (D, K) and (K,) public weights and biases that training begins with; by default
                  zeros
    """
    typed, folder, backend, streams, dataset = ready
    size = dataset.nominal_size
    config = settle(typed, size)
    mean = mean_sanitizer(
        config.mean_sigma, math.inf if config.baseline else NORM, config.arithmetic, width
    )
    dense = nn.Dense(
        width, dataset.classes, rng=streams.init, init=nn.init.constant(0.0), name="dense"
    )
    body = nn.Sequential([dense], (width,)).to(backend)
    bound = math.inf if config.baseline else config.clip_norm
    sampler = make_sampler(config, size)
    before = [mean.charge(mean.event(sampler.relation))]
    sanitizer = Sanitizer(
        flat_group(body.params, bound, config.sigma), config.gradients, config.arithmetic
    )
    plan, budget = plan_and_budget(
        config,
        sampler,
        sanitizer,
        size,
        BASELINE_EPOCHS,
        before,
        config.noise_multiplier is None and config.rule["steps"],
    )
    if typed.as_chosen:
        chosen_on = {"strokes": "drawn digits"}.get(tuning["chosen_on"], tuning["chosen_on"])
        but = " but the lots and epochs of --smoke" if typed.smoke else ""
        public = [
            *public,
            f"every setting{but}: a rule in epsilon, delta and N, chosen on {chosen_on} by "
            f"{tuning['by']}; {tuning['space']}",
        ]
    run = Run(
        folder,
        body,
        nn.SoftmaxCrossEntropy(),
        config.make_optimizer(config.learning_rate),
        plan,
        budget,
        streams,
        public=public,
        **more,
        **facts(name, typed, dataset, subcommand),
    )
    rows, tested, others = make_inputs()
    (group,) = mean.groups
    what = f"mean of the features, clipped to norm {group.clip_norm:g}: noise std {group.noise_std:g} on the sum"
    released = run.release_first(
        "mean",
        *before,
        what,
        lambda: backend.asarray(
            noisy_mean(rows, mean, size, streams.noise("mean")), dtype="float32"
        ),
    )
    rows -= released
    tested -= released
    begin(dense, first, released)
    centre = nn.Standardise(released, backend.xp.ones(1, dtype="float32"), name="centre")
    model = nn.Sequential([centre, dense], (width,)).to(backend)
    labels, test_labels = backend.asarray(dataset.y_train), backend.asarray(dataset.y_test)

    def found():
        right = lambda rows: float(
            to_host((model.predict(rows).argmax(axis=1) == test_labels).mean())
        )
        return {
            **(about or {}),
            **({"tuning": tuning} if typed.as_chosen else {}),
            **{entry: right(rows) for entry, rows in others.items()},
        }

    return finish(run, run.train(rows, labels, tested, test_labels, model=model, about=found))
