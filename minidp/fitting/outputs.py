"""The network that `fit` trains, and the fixed layers before it, which scale the inputs, in part by
noisy releases.
"""

import copy
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..backend import namespace_of, to_host
from ..data.arrays import Inputs
from ..data.persons import Means
from ..errors import ParameterError, ShapeError
from ..host import memory
from ..mechanism import Plan, PoissonSampler, PrivateScaling, mean_sanitizer, noisy_mean
from ..mechanism.mean import shrunk
from ..mechanism.scaling import centre_and_spread
from ..nn.init import truncated_normal, zeros
from ..privacy.accountant import Accountant
from ..privacy.events import Event
from ..privacy.gaussian import gaussian_epsilon
from ..run import Run
from ..train.batching import MIN_BATCH
from ..util.validate import shown
from .defaults import MEAN_SHARE, ROW_NORM, SCALING_SHARE, mu_of
from .settings import Settings

FARTHEST = 4.0  # a privately scaled feature is limited to so many spreads from its mean
# of memory per weight: its copies in the trial, in sums, averages and checkpoints
WEIGHT_BYTES = 64
IN_MEMORY = 2**28  # bytes of scaled inputs that are kept; larger ones are converted batch by batch
OUTPUT_BYTES = 12 * MIN_BATCH  # per output of a layer: it, its gradient and a product, for a batch


class Head:
    """Scaling as `fit` describes it. What it releases is charged before the first step.

    For the networks that `fit` makes, rows have norm `defaults.ROW_NORM` or less after it; in a
    classification their noisy mean is subtracted, unless a private scaling did so, and each is
    scaled to that norm; rows that a schema encoded have parts of norm 1 or less. For the caller's
    network, rows are scaled as `scale` says, and no more. For a table the shares of the classes are
    released with the mean, and the last bias starts at their logarithms.
    """

    def __init__(self, settings: Settings, data: Any) -> None:
        scale, bounds, shape = _scale_of(settings, data), settings.bounds, data.shape
        self.scale, self.data = scale, data
        self.width = math.prod(shape)
        self.length = math.sqrt(self.width)  # of the longest rows
        self.schema = None
        if settings.schema is not None:
            self.schema = settings.schema.to_json()
            self.length = math.sqrt(len(settings.schema.inputs))
        elif scale == "unit-norm":
            self.length = 1.0
        self.ours = settings.network is None and scale != "none"
        self.centred = self.ours and data.labels is not None and scale != "private"
        # rows of which the caller says that their length carries nothing have the rule of images
        self.table = (
            self.ours
            and data.labels is not None
            and not settings.hidden_sizes
            and settings.scale != "unit-norm"
            and len(shape) == 1
        )
        self.row_norm = ROW_NORM if self.ours else 1.0
        self.bounds = None if bounds is None else _checked(bounds, shape)
        self.first: list[nn.Layer] = []
        if scale == "unit-norm":
            self.first = [nn.UnitNorm("scale")]
        elif self.bounds is not None:
            low, high = self.bounds
            centre, half = (low + high) / 2, (high - low) / 2
            self.first = [_standardise(centre, half, "scale"), nn.Clamp(1.0)]
        elif scale == "private":  # as it is until mean and spread are released
            self.first = [_standardise(0, 1, "scale"), nn.Clamp(FARTHEST)]

    def events(
        self, accountant: Accountant, sampler: PoissonSampler, epsilon: float, delta: float
    ) -> list[Event]:
        """The charges before the first step: the events of a private scaling, or of a mean over one
        lot.
        """
        self.sampler = sampler
        self.charges: list[Event] = []
        mu = mu_of(epsilon, delta)
        if self.scale == "private":
            self.scaling = PrivateScaling(math.sqrt(2 / SCALING_SHARE) / mu)
            event: Event = self.scaling.event()
            self.charges = [event, event]  # of limits and of moments
        elif self.centred:
            mu *= math.sqrt(MEAN_SHARE)
            mean = mean_sanitizer(1 / mu)
            if sampler.sampling_probability < 1 and mu < math.inf:
                # the noise that costs as much over a sampled lot as 1 / mu over all rows
                plan = Plan(sampler, mean, 1, 1.0)
                mean = plan.calibrated(accountant, gaussian_epsilon(mu, delta), delta).sanitizer
            event = mean.event()
            if sampler.sampling_probability < 1:
                event = sampler.wrap(event)
            self.mean, self.charges = mean, [event]
        return self.charges

    def layers(self, run: Run) -> list[nn.Layer]:
        """The layers; releases what they need through `run`."""
        layers, length = list(self.first), self.length
        if self.scale == "private":
            mean, spread = self._released_scaling(run)
            layers[0] = _standardise(mean, spread, "scale")
        if not self.ours:
            return layers
        if self.centred:
            if length != 1:
                layers.append(_standardise(0, length, "length"))
            mean = self._released_mean(run, layers)
            if self.table:
                mean, shares = mean[: self.width], mean[self.width :]
                _start_at(run.network, shares, self._mean_noise(run))
            layers.append(_standardise(mean.reshape(self.data.shape), 1, "centre"))
            layers.append(nn.UnitNorm("unit"))
            length = 1.0
        return [*layers, _standardise(0, length / ROW_NORM, "stretch")]

    def _released_scaling(self, run):
        inputs, units = self.data.inputs, self.data.units
        noise = run.streams.noise
        of_limits, of_moments = self.charges
        limits = run.release_first(
            "limits",
            of_limits,
            f"noisy powers of two that bound most values of {self.width} features",
            lambda: self.scaling.release_limits(inputs, noise("limits"), units),
        )
        moments = run.release_first(
            "moments",
            of_moments,
            "their noisy sums and sums of squares within these limits",
            lambda: self.scaling.release_moments(inputs, limits, noise("moments"), units),
        )
        mean, spread = centre_and_spread(limits, moments, self.data.size)
        return mean.reshape(self.data.shape), spread.reshape(self.data.shape)

    def _mean_noise(self, run):
        """The standard deviation of the noise on each number of a table's mean."""
        return math.sqrt(2) * self.mean.groups[0].noise_std / run.plan.expected_lot_size

    def _released_mean(self, run, layers):
        """The noisy mean of a lot of scaled rows, or of persons' means; of a table with the shares
        of the classes behind it.
        """
        data, inputs = self.data, self.data.inputs
        what = (
            "a noisy average over "
            f"{'a lot of' if self.sampler.sampling_probability < 1 else 'all'} "
            f"{data.units.name}s{', and of the shares of the classes' if self.table else ''}"
        )

        def release():
            streams, size = run.streams, run.plan.expected_lot_size
            (lot,) = self.sampler.lots(len(data.units), 1, lambda step: streams.sampling("mean"))
            before = nn.Sequential(layers, data.shape).to(inputs.backend)
            rows = inputs.after(before.predict)
            rows = WithClasses(rows, data) if self.table else rows
            mean = noisy_mean(Means(rows, data.units, lot), self.mean, size, streams.noise("mean"))
            if self.table:
                mean *= math.sqrt(2)
                mean[: self.width] = shrunk(mean[: self.width], self._mean_noise(run))
            return mean.astype("float32")

        return run.release_first("mean", self.charges[0], what, release)


class WithClasses:
    """Rows of norm 1 or less with their weight, in [0, 1], in the place of their class behind them,
    divided by the square root of 2: of norm 1 or less again.
    """

    def __init__(self, inputs: Inputs, data: Any) -> None:
        self.inputs, self.labels, self.classes = inputs, data.targets, data.outputs
        self.shape = inputs.shape[0], inputs.shape[1] + self.classes
        self.weight, number = data.weight, getattr(data.units, "number", None)
        if self.weight is not None and number is not None:  # one for each person
            self.weight = self.weight.take(namespace_of(self.weight).asarray(number))

    def take(self, indices: Any, axis: int = 0) -> NDArray:
        """The rows at an array of indices."""
        x = self.inputs.take(indices)
        xp = namespace_of(x)
        rows = xp.asarray(indices)
        mine = (self.labels.take(rows)[:, None] == xp.arange(self.classes)).astype(x.dtype)
        if self.weight is not None:
            mine *= xp.clip(self.weight.take(rows), 0, 1)[:, None]
        return xp.concatenate([x, mine], axis=1) / x.dtype.type(math.sqrt(2))


def _start_at(network, shares, noise):
    """Set the last bias to the logarithms of shares of classes, each taken for at least the noise
    on it.
    """
    logs = np.log(np.maximum(to_host(shares), max(noise, 1e-6)))
    bias = network.params[network.layers[-1].name, "b"]
    bias[...] = namespace_of(bias).asarray(logs - logs.mean(), dtype=bias.dtype)


def _scale_of(settings, data):
    """The scale, with what "auto" stands for. Raises ParameterError unless it suits the bounds."""
    scale, bounds = settings.scale, settings.bounds
    refused = ("bounds",) if bounds is None else ("unit-norm", "private", "none")
    if scale in refused:
        raise ParameterError(
            f"expected public bounds=(low, high) with scale='bounds' and with no other, got "
            f"scale={scale!r} and bounds={bounds!r:.80}"
        )
    if settings.schema is not None:
        return "schema"
    if scale != "auto":
        return scale
    if bounds is not None:
        return "bounds"
    if settings.network is not None:
        return "none"
    # a regression needs the length of its rows, whether they come as an array or as a table
    columns = data.columns is not None or data.labels is None and len(data.shape) == 1
    return "private" if columns else "unit-norm"


def trained_network(
    settings: Settings, shape: tuple[int, ...], outputs: int, rng: Any
) -> nn.Sequential:
    """The network to train: a copy of the caller's, or dense layers of the `hidden` sizes on
    flattened inputs.
    """
    network, sizes = settings.network, settings.hidden_sizes
    if network is None:
        widths = [math.prod(shape), *sizes]
        _check_memory([*widths, outputs])
        layers: list[nn.Layer] = [nn.Flatten()] if len(shape) > 1 else []
        for before, after in pairwise(widths):
            layers += [nn.Dense(before, after, rng=rng, dtype=settings.dtype), nn.ReLU()]
        first_values = truncated_normal if sizes else zeros
        last = nn.Dense(widths[-1], outputs, rng=rng, init=first_values, dtype=settings.dtype)
        return nn.Sequential([*layers, last], shape)
    if not isinstance(network, nn.Sequential):
        raise ParameterError(
            f"expected network to be a nn.Sequential, got {type(network).__name__}: "
            "nn.Sequential(layers, input_shape)"
        )
    if sizes:
        raise ParameterError("expected hidden= or network=, got both")
    if network.input_shape != shape or network.output_shape != (outputs,):
        raise ShapeError(
            f"network: expected one for inputs {shape} and {outputs} outputs, got "
            f"{network.input_shape} and {network.output_shape}"
        )
    kinds = {array.dtype.name for array in network.params.values()}
    if settings.dtype == "float64" and kinds != {"float64"}:
        raise ParameterError(
            f"expected a network of float64 parameters with dtype='float64', got {sorted(kinds)}: "
            "give its layers dtype='float64'"
        )
    # the caller's network must not change: a second fit must not start from weights that saw rows
    return copy.deepcopy(network)


def _check_memory(widths):
    """Raise ParameterError if dense layers of these widths need more memory than there is."""
    weights = sum((before + 1) * after for before, after in pairwise(widths))
    needed, most = WEIGHT_BYTES * weights + OUTPUT_BYTES * sum(widths), memory.physical()
    if needed > most:
        raise ParameterError(
            f"expected hidden layers that fit into memory: {', '.join(map(str, widths[1:-1]))} "
            f"take {weights:,} weights and about {needed / 2**30:,.0f} GiB, this machine has "
            f"{most / 2**30:,.0f} GiB; make them smaller"
        )


def scaled(inputs: Inputs, layers: list[nn.Layer]) -> Any:
    """The inputs after the fixed layers: an array if that is small, else converted batch by
    batch.
    """
    if layers:
        before = nn.Sequential(layers, inputs.shape[1:]).to(inputs.backend)
        inputs = inputs.after(before.predict)
    return inputs[:] if 4 * math.prod(inputs.shape) <= IN_MEMORY else inputs


def _standardise(mean, spread, name):
    mean, spread = (np.atleast_1d(np.asarray(each, "float32")) for each in (mean, spread))
    return nn.Standardise(mean, spread, name=name)


def _checked(bounds, shape):
    """(low, high) as arrays; ParameterError unless low < high everywhere, in float32."""
    try:
        pair = () if isinstance(bounds, str) else bounds
        low, high = (np.asarray(each, dtype=np.float64) for each in pair)
    except (TypeError, ValueError):
        low = high = np.array(np.nan)
    if {low.shape, high.shape} - {(), shape}:
        raise ShapeError(
            f"expected bounds to be two numbers, or two arrays of shape {shape}, got {low.shape} "
            f"and {high.shape}"
        )
    held = np.maximum(abs(low), abs(high)).max() <= np.finfo(np.float32).max
    if not held or not (((high - low) / 2).astype(np.float32) > 0).all():
        raise ParameterError(
            "expected bounds=(low, high) to be finite numbers that float32 can hold, or arrays of "
            f"them, with low < high by more than 1e-45, got {shown(bounds):.80}"
        )
    return low, high
