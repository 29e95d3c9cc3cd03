"""A layer or a loss in a large batch: what rows give together is what each gives by itself, also in
float32, at numbers of very different sizes, and through everything that the trainer asks of
gradients. Yields problems in words.
"""

from functools import partial

import numpy as np

from ..arrays import to_host
from ..grads.forms import PerExampleGrad
from ..streams import Streams
from ..train.crowd import spread
from ..train.tried import direction, host_copy

ROWS = 100
NOT_A_NUMBER = 6  # the row that is
KINKS = slice(0, 6)  # rows of zeros, of a constant, with ties
PLACES = 4  # coordinates of such a row, each of which is moved
# relative errors that rounding makes, and of the largest row's size; and how many times more than
# in rows that are moved by it
ROUNDED, LARGEST, GROWN = {"float32": 1e-4, "float64": 1e-6}, 0.1, 100
JUMP = 0.01  # of a value, where the function has no slope
SHORT = {"float32": 1e-6, "float64": 1e-12}  # by which a norm that is rounded up may be too small
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

    def problems(self):
        """What is wrong, in words."""
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
            if self.x.dtype.kind == "f":
                yield from self._kinks()

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
        fine &= np.isfinite(alone)
        off, size = (_sizes(np.where(fine, each, 0)) for each in (got - alone, alone))
        allowed = ROUNDED[dtype] * (size + LARGEST * size.max())
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
        """What is wrong with what the trainer asks of gradients g (B, ...)."""
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
        """Derivatives where numbers are 0 or equal: between the slopes to both sides."""
        for x in np.split(self.kinks, len(self.kinks)):
            y, dx = self.slopes(x)
            if not np.isfinite(y):
                continue
            if not np.isfinite(dx).all():
                yield f"the gradient of {x.ravel()[:4]} is not finite, and its output is"
                return
            for at in self.rng.permutation(x.size)[:PLACES]:
                if not any(self._between(x, y, dx.ravel()[at], at, h) for h in (1e-6, 1e-3)):
                    yield f"the gradient by x of {x.ravel()[:4]} is not between both sides' slopes"
                    return

    def _between(self, x, y, slope, at, h):
        """Whether a slope is between those to both sides, or the function jumps."""
        ends = []
        for by in (h, -h):
            moved = x.copy()
            moved.ravel()[at] += by
            ends.append((self.slopes(moved)[0] - y) / by)
        most = max(np.abs([*ends, slope]))
        allowed = 1e-3 * most + 1e-6
        inside = min(ends) - allowed <= slope <= max(ends) + allowed
        return inside or most * h > JUMP or not np.isfinite(most)


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
    """Rows z of a loss; target(rows) are the targets of so many."""

    def __init__(self, loss, shape, rng, target):
        super().__init__(shape, rng)
        self.loss, self.target = loss, target(self.x.astype("float64"))
        self.where = f"loss {getattr(loss, '__name__', type(loss).__name__)}"

    def found(self, z, rows, training):
        """The losses and dz."""
        target = self.target[rows]
        target = target.astype(z.dtype) if target.dtype.kind == "f" else target
        losses, dz = map(to_host, self.loss(z, target))
        return {f"{self.where}: the loss": losses, f"{self.where}: dz": dz}

    def slopes(self, z):
        """(the loss, dz) of one row."""
        loss, dz = self.loss(z, self.target[:1])
        return float(loss[0]), dz


def both_signs(layer, first=1):
    """{dtype: copy} whose parameters are moved, one up, the next below 0, and so on."""
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
