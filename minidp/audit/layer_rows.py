"""A layer or a loss in a large batch: rows together must give the results of each row by itself, in
float32 too, for numbers of very different sizes, and in all uses of gradients by the trainer.
Problems are yielded in words.
"""

from functools import partial

import numpy as np

from ..arrays import to_host
from ..errors import TrialError
from ..grads.forms import PerExampleGrad
from ..streams import Streams
from ..train.crowd import spread
from ..train.tried import direction, host_copy

ROWS = 100
NOT_A_NUMBER = 6  # the row that is NaN
KINKS = slice(0, 6)  # rows of zeros, of a constant, with ties
PLACES = 4  # coordinates of such a row, each of which is moved
# relative errors that rounding makes, and of the largest row's size; and how many times more than
# in rows that are moved by it
ROUNDED, LARGEST, GROWN = {"float32": 1e-4, "float64": 1e-6}, 0.1, 100
NO_CLASS = 7  # each so many rows have a target that is no class
MORE = 1000  # rows, the same again and again
# of a value, where the function is another at one place; slopes that pass for a jump
JUMP, STEEP, DISTANCES = 0.01, 1e4, (1e-6, 1e-3)
SHORT = {"float32": 1e-6, "float64": 1e-12}  # by which a norm that is rounded up may be too small
HUGE = 1e30  # numbers that float32 holds
# (dtype together, dtype alone, whether as in training, whether with strides)
COMPARED = (
    ("float32", "float64", False, False),
    ("float32", "float32", True, False),
    ("float64", "float64", True, True),
)


class ManyRows:
    """`ROWS` rows x (B, ...) of a function; a subclass gives `found(x, rows, training)`, {what:
    array or PerExampleGrad} for x of either dtype, and `slopes(x)`, (values, their gradient by x).
    """

    def __init__(self, shape, rng):
        rows = spread(rng, (ROWS, *shape)).astype("float32")
        self.rng, self.kinks, self.x = rng, rows[KINKS].astype("float64"), rng.permutation(rows)
        self.x[NOT_A_NUMBER] = np.nan
        self.largest = np.nan_to_num(_sizes(self.x))

    def problems(self, kinks):
        """Yield problems in words. kinks: whether the function has enough digits for a look at
        kinks.
        """
        with np.errstate(all="ignore"):
            for dtype, by_itself, training, strided in COMPARED:
                x = self.x.astype(dtype) if self.x.dtype.kind == "f" else self.x
                x = np.repeat(x, 2, axis=-1)[..., ::2] if strided else x
                found = self.found(x, np.arange(ROWS), training)
                alone = self._alone(by_itself, training)
                moved = partial(self._alone, by_itself, training, np.finfo("float32").eps)
                for what, whole in found.items():
                    problems = self._compared(what, whole, alone[what], dtype, by_itself, moved)
                    yield from (f"{what}{problem}" for problem in problems)
                yield from self._of_sizes(x, training, found)
            if kinks and self.x.dtype.kind == "f":
                yield from self._kinks()

    def _of_sizes(self, x, training, found):
        """Yield a problem if rows change in batches of MORE rows, or of as many as an axis of a
        result is long.
        """
        lengths = {n for each in found.values() for n in _array(each).shape[1:] if n > 1}
        for size in sorted({MORE, *lengths}):
            rows = np.resize(np.arange(ROWS), size)
            for what, whole in self.found(x[rows], rows, training).items():
                got, expected = _array(whole), _array(found[what])[rows]
                fine = np.isfinite(expected)
                off, most = (_sizes(np.where(fine, each, 0)) for each in (got - expected, expected))
                if not (off <= ROUNDED["float32"] * (most + LARGEST * most.max(initial=0))).all():
                    yield f"{what} of a row changes in a batch of {size} rows"

    def _alone(self, dtype, training, by=0):
        """{what: array} of rows by themselves, moved by a relative number."""
        x = (self.x * (1 + by)).astype(dtype) if self.x.dtype.kind == "f" else self.x
        each = [self.found(x[b : b + 1], np.array([b]), training) for b in range(ROWS)]
        return {what: np.concatenate([_array(one[what]) for one in each]) for what in each[0]}

    def _compared(self, what, whole, alone, dtype, by_itself, moved):
        got = _array(whole)
        fine = np.isfinite(got)
        if dtype == by_itself and not np.array_equal(fine, np.isfinite(alone)):
            yield ": a row that is not finite changes others, or others make a row so"
            return
        known = np.isfinite(alone)
        if (known & ~fine & (np.abs(alone) < HUGE)).any():
            yield f" in {dtype} is not finite where it is in {by_itself}: an exp that overflows?"
        fine &= known
        off, size = (_sizes(np.where(fine, each, 0)) for each in (got - alone, alone))
        allowed = ROUNDED[dtype] * (size + LARGEST * size.max())
        if dtype != by_itself:  # such as 1 - s near s = 1, times the square of a number
            allowed += GROWN * np.finfo(dtype).eps * (1 + self.largest) ** 2
        if not (off <= allowed).all():
            allowed += GROWN * _sizes(np.where(fine, moved()[what] - alone, 0))
        if not (off <= allowed).all():
            b = int((off <= allowed).argmin())
            yield (
                f" of row {b} of {ROWS}, in {dtype}, differs by {off[b]:.2g} from what it is by "
                f"itself in {by_itself} ({size[b]:.3g})"
            )
        elif isinstance(whole, PerExampleGrad):
            yield from (f": {problem}" for problem in self._asked(whole, got, dtype))

    def _asked(self, grad, g, dtype):
        """Yield problems in the trainer's uses of gradients g (B, ...)."""
        g, rounded = g.astype("float64"), ROUNDED[dtype]
        finite = np.isfinite(_sizes(g))
        squares, known = _sizes(g) ** 2, np.where(_shaped(finite, g), g, 0)
        upper = to_host(grad.sq_norms_upper())
        low = finite & ~(upper >= squares * (1 - SHORT[dtype]))
        if low.any():
            b = int(low.argmax())
            yield f"squared norms, rounded up, of row {b}: {upper[b]:.9g}, below {squares[b]:.9g}"
        weights = np.where(finite, self.rng.uniform(0, 1, ROWS), 0)
        weights[::5] = 0
        weights /= np.maximum(_sizes(known), 1)
        begun = self.rng.standard_normal(grad.shape)
        total = np.array(begun)
        grad.add_weighted_sum(total, weights)
        views, half = to_host(grad.sum_over_views(2).materialise()), ROWS // 2
        for name, got, expected in (
            ("squared norms", to_host(grad.sq_norms())[finite], squares[finite]),
            ("weighted_sum", grad.weighted_sum(weights), np.tensordot(weights, known, 1)),
            ("add_weighted_sum", total - begun, np.tensordot(weights, known, 1)),
            ("rows", _array(grad.rows(3, half)), g[3:half]),
            ("explicit", _array(grad.explicit()), g),
            ("sum_over_views", views, g.reshape((half, 2, *g.shape[1:])).sum(axis=1)),
        ):
            if np.shape(got) != expected.shape or not np.allclose(
                got,
                expected,
                rounded,
                rounded * np.abs(expected[np.isfinite(expected)]).max(initial=0),
                True,
            ):
                yield f"{name} is not that of the gradients of {ROWS} rows"

    def _kinks(self):
        """Check derivatives where numbers are 0 or equal: they must be between the slopes on both
        sides.
        """
        for x in np.split(self.kinks, len(self.kinks)):
            y, dx = self.slopes(x)
            if not np.isfinite(y):
                continue
            if not np.isfinite(dx).all():
                yield f"the gradient of {x.ravel()[:4]} is not finite, and its output is"
                return
            ways = np.eye(x.size)[self.rng.permutation(x.size)[:PLACES]]
            for way in (*ways, np.ones(x.size)):
                if problem := self._around(x, y, way.reshape(x.shape), dx):
                    yield f"{problem} at {x.ravel()[:4]}"
                    return

    def _around(self, x, y, way, dx):
        """The problem with a slope along a direction: it is not between those on both sides,
        although the function does not jump; or the function has another value at x alone.
        """
        inside, jumps, slope = False, [], (dx * way).sum()
        for h in DISTANCES:
            ends = up, down = [self.slopes(x + by * way)[0] - y for by in (h, -h)]
            allowed = 1e-3 * max(abs(up / h), abs(down / h), abs(slope)) + 1e-6
            low, high = sorted((up / h, -down / h))
            inside |= low - allowed <= slope <= high + allowed
            jumps += ends
        sizes = np.abs(jumps)
        inside |= sizes[:2].max() > STEEP * DISTANCES[0] or not np.isfinite(sizes).all()
        if JUMP < sizes.min() < np.inf and np.ptp(jumps) < JUMP * sizes.min():
            return "the output there is another than close to it,"
        return "" if inside else "the gradient by x is not between both sides' slopes,"


class LayerRows(ManyRows):
    """Rows of a layer whose parameters have both signs."""

    def __init__(self, layer, shape, rng):
        super().__init__(shape, rng)
        self.layers = both_signs(layer)
        if layer.takes_ids:
            known = getattr(layer, "vocabulary", None) or len(
                next(iter(layer.params.values()), "12")
            )
            self.x = rng.integers(-1, known, self.x.shape)
        self.where, self.draws = layer.where, Streams(ROWS).dropout(0)
        y = self.layers["float64"].forward(self.x if layer.takes_ids else self.x.astype("float64"))[
            0
        ]
        self.dy = direction(rng, y.shape)

    def found(self, x, rows, training):
        """The output, dx and gradients by the parameters."""
        layer = self.layers["float32" if x.dtype == "float32" else "float64"]
        y, cache = layer.forward(x, rng=self.draws.rows(rows) if training else None)
        dy = self.dy[rows].astype(y.dtype)
        grads = layer.param_grads(dy, cache)
        return {
            f"{self.where}: the output": y,
            f"{self.where}: dx": layer.backward(dy, cache),
            **{f"{self.where}.{name}: the gradient": grad for name, grad in grads.items()},
        }

    def slopes(self, x):
        """(sum of y dy, dx) of one row."""
        y, cache = self.layers["float64"].forward(x)
        dy = np.abs(self.dy[:1]).astype(y.dtype)  # so that windows do not cancel
        return (y * dy).sum(), self.layers["float64"].backward(dy, cache)


class LossRows(ManyRows):
    """Rows z of a loss; target(rows) draws their targets."""

    def __init__(self, loss, shape, rng, target):
        super().__init__(shape, rng)
        self.loss, self.target = loss, target(self.x.astype("float64"))
        if self.target.dtype.kind == "f":  # of any size; one is not a number
            self.target = self.target * spread(rng, (ROWS,) + (1,) * (self.target.ndim - 1))
            self.target[NOT_A_NUMBER + 1] = np.nan
        elif self.target.dtype.kind == "i":
            self.target[::NO_CLASS] = -1
        self.where = f"loss {getattr(loss, '__name__', type(loss).__name__)}"

    def found(self, z, rows, training):
        """The losses and dz."""
        target = self.target[rows]
        target = target.astype(z.dtype, copy=False) if target.dtype.kind == "f" else target
        before = target.tobytes()
        losses, dz = map(to_host, self.loss(z, target))
        if target.tobytes() != before:
            raise TrialError("an argument is changed in place, which others still need")
        return {f"{self.where}: the loss": losses, f"{self.where}: dz": dz}

    def slopes(self, z):
        """(the loss, dz) of one row."""
        loss, dz = self.loss(z, self.target[:1])
        return float(loss[0]), dz


def both_signs(layer, first=1):
    """{dtype: copy} with moved parameters: one up, the next below 0, and so on."""
    copies = {dtype: host_copy(layer, dtype) for dtype in ("float32", "float64")}
    for name, array in layer.params.items():
        sizes = np.abs(to_host(array)) + np.linspace(0.2, 0.7, array.size).reshape(array.shape)
        signs = first * np.resize([1, -1], array.shape)
        for dtype, each in copies.items():
            each.params[name] = np.asarray((signs * sizes).astype("float32"), dtype)
    return copies


def _array(found):
    return to_host(found.materialise() if isinstance(found, PerExampleGrad) else found)


def _shaped(rows, like):
    return rows.reshape((-1,) + (1,) * (like.ndim - 1))


def _sizes(rows):
    """(B,) L2 norms, in float64."""
    return np.sqrt((rows.astype("float64") ** 2).reshape((len(rows), -1)).sum(axis=1))
