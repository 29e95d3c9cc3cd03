"""Sums of outer products whose terms cancel, so that rounding may be all that is left."""

from minidp.audit.checks.exact_values import fractions

SUMS = [(2, 6, 1.0, 0.1), (2, 6, 0.0, 0.1), (2, 6, 0.0, 1e-4), (7, 40, 1e-3, 0), (20, 3, 1e-6, 0)]


def cancelling_sum(rng, positions, inner, noise, left):
    """(a, d, exact squared norms): rows of a differ by `noise`, those of d are nearly opposite."""
    a = rng.standard_normal((8, 1, inner)) + noise * rng.standard_normal((8, positions, inner))
    d = rng.standard_normal((8, positions, 5))
    a, d = a.astype("float32"), (d - (1 - left) * d.mean(axis=1, keepdims=True)).astype("float32")
    exact = (fractions(a)[:, :, :, None] * fractions(d)[:, :, None, :]).sum(axis=1)
    return a, d, (exact**2).sum(axis=(1, 2))
