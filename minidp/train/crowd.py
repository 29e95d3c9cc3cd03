"""A trial of the network under the conditions of training: in a large batch, its dtype, its device.

`selfcheck` compares gradients with finite differences, at a few rows in float64. This trial tries
`network.forward`, `network.param_grads` and the loss, whoever wrote them: a row among 63 others of
very different sizes must give the same results as by itself. Rounding differs between the two, and
may turn a ReLU on. So a fault counts only if it is found with three sets of rows.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import TrialError
from ..examples import LabelledExamples
from ..grads.forms import PerExampleGrad
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from .tried import direction, host_copy, targets

ROWS, TIMES = 64, 3
TAKEN = 8  # examples whose rows are taken both together and one at a time
# rows that are also computed by themselves
ALONE = (*range(8), 15, 16, 17, 23, 31, 32, 47, 63)
# how far a row's results in a batch may be from those by itself, relative to their own size and to
# the largest
APART = {"float32": (1e-2, 1e-5), "float64": (1e-6, 1e-9)}
REPEATED = 1e-6, 1e-7  # how far two calls may be apart for the same rows
# rounding that passes, relative: of a norm, of the longest norm, of a sum of 16 gradients of norm 1
ROUNDED, VANISHED, SUMMED = 1e-5, 1e-9, 1e-3
LITTLE = 4  # rows are moved by so many units in the last place to see how rounding changes results
GROWN = 100  # differences up to so many times that change count as rounding


def faults(network: Sequential, loss: Loss, y: NDArray, rng: np.random.Generator) -> Iterator[str]:
    """Describe each result of a row that differs between a large batch and the row by itself. y:
    the targets of training, (N, ...); only their dtype and the shape of one are used.
    """
    on_device = namespace_of(*network.params.values()).asarray
    own, wide = host_copy(network, None, on_device), host_copy(network)
    tries = [(_Network, own, on_device), (_Loss, own, on_device)]
    # once more in float64, where rounding hides less; layers are tried on the host
    tries += [(_Network, wide, np.asarray), (_Loss, wide, on_device)]
    for part, tried, asarray in tries:
        for _ in range(TIMES):
            found = list(part(tried, loss, y, rng, asarray).faults())
            if not found:
                break
        yield from found


def rows_that_mix(examples: LabelledExamples) -> Iterator[str]:
    """Describe rows of `Examples` that depend on the other rows taken with them. Rows that differ
    in each call cannot be compared, and arrays need no trial.
    """
    if not len(examples) or isinstance(examples.x, examples.xp.ndarray):
        return
    lot, draws = np.unique(np.linspace(0, len(examples) - 1, TAKEN).astype(int)), Streams(ROWS)

    def taken(units):
        (batch,) = examples.batches(units, len(units), draws.views(0))
        return to_host(batch.x).astype("float64")

    together = taken(lot)
    alone = np.concatenate([taken(lot[i : i + 1]) for i in range(len(lot))])
    again = np.concatenate([taken(lot[i : i + 1]) for i in range(len(lot))])
    if together.shape != alone.shape:
        yield (
            f"x: expected {alone.shape} numbers of {len(lot)} examples together, as by themselves, "
            f"got {together.shape}"
        )
    elif np.array_equal(alone, again, equal_nan=True):
        off, allowed = _apart(together, alone, APART["float32"])
        if not (off <= allowed).all():
            b = int((off <= allowed).argmin()) // examples.units.rows_per_unit
            yield (
                f"x: the row of example {lot[b]} changes with the other rows that are taken with "
                "it; `take` and `take_views` have to make each row from its own example alone"
            )


class _Crowd:
    """Rows x together and by themselves; a subclass gives `results(x, rows)`, {what: array (B, ...)
    or PerExampleGrad} of those rows.
    """

    def __init__(self, network, rng, shape, asarray):
        array = next(iter(network.params.values()))
        self.network, self.rng, self.dtype = network, rng, array.dtype.name
        self.asarray = asarray
        self.x = spread(rng, (ROWS, *shape)).astype(self.dtype)

    def faults(self):
        """Describe each difference."""
        every, chosen = np.arange(ROWS), list(ALONE)
        together = self.results(self.x, every)
        if misfits := [*_misfits(together)]:
            yield from misfits
            return
        again = self.results(self.x, every)
        for what, whole in together.items():
            found, expected = rows_of(again[what], chosen), rows_of(whole, chosen)
            off, allowed = _apart(found, expected, REPEATED)
            if not (off <= allowed).all():
                yield (
                    f"{what}: the same rows give other numbers in another call: something is kept "
                    "of a batch, and reaches the rows of the next; each example has to be computed "
                    "by itself"
                )
                return
        alone = self._alone(self.x)
        moved = None
        for what, whole in together.items():
            found, expected = rows_of(whole, chosen), alone[what]
            off, allowed = _apart(found, expected, APART[self.dtype])
            if (off <= allowed).all():
                yield from self._sums(what, whole, found)
                continue
            moved = moved or self._alone(self.x * (1 + LITTLE * np.finfo(self.dtype).eps))
            allowed = allowed + GROWN * _apart(moved[what], expected, (0, 0))[0]
            if not (off <= allowed).all():
                at = int((off <= allowed).argmin())
                yield (
                    f"{what} of example {chosen[at]} changes with the other examples of a batch of "
                    f"{ROWS} (by {off[at]:.2g}: {_sizes(expected)[at]:.3g} by itself); each "
                    "example has to be computed by itself"
                )

    def _alone(self, x):
        """{what: array} of the rows ALONE, each computed by itself."""
        found = [self.results(x[b : b + 1], np.array([b])) for b in ALONE]
        return {
            what: np.concatenate([rows_of(each[what], [0]) for each in found]) for what in found[0]
        }

    def _sums(self, what, grads, found):
        """Describe norms and weighted sums that do not fit the gradients `found` of the rows
        ALONE.
        """
        if not isinstance(grads, PerExampleGrad):
            return
        finite = np.isfinite(found).reshape((len(ALONE), -1)).all(axis=1)
        chosen, found = np.array(ALONE)[finite], found[finite]
        norms = _sizes(found)
        longest = norms.max(initial=0)
        upper = np.sqrt(to_host(grads.sq_norms_upper())[chosen])
        if (low := upper < norms * (1 - ROUNDED) - VANISHED * longest).any():
            b = int(low.argmax())
            yield (
                f"{what}: example {chosen[b]} has norm {norms[b]:.6g}, and the squared norms, "
                f"rounded up, say {upper[b]:.6g}: it would be clipped too little"
            )
        if longest > 0:
            weights = np.zeros(ROWS)
            scale = np.maximum(norms, longest / 1e3)
            weights[chosen] = self.rng.uniform(0.5, 1, len(chosen)) / scale
            total = to_host(grads.weighted_sum(self.asarray(weights), 0))
            off = np.linalg.norm(total - np.tensordot(weights[chosen], found, 1))
            if not off <= SUMMED:
                yield f"{what}: a weighted sum over {ROWS} examples is not that of their gradients"


class _Network(_Crowd):
    """Outputs and gradients of the whole network."""

    def __init__(self, network, loss, y, rng, asarray):
        super().__init__(network, rng, network.input_shape, asarray)
        if network.takes_ids:
            known = getattr(network.layers[0], "vocabulary", 2)
            self.x = rng.integers(-1, known, self.x.shape)
        self.draws = Streams(ROWS).dropout(0)
        self.dy = direction(rng, (ROWS, *network.output_shape)).astype(self.dtype)

    def results(self, x, rows):
        x, dy = self.asarray(x), self.asarray(self.dy[rows])
        z, caches = self.network.forward(x, rng=self.draws.rows(rows))
        found = {"network: the output": z}
        grads = self.network.param_grads(dy, caches)
        for key in self.network.params:
            what = f"{'.'.join(key)}: the per-example gradient"
            if not isinstance(grads.get(key), PerExampleGrad):
                raise TrialError(
                    f"{what}: expected a PerExampleGrad such as grads.Explicit, got "
                    f"{type(grads.get(key)).__name__}: a sum over examples cannot be clipped per "
                    "example"
                )
            found[what] = grads[key]
        return found


class _Loss(_Crowd):
    """Losses and their gradients."""

    def __init__(self, network, loss, y, rng, asarray):
        super().__init__(network, rng, network.output_shape, asarray)
        self.loss, self.targets = loss, targets(y, self.x, rng)
        self.where = f"loss {getattr(loss, '__name__', type(loss).__name__)}"

    def results(self, x, rows):
        losses, dz = self.loss(self.asarray(x), self.asarray(self.targets[rows]))
        return {f"{self.where}: the loss": losses, f"{self.where}: dz": dz}


def _misfits(results):
    """Describe results that do not have one row per example."""
    for what, found in results.items():
        rows = found.n_examples if isinstance(found, PerExampleGrad) else found.shape[:1]
        if rows not in (ROWS, (ROWS,)):
            yield (
                f"{what}: expected one for each of {ROWS} examples, got {rows}; nothing sums or "
                "averages over examples"
            )


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Rows of sizes from 1e-3 to 1e3. The first six are a row of zeros, a constant row, two equal
    rows, one with zeros and one with ties.
    """
    x = rng.standard_normal(shape)
    x *= 10.0 ** rng.uniform(-3, 3, (shape[0],) + (1,) * (len(shape) - 1))
    x[0] = 0
    x[1] = 1
    x[2] = x[3]
    x[4] = np.maximum(x[4], 0)
    x[5] = np.sign(x[5])
    return x


def rows_of(found, rows):
    """The results of these rows, on the host, in float64."""
    if not isinstance(found, PerExampleGrad):
        return to_host(found)[rows].astype("float64")
    one = found.xp.ones(1)
    return np.array([to_host(found.rows(b, b + 1).weighted_sum(one)) for b in rows])


def _apart(found, expected, tolerance):
    """(B,) differences between the rows' results, infinite where only one of the two is finite; and
    (B,) the largest differences that are allowed.
    """
    finite = np.isfinite(expected)
    same = (finite == np.isfinite(found)).reshape((len(expected), -1)).all(axis=1)
    off = _sizes(np.where(finite, found, 0) - np.where(finite, expected, 0))
    sizes = _sizes(np.where(finite, expected, 0))
    relative, largest = tolerance
    return np.where(same, off, np.inf), relative * sizes + largest * sizes.max()


def _sizes(rows):
    """(B,) the L2 norm of each row."""
    return np.sqrt((rows**2).reshape((len(rows), -1)).sum(axis=1))
