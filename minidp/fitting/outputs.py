"""The fixed layers before the network that `fit` trains. They scale the inputs, partly by noisy
releases.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..backend import namespace_of, to_host
from ..certified.gaussian import gaussian_epsilon
from ..data.arrays import Inputs
from ..data.kinds import WIDE
from ..data.persons import Means
from ..errors import ParameterError, ShapeError
from ..mechanism import Plan, PoissonSampler, mean_sanitizer, noisy_mean
from ..privacy import Filter
from ..privacy.accountant import Accountant
from ..privacy.events import Event
from ..run import Run
from ..util.validate import shown
from .average_noise import noise_of_average
from .column_look import equal
from .columns import (
    AIM,
    AIM_OF_NUMBERS,
    FARTHEST,
    MOST_COLUMNS,
    Look,
    Numbers,
    knots_of,
    pieces_of,
    places_of,
)
from .defaults import MEAN_SHARE, ROW_NORM, WITHOUT_PRIVACY, Choice, mu_of
from .mean import shrunk, shrunk_by_column
from .network import after
from .settings import Settings
from .target import FARTHEST as FARTHEST_OF_TARGET
from .target import Target

# what a category or flag is multiplied by after a look, to be as long as a number with its pieces
CATEGORY = 2.0
PARTS = 3  # of what is released with a table's mean
FEWEST_FOR_LENGTH = 80.0  # mu N of a mean that tells, without a look, how long rows are
PART_OF_NOISE = 0.2  # on weights, squared, that the fit forgets
# noise on the shares of classes with which these may become the model: where it can help, and where
# rows are too few for that
CLEAR_SHARES, FEWEST_ROWS_EACH = (0.015, 0.03), 3.0
# what that noise should be, for at most such parts of mu^2, without a look and with one: so that
# one step of two is left after an attempt that was killed before the first
SHARE_NOISE, MOST_MEAN_SHARE = 0.02, (0.3, 0.13)
LEAST_SPREAD = 0.05  # of rows around their mean, which noise may leave at nothing


class Head:
    """The fixed layers before the trained network. Their releases are charged before the first
    step.

    For the networks that `fit` makes, scaled rows have about the norm `defaults.ROW_NORM`. In a
    classification their noisy mean is subtracted. Rows that a schema encoded have parts of norm 1
    or less. Columns of a table are divided by the spread that a private look at them finds, if that
    can be afforded, and without hidden layers each column of numbers enters in pieces too. For the
    caller's network, rows are only scaled as `scale` says. For a table of classes their shares and
    the rows' mean square are released with the mean: the last bias starts at the shares'
    logarithms, and the model adds up terms of one column each. Other rows of a classification are
    divided by their own norm.

    scale       the scaling; "auto" is resolved
    target      a `Target` for a regression, otherwise None
    shape       shape of a row for the network
    unreleased  the layers before anything is released, with their final shapes
    """

    def __init__(self, settings: Settings, data: Any, budget: Filter) -> None:
        self.data, self.shape, self.dtype = data, data.shape, settings.dtype
        self.settings, self.mu = settings, mu_of(budget.epsilon, budget.delta)
        self.target = Target(data, self.mu) if data.labels is None else None
        flat, classes = len(data.shape) == 1, data.labels is not None
        self.places = places_of(settings.schema, data.shape)
        self.bounded: Any = settings.bounds is not None
        if settings.schema is not None:
            inputs = settings.schema.inputs
            self.bounded = [not each.open for each in inputs if each.look]
        self.bounds = None if settings.bounds is None else _checked(settings.bounds, data.shape)
        look = self._look(settings)
        self.scale = _scale_of(settings, data, look)
        self.look = look if look and _looks(settings, self.scale, look) else None
        if settings.schema and not self.look and not np.all(self.bounded):
            raise ParameterError(
                f"schema: {data.size} {data.units.name}s are too few, or scale= or network= leave "
                'out a private look at the columns: give "low" and "high" of all'
            )
        self.schema = None if settings.schema is None else settings.schema.to_json()
        self.ours = settings.network is None and self.scale != "none"
        self.centred = self.ours and classes
        # rows of which the caller says that their length carries nothing have the rule of images
        of_table = self.ours and flat and settings.scale != "unit-norm"
        plain = of_table and not settings.hidden_sizes
        self.table, self.of_classes = plain and classes, of_table and classes
        self.additive = self.table and self.scale != "unit-norm"
        self.row_norm = ROW_NORM if self.ours else 1.0
        self.pieces, self.weight = 0, 0.0
        if plain and self.places and self.scale != "unit-norm":
            mu = mu_of(min(budget.epsilon, WITHOUT_PRIVACY), budget.delta)
            looked = bool(self.look)
            self.pieces, self.weight = pieces_of(data.size, mu, len(self.places), looked=looked)
        self.first, columns = self._scaled_first(), len(self.places)
        unknown = self._of_columns(np.zeros(columns), np.ones(columns), None)
        self.unreleased = [*self.first, *unknown]  # of the shapes that they will have
        self.shape = data.shape
        if self.unreleased:
            self.shape = nn.Sequential(self.unreleased, data.shape).output_shape
        self.width = math.prod(self.shape)
        self.width_of_pieces = math.prod(self.shape) - math.prod(data.shape)
        others: float = len(settings.schema.inputs) - columns if settings.schema else 0
        others *= CATEGORY**2 if self.look else 1
        self.length = math.sqrt((1 + self.weight**2) * columns + others)  # of long rows
        if self.scale == "unit-norm":
            self.length = 1.0

    @property
    def how(self) -> dict[str, str]:
        """{part: how it is scaled} for the statement."""
        found = ["a private look at each column of numbers"] if self.look else []
        if self.pieces:
            found.append(f"{self.pieces} pieces of the range of each")
        found_of = {"columns": ", ".join(found)} if found else {}
        if self.target and self.target.look:
            found_of["target"] = (
                f"a private look, and limits {FARTHEST_OF_TARGET:g} spreads from it"
            )
        return {"scale": self.scale} | found_of

    def targets(self, y: NDArray) -> NDArray:
        """The targets as the network learns them."""
        return self.target.scaled(y) if self.target else y

    def _look(self, settings):
        """The look at the columns, even if it cannot be afforded; None without columns of
        numbers.
        """
        if not self.places:
            return None
        aim = AIM_OF_NUMBERS if self.target else AIM
        wide = self.bounds is not None and bool((self.bounds[1] - self.bounds[0] > WIDE).any())
        if settings.schema is not None:
            wide = any(each.wide for each in settings.schema.inputs)
        return Look(self.places, self.data.size, self.mu, self.bounded, aim, wide=wide)

    def _scaled_first(self):
        """The layers before any release."""
        if self.scale == "unit-norm":
            return [nn.UnitNorm("scale")]
        if self.bounds is None:
            return []
        low, high = self.bounds
        gives = "float64" if self.look else self.dtype
        scale = _standardise((low + high) / 2, (high - low) / 2, "scale", gives)
        return [scale, nn.Clamp(1.0)]

    def _of_columns(self, centre, spread, edges):
        """The layers for the columns of numbers; edges: None before they are known."""
        layers = []
        at = [place for place, _ in self.places]
        if self.look:
            mean, scale = np.zeros((2, math.prod(self.data.shape)))
            scale += 1 / CATEGORY
            mean[at], scale[at] = centre, spread
            mean, scale = mean.reshape(self.data.shape), scale.reshape(self.data.shape)
            layers = [_standardise(mean, scale, "columns", self.dtype), nn.Clamp(FARTHEST)]
        if self.pieces:
            if edges is None:
                edges = equal(-np.ones(len(at)), np.ones(len(at)), self.pieces)[:, 1:-1]
            knots = knots_of(edges).astype(self.dtype)
            layers.append(nn.Pieces(at, knots, self.weight, "pieces"))
        return layers

    def events(self, accountant: Accountant, sampler: PoissonSampler, delta: float) -> list[Event]:
        """The charges before the first step: for a look at the columns, and for a mean over one
        lot.
        """
        self.sampler, self.charges = sampler, self.target.events if self.target else []
        self.charges = self.charges + (self.look.events() if self.look else [])
        if self.centred:
            share = MEAN_SHARE
            if self.table:
                share = max(share, PARTS / (SHARE_NOISE * self.mu * self.data.size) ** 2)
            mu = self.mu * math.sqrt(min(share, MOST_MEAN_SHARE[self.look is not None]))
            mean = mean_sanitizer(1 / mu)
            if sampler.sampling_probability < 1 and mu < math.inf:
                # the noise that costs as much over a sampled lot as 1 / mu over all rows
                plan = Plan(sampler, mean, 1, 1.0)
                mean = plan.calibrated(accountant, gaussian_epsilon(mu, delta), delta).sanitizer
            event: Event = mean.event()
            if sampler.sampling_probability < 1:
                event = sampler.wrap(event)
            self.mean = mean
            if self.look is None and self.data.size * mu < FEWEST_FOR_LENGTH:
                self.additive = False
            self.charges = [*self.charges, event]
        return self.charges

    def layers(self, run: Run) -> list[nn.Layer]:
        """The layers; their constants are released through `run`."""
        layers, length, found = list(self.first), self.length, (None, None, None)
        if self.target:
            self.target.release(run)
            if self.ours:
                _bias_of(run.network)[...] = self.target.centre
        if self.look:
            # far from 0, float32 cannot distinguish close numbers
            rows = after(self.data.inputs, layers, "float64")
            numbers = Numbers(rows, self.places)
            found = self.look.release(run, numbers, self.data.units, self.pieces)
        layers += self._of_columns(*found)
        if not self.ours:
            return layers
        if self.centred:
            shorter = [_standardise(0, length, "length")] if length != 1 else []
            mean, spread = self._released_mean(run, [*layers, *shorter])
            mean = length * mean.reshape(self.shape)
            if self.additive:  # one layer, because each reads and writes all rows
                return [*layers, _standardise(mean, length * spread / ROW_NORM, "centre")]
            layers += [_standardise(mean, length, "centre"), nn.UnitNorm("unit")]
            length = 1.0
        return [*layers, _standardise(0, length / ROW_NORM, "stretch")]

    def shrink(self, network: nn.Sequential, choice: Choice, noise_std: float) -> list[int]:
        """Shrink the weights of each column of a classifier by the part that noise explains. The
        weights are released, so this costs nothing. Returns the numbers of the columns that may be
        noise alone.

        If these are all columns, and the noise on the shares of the classes is small, the model
        becomes the constant with these shares.

        noise_std: on each number of the mean gradient of a step
        """
        if not self.table:
            return []
        columns = np.arange(math.prod(self.data.shape))
        if self.settings.schema is not None:
            inputs = self.settings.schema.inputs
            columns = np.repeat(np.arange(len(inputs)), [each.width for each in inputs])
        names = np.unique(columns)
        if self.pieces:
            of_numbers = columns[[place for place, _ in self.places]]
            columns = np.concatenate([columns, np.repeat(of_numbers, self.pieces + 1)])
        else:  # a single weight shows no noise
            columns[:] = 0
        noise_std *= noise_of_average(choice)
        w, b = (network.params[network.layers[-1].name, name] for name in "Wb")
        found, noise = shrunk_by_column(to_host(w), columns, noise_std, PART_OF_NOISE)
        if noise and not self.pieces:
            noise = names.tolist()
        logs, on_shares = self.start
        few = self.data.size * self.mu < FEWEST_ROWS_EACH * len(names)
        if len(noise) == len(names) and on_shares < CLEAR_SHARES[few]:
            found[:] = 0
            b[...] = namespace_of(b).asarray(logs, dtype=b.dtype)
        w[...] = namespace_of(w).asarray(found, dtype=w.dtype)
        return noise

    def _released_mean(self, run, layers):
        """(noisy mean of a lot of scaled rows, or of persons' means; root mean square distance of
        rows from it). Of a table, the last bias is set to the shares of the classes, which are
        released with them.
        """
        data = self.data
        what = (
            "a noisy average over "
            f"{'a lot of' if self.sampler.sampling_probability < 1 else 'all'} {data.units.name}s"
        )
        if self.table:
            what += ", of the shares of the classes, and of a length"

        def release():
            streams, size = run.streams, run.plan.expected_lot_size
            (lot,) = self.sampler.lots(len(data.units), 1, lambda step: streams.sampling("mean"))
            rows = after(data.inputs, layers)
            rows = WithClasses(rows, data) if self.table else rows
            mean = noisy_mean(Means(rows, data.units, lot), self.mean, size, streams.noise("mean"))
            return mean.astype("float32")

        found = to_host(run.release_first("mean", self.charges[-1], what, release))
        if not self.table:
            return found, 1.0
        noise = math.sqrt(PARTS) * self.mean.groups[0].noise_std / run.plan.expected_lot_size
        found = math.sqrt(PARTS) * found.astype(np.float64)
        mean, shares, square = shrunk(found[: self.width], noise), found[self.width : -1], found[-1]
        self.start = _start_at(run.network, shares, noise), noise
        spread = math.sqrt(max(square - mean @ mean, noise, LEAST_SPREAD**2))
        return mean, spread


class WithClasses:
    """Rows of norm 1 or less, each extended by its weight in [0, 1], at the place of its class, and
    by its squared norm. All is divided by the square root of 3, so that the norm is again 1 or
    less.
    """

    def __init__(self, inputs: Inputs, data: Any) -> None:
        self.inputs, self.labels, self.classes = inputs, data.targets, data.outputs
        self.shape = inputs.shape[0], inputs.shape[1] + self.classes + 1
        self.weight, number = data.weight, getattr(data.units, "number", None)
        if self.weight is not None and number is not None:  # one number for each person
            self.weight = self.weight.take(namespace_of(self.weight).asarray(number))

    def take(self, indices: Any, axis: int = 0) -> NDArray:
        """The rows at an array of indices."""
        x = self.inputs.take(indices)
        xp = namespace_of(x)
        rows = xp.asarray(indices)
        mine = (self.labels.take(rows)[:, None] == xp.arange(self.classes)).astype(x.dtype)
        if self.weight is not None:
            mine *= xp.clip(self.weight.take(rows), 0, 1)[:, None]
        square = (x * x).sum(axis=1, keepdims=True)
        return xp.concatenate([x, mine, square], axis=1) / x.dtype.type(math.sqrt(PARTS))


def _start_at(network, shares, noise):
    """Set the last bias to the logarithms of the shares of the classes, and return it. A share
    counts as at least its noise.
    """
    logs = np.log(np.maximum(to_host(shares), max(noise, 1e-6)))
    logs -= logs.mean()
    bias = _bias_of(network)
    bias[...] = namespace_of(bias).asarray(logs, dtype=bias.dtype)
    return logs


def _bias_of(network):
    """The bias of the last layer."""
    return network.params[network.layers[-1].name, "b"]


def _scale_of(settings, data, look):
    """The scaling, with "auto" resolved. Raises ParameterError unless it suits the bounds."""
    scale, bounds = settings.scale, settings.bounds
    bounded = bounds is not None or settings.schema is not None
    without = bounds is not None and scale in ("unit-norm", "none")
    if without or scale == "bounds" and not bounded:
        raise ParameterError(
            "expected public bounds=(low, high) with scale='bounds', and none with 'unit-norm' or "
            f"'none', got scale={scale!r} and bounds={bounds!r:.80}"
        )
    if scale != "auto":
        return scale
    if bounded:
        return "bounds"
    if settings.network is not None:
        return "none"
    if len(data.shape) == 1 and len(look.places) <= MOST_COLUMNS:
        return "private" if look.affordable else "unit-norm"
    return "unit-norm"


def _looks(settings, scale, look):
    """Whether to look at the columns: if `scale` says so, or if a look can be afforded."""
    by_itself = settings.scale == "auto" and settings.network is None and look.affordable
    # bounds of so many columns, as of pixels, say more than noisy spreads of each
    by_itself = by_itself and (len(look.places) <= MOST_COLUMNS or not look.bounded.all())
    return scale == "private" or scale == "bounds" and by_itself


def _standardise(mean, spread, name, gives=None):
    """The layer; gives: dtype of its output if the constants are float64."""
    kind = "float32" if gives is None else "float64"
    mean, spread = (np.atleast_1d(np.asarray(each, kind)) for each in (mean, spread))
    return nn.Standardise(mean, spread, gives, name)


def _checked(bounds, shape):
    """(low, high) as arrays. Raises ParameterError unless low < high everywhere in float32."""
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
