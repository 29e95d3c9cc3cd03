"""An attack on the rounding of matrix products: one example more changes the last bits of other
examples' rows.

A pre-activation within rounding of 0 then flips its ReLU, and whole gradients of other examples
appear in the sum. How BLAS rounds depends on its kernels: the attack reaches 20.5 C with OpenBLAS's
Haswell kernels, 3.0 C with SkylakeX's and Sandybridge's, 2.0 C with Prescott's. In float32 the test
is expected to fail. In float64 all batches of a run have the same number of rows.
"""

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples
from minidp.mechanism import Sanitizer, flat_group
from minidp.train.batching import Batching

CLIP = 0.01


def network(inputs, hidden, dtype, image=()):
    """Two layers, all hidden units alike: the worst parameters for this attack. image: the first is
    a convolution of it.
    """
    rng = np.random.default_rng(3)
    first = (
        nn.Conv2D(image[2], hidden, image[0], rng=rng, bias=False, padding="valid", dtype=dtype)
        if image
        else nn.Dense(inputs, hidden, rng=rng, bias=False, dtype=dtype)
    )
    found = nn.Sequential(
        [first, nn.ReLU(), nn.Flatten(), nn.Dense(hidden, 2, rng=rng, bias=False, dtype=dtype)],
        image or (inputs,),
    )
    W, V = found.params.values()
    W[...], V[...] = W[..., :1], V[:1]
    return found


def batches(net, x, expected):
    """The trainer's batches of lots of all rows, of the public expected size."""
    examples = LabelledExamples(x.reshape((len(x), *net.input_shape)), np.zeros(len(x), int))
    for shard in Batching(net, 1, None, expected).shards(examples, np.arange(len(x)), None):
        yield from shard


def is_on(net, x, expected):
    """(rows, hidden): where the ReLU lets something through."""
    parts = [net.layers[0].forward(b.x)[0] for b in batches(net, x, expected)]
    weights = [
        np.ones(len(b.x)) if b.weight is None else b.weight for b in batches(net, x, expected)
    ]
    on = np.concatenate(parts)[np.concatenate(weights) > 0] > 0
    return on.reshape((len(x), -1))


def chosen_data(net, W, examples):
    """Rows orthogonal to W but for rounding, redrawn until the first row's presence turns their
    ReLU on.
    """
    rng = np.random.default_rng(0)
    w, base = W[:, :1].astype("float64"), rng.standard_normal(len(W))
    inverse = np.linalg.pinv(w.T @ w) @ w.T

    def candidates(n):
        x = base + 0.2 * rng.standard_normal((n, len(W)))
        return (x - (x @ w) @ inverse).astype(W.dtype)

    x = candidates(examples)
    for _ in range(100):
        flips = is_on(net, x, examples)[1:] & ~is_on(net, x[1:], examples)
        wanted = np.flatnonzero(~np.r_[True, flips.all(axis=1)])
        if not len(wanted):
            break
        x[wanted] = candidates(len(wanted))
    return x


def clipped_sum(net, x, expected):
    sanitizer, total = Sanitizer(flat_group(net.params, CLIP, 0.0)), {}
    for batch in batches(net, x, expected):
        z, caches = net.forward(batch.x)
        _, dz = nn.SoftmaxCrossEntropy()(z, batch.y)
        sanitizer.add_clipped(net.param_grads(dz, caches), total, batch.weight)
    return np.concatenate([raw.ravel() for raw in total.values()])


FLIPS = pytest.mark.xfail(strict=True, reason="not covered: products round by the number of rows")


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=FLIPS), "float64"])
def test_an_example_does_not_change_the_gradients_of_others(dtype):
    for inputs, hidden, image, examples in (
        (256, 1, (), 120),
        (60, 10, (), 120),
        (60, 16, (), 120),
        (256, 32, (), 120),
        (64, 16, (4, 4, 4), 120),
        (64, 1, (4, 4, 4), 2),
        (256, 1, (), 2),
        (60, 10, (), 600),
    ):
        net = network(inputs, hidden, dtype, image)
        W = next(iter(net.params.values())).reshape((inputs, hidden))
        x = chosen_data(net, W, examples)
        moved = clipped_sum(net, x, examples) - clipped_sum(net, x[1:], examples)
        assert np.linalg.norm(moved) <= CLIP
