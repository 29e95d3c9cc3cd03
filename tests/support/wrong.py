"""Layers and losses with the mistakes that people make, for the tests of what finds them."""
import numpy as np

from minidp import nn
from minidp.grads import Explicit
from minidp.nn.layer import Layer


class Centre(Layer):
    """Subtracts the mean of the batch."""

    kind = "centre"

    def compute_y(self, x, rng):
        return x - x.mean(axis=0), None

    def compute_dx(self, dy, kept):
        return dy


class Cubed(Layer):
    """y = x^3, kinks nowhere; dx as given by `slope`."""

    kind = "cubed"
    slope = staticmethod(lambda x: 3 * x**2)

    def compute_y(self, x, rng):
        return x**3, x

    def compute_dx(self, dy, x):
        return dy * self.slope(x)


class WrongSlope(Cubed):
    slope = staticmethod(lambda x: 2 * x**2)


class MeaningIt(WrongSlope):
    surrogate = True


class Running(Cubed):
    """Keeps a running mean of what it saw, and so mixes batches."""

    mean = 0.0

    def compute_y(self, x, rng):
        self.mean = 0.9 * self.mean + 0.1 * float(x.mean())
        return x - self.mean, x


class InPlace(Cubed):
    def compute_y(self, x, rng):
        x *= 2
        return x, x


class Scale(Layer):
    """y = x s, one number per feature; `grads` of (x, dy) says what the gradients are."""

    kind = "scale"

    def __init__(self, grads):
        super().__init__()
        self.params, self.grads = {"s": np.full(3, 2.0)}, grads

    def compute_y(self, x, rng):
        return x * self.params["s"], x

    def compute_dx(self, dy, x):
        return dy * self.params["s"]

    def compute_grads(self, dy, x):
        return self.grads(x, dy)


class Underestimated(Explicit):
    """Norms that are too small: clipped too little."""

    def sq_norms_upper(self):
        return 0.5 * self.sq_norms()


def mean_loss(z, target):
    losses, dz = nn.SquaredError()(z, target)
    return losses.mean(), dz / len(z)


def shrinking(z, target):
    losses, dz = nn.SquaredError()(z, target)
    return losses, dz / len(z)


def centred(z, target):
    return nn.SquaredError()(z - z.mean(axis=0), target)


def doubled(z, target):
    losses, dz = nn.SquaredError()(z, target)
    return losses, 2 * dz
