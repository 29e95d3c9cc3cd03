"""Layers and losses with the mistakes that people make, and the words in which both trial and audit
name them.
"""

import numpy as np

from minidp import nn
from minidp.grads import Explicit


class Scaled(nn.Layer):
    """y = s f(x), one s per feature; dx = s slope(x, dy), and the gradients of s are grads(f(x)
    dy).
    """

    kind = "scaled"

    def __init__(self, f=np.copy, slope=lambda x, dy: dy, grads=lambda g: {"s": Explicit(g)}):
        super().__init__()
        self.f, self.slope, self.grads, self.params = f, slope, grads, {"s": np.full(3, 2.0)}

    def compute_y(self, x, rng):
        value = self.f(x)
        return (value * self.params["s"]).astype(value.dtype), (x, value)

    def compute_dx(self, dy, kept):
        return (self.slope(kept[0], dy) * self.params["s"]).astype(dy.dtype)

    def compute_grads(self, dy, kept):
        return self.grads(kept[1] * dy)


class Keeping(Scaled):
    """Keeps x in the layer, where batches that run beside each other find another's."""

    def compute_y(self, x, rng):
        self.kept = x
        return super().compute_y(x, rng)

    def compute_grads(self, dy, kept):
        return {"s": Explicit(self.kept * dy)}


class Listing(Scaled):
    """Keeps the means of all batches in a list, which nothing reads."""

    def __init__(self):
        super().__init__()
        self.means = []

    def compute_y(self, x, rng):
        self.means.append(x.mean(axis=0))
        return super().compute_y(x, rng)


class Normalising(Scaled):
    """Batch normalisation that keeps its means: other rows matter in training only."""

    def compute_y(self, x, rng):
        if rng is not None:
            self.constants["mean"] = x.mean(axis=0)
            x = x - self.constants["mean"]
        return super().compute_y(x, rng)


class Own(nn.Sequential):
    """A network whose own `param_grads` divides by the number of examples."""

    def param_grads(self, dy, caches):
        return super().param_grads(dy / len(dy), caches)


def mixing(network):
    """The network, whose `forward` was replaced on the instance by one that mixes examples."""
    forward = network.forward

    def mixed(x, *, rng=None):
        z, caches = forward(x, rng=rng)
        return z - z.mean(axis=0), caches

    network.forward = mixed
    return network


class Counting(Scaled):
    """Subtracts the batch mean from the fourth call on; the count is in a closure."""

    def __init__(self):
        calls = []

        def f(x):
            calls.append(0)
            return x - x.mean(axis=0) if len(calls) > 3 else x

        super().__init__(f)


def above(rows, f):
    """f(x) for batches of more than so many rows, else x."""
    return lambda x: f(x) if len(x) > rows else x


def gathered(g):
    """All gradients in the first row, in batches of more than four rows."""
    if len(g) <= 4:
        return {"s": Explicit(g)}
    found = np.zeros_like(g)
    found[0] = g.sum(axis=0)
    return {"s": Explicit(found)}


class SlightlyShort(Explicit):
    """Norms that are too small in batches of more than 16 rows."""

    def sq_norms_upper(self):
        return super().sq_norms_upper() * (0.999 if self.n_examples > 16 else 1)


class Overwriting(Explicit):
    """Adds up only the first 32 examples."""

    def add_weighted_sum(self, total, w, rows=0):
        super().add_weighted_sum(total, np.where(np.arange(len(w)) < 32, w, 0), rows)


def centre(x):
    return x - x.mean(axis=0)


class Underestimated(Explicit):
    """Norms that are too small: clipped too little."""

    def sq_norms_upper(self):
        return 0.5 * self.sq_norms()


class HalfSum(Explicit):
    def weighted_sum(self, w):
        return 0.5 * super().weighted_sum(w)


def changed(change):
    """A squared error, changed: (losses, dz) after `change`."""

    def wrong(z, target):
        return change(*nn.SquaredError()(z, target))

    return wrong


def centred(z, target):
    return nn.SquaredError()(z - z.mean(axis=0), target)


GRADIENT = r"scaled1?\.s: the per-example gradient"
LAYERS = [
    (
        Scaled(lambda x: x - x.mean(axis=0)),
        r"scaled1?: the output of example \d changes with .* \(by \d\.\d.*: .* among \d examples, "
        r"0 by itself\)",
    ),
    (
        Scaled(lambda x: x**3, lambda x, dy: 2 * x**2 * dy),
        r"scaled1?: dx is not the derivative of the forward pass: along a random .* example \d .* "
        r"\(relative error 0\.\d",
    ),
    (Keeping(), r"scaled1?: scaled1?\.kept changes in a forward pass: what the layer keeps"),
    (Listing(), r"scaled1?: scaled1?\.means changes in a forward pass: what the layer keeps"),
    (
        Normalising(),
        r"scaled1?: the output of example \d changes with",
    ),
    (
        Scaled(lambda x: np.multiply(x, 2, out=x), lambda x, dy: 2 * dy),
        "scaled1?: an argument is changed in place",
    ),
    (
        Scaled(grads=lambda g: {"s": Explicit(1.01 * g)}),
        rf"{GRADIENT} is not the derivative .* error 0\.0\d+\)",
    ),
    (
        Scaled(grads=lambda g: {"s": Explicit(g / len(g))}),
        rf"{GRADIENT} shrinks with the batch size: .* a 1/B",
    ),
    (
        Scaled(grads=lambda g: {"s": Explicit(g - g.mean(axis=0))}),
        rf"{GRADIENT} of example \d changes with",
    ),
    (
        Scaled(grads=lambda g: {"s": g.sum(axis=0)}),
        f"{GRADIENT}: expected a PerExampleGrad .*, got ndarray: a sum",
    ),
    (
        Scaled(grads=lambda g: {"s": Explicit(g.sum(axis=0, keepdims=True))}),
        rf"{GRADIENT}: expected shape \(\d, 3\), got \(1, 3\); nothing sums or averages over "
        rf"examples",
    ),
    (
        Scaled(grads=lambda g: {}),
        "scaled1?: expected compute_grads to return .* s by name, got none",
    ),
    (Scaled(grads=lambda g: None), "scaled1?: expected compute_grads to .* by name, got NoneType"),
    (
        Scaled(grads=lambda g: {"s": Underestimated(g)}),
        f"{GRADIENT}: squared norms, rounded up,: expected",
    ),
    (Scaled(grads=lambda g: {"s": HalfSum(g)}), f"{GRADIENT}: weighted sum: expected"),
]
LOSSES = [
    (
        changed(lambda losses, dz: (losses.mean(), dz / len(dz))),
        r"loss wrong: the loss: expected shape \(\d,\), got \(\); nothing sums or averages over "
        r"examples",
    ),
    (
        changed(lambda losses, dz: (losses, dz / len(dz))),
        r"loss wrong: dz shrinks with the batch size: .* among \d examples, .* by itself. It "
        r"carries a 1/B",
    ),
    (changed(lambda losses, dz: (losses, 2 * dz)), "loss wrong: dz is not the derivative"),
    (centred, r"loss centred: (dz|the loss) of example \d changes with the other examples"),
]
# what shows in large batches, in float32, at large or small numbers or at exact zeros only
LARGE = {
    "scaled by the largest number of the batch, if above 3": Scaled(
        lambda x: 3 * x / max(abs(x).max(), 3)
    ),
    "batch norm of more than 4 rows": Scaled(above(4, centre)),
    "batch norm of more than 8 rows": Scaled(above(8, centre)),
    "batch norm of more than 16 rows": Scaled(above(16, centre)),
    "float32 only": Scaled(lambda x: centre(x) if x.dtype == np.float32 else x),
    "beyond 10 only": Scaled(lambda x: centre(x) if abs(x).max() > 10 else x),
    "at zeros only": Scaled(lambda x: centre(x) if (x == 0).any() else x),
    "sorted rows": Scaled(above(4, lambda x: np.sort(x, axis=0))),
    "the next row is added": Scaled(above(4, lambda x: x + np.roll(x, 1, axis=0))),
    "from the fourth call on": Counting(),
    "gradients gathered in the first row": Scaled(grads=gathered),
    "norms a little too small": Scaled(grads=lambda g: {"s": SlightlyShort(g)}),
    "a sum of the first rows": Scaled(grads=lambda g: {"s": Overwriting(g)}),
}
LARGE_LOSSES = {
    "a mean over more than 4 rows": changed(
        lambda losses, dz: (losses, dz / (len(dz) if len(dz) > 4 else 1))
    ),
    "the hardest half of more than 16 rows": changed(
        lambda losses, dz: (
            (losses, dz * (losses >= np.median(losses))[:, None]) if len(dz) > 16 else (losses, dz)
        )
    ),
    "float32 only": changed(
        lambda losses, dz: (losses, dz - dz.mean(axis=0) if dz.dtype == np.float32 else dz)
    ),
    "beyond 100 only": changed(
        lambda losses, dz: (losses, dz / len(dz) if abs(dz).max() > 100 else dz)
    ),
}
