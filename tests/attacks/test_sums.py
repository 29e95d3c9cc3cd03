"""Attacks on the arithmetic of clipped sums: neighbouring data sets whose sums differ by more than
what is charged.

Each test states the guarantee, |S(D) - S(D')| <= Delta, and searches for neighbours that break it.
All of them succeeded against sums in float32, by up to 1.99 C. Searches may be widened, never
narrowed.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples
from minidp.grads import Explicit, Outer, OuterSum
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.mechanism.rounding import products
from minidp.streams import Streams
from minidp.train import SGD, Trainer

KEY = ("layer", "W")
wide = pytest.mark.slow  # the same search on larger lots
LARGE = 1 - 2**-10  # a contribution just below the clip norm


@dataclass(frozen=True)
class Seen(Sanitizer):
    """Keeps what it was given to release."""

    raw: list = field(default_factory=list, compare=False)

    def release(self, raw_sum, draws, others=(), *more):
        self.raw.append(
            {key: sum((other[key] for other in others), raw_sum[key]).copy() for key in raw_sum}
        )
        return super().release(raw_sum, draws, others, *more)


def clipped(grad, clip_norm, strategy="auto", lot=1, weight=None):
    """(the raw sum of one parameter's gradients, in units of C; what is charged for it)."""
    sanitizer, how = Sanitizer(flat_group([KEY], clip_norm, 1.0), strategy), products(lot, strategy)
    total = sanitizer.add_clipped({KEY: grad}, None, weight, how.for_lot(grad.n_examples))[KEY]
    return total.astype(float) / clip_norm, how.factor


def aligned(n, value, extra, half_ulps):
    """Give n numbers whose roundings in float32 line up.

    The first are `value`, until their sum is about a power of two, `extra` more or fewer; the
    others are just over half an ulp. With the first number the sum crosses the power of two, and
    every small number is rounded up; without it none is.
    """
    power = int(np.log2(n * 0.66))
    large = int(2**power / value) + extra
    return np.array([value] * large + [half_ulps * 2.0 ** (power - 24)] * (n - large), "float32")


def worst_neighbours(n, strategy, batches):
    """(the largest |S(D) - S(D')| / C found, what is charged) in lots of n examples, summed in
    `batches` parts; D' lacks the first example of D.
    """
    sanitizer, how = Sanitizer(flat_group([KEY], 1.0, 1.0), strategy), products(n, strategy)

    def total(v, parts):
        raw_sum = {}
        for d in np.array_split(v[:, None], min(parts, len(v))):
            grad = Outer(np.ones((len(d), 1), "float32"), d)
            sanitizer.add_clipped({KEY: grad}, raw_sum, products=how.for_lot(len(v)))
        return float(raw_sum[KEY][0, 0])

    reached = 0.0
    for extra, ulps, parts in product((-1, 0, 1), (0.51, 1.01, 1.25, 2.51), batches):
        v = aligned(n, LARGE, extra, ulps)
        reached = max(reached, abs(total(v, parts) - total(v[1:], parts)))
    return reached, how.factor


@pytest.mark.parametrize("strategy", ["explicit", "factored"])
@pytest.mark.parametrize("n", [2, 60, 650, 2000, 8192, pytest.param(16_384, marks=wide)])
def test_one_example_moves_the_sum_of_a_lot_by_at_most_what_is_charged(strategy, n):
    """Lots of the expected size, so that products run in float32 as far as they ever do."""
    batches = 1, 1 + n // 128, 1 + n // 50
    reached, charged = worst_neighbours(n, strategy, batches)
    assert reached <= charged


@pytest.mark.parametrize(
    "strategy, batch_size, n",
    [
        ("explicit", None, 8192),
        ("auto", 1, 2048),
        ("auto", None, 700),
        ("factored", None, 1900),
        pytest.param("auto", None, 8192, marks=wide),
        pytest.param("explicit", 1, 8192, marks=wide),
        pytest.param("auto", 1, 8192, marks=wide),
    ],
)
def test_one_example_moves_a_step_of_training_by_at_most_what_is_charged(strategy, batch_size, n):
    """Through Trainer.step: a dense layer 2 -> 1 whose gradient of W is (-y, 0), and of b -y; each
    below C.
    """

    def step(y):
        network = nn.Sequential([nn.Dense(2, 1, rng=None, init=nn.init.zeros)], (2,))
        groups = tuple(per_layer_groups(network.params, 1.0, 0.0))
        plan = Plan(PoissonSampler(1.0), Seen(groups, strategy), 1, n)
        trainer = Trainer(network, nn.SquaredError(), SGD(1.0), plan, batch_size=batch_size)
        examples = LabelledExamples(np.tile(np.float32([1, 0]), (len(y), 1)), y[:, None])
        trainer.step(examples, np.arange(len(y)), 0, Streams(1))
        raw = [part.ravel() for part in plan.sanitizer.raw[0].values()]
        return np.concatenate(raw), plan.products.factor

    for extra, half_ulps in product(range(-2, 3), (0.51, 1.01, 1.25)):
        y = aligned(n, 0.7, extra, half_ulps)
        (one, charged), (other, _) = step(y), step(y[1:])
        own = 0.7 * 2**0.5 * (1 + 1e-6)  # what the target's own gradient comes to
        assert np.linalg.norm(one - other) <= own + (charged - 1) * 2**0.5


@pytest.mark.parametrize("count", [2000, pytest.param(20_000, marks=wide)])
def test_a_group_of_many_scalars_is_clipped(count):
    keys = [("layer", str(i)) for i in range(count)]
    values = [1.0] + [float(np.sqrt(2.0**-24 * 0.9999))] * (count - 1)
    grads = {key: Explicit(np.full((1, 1), v, "float32")) for key, v in zip(keys, values)}
    total = Sanitizer(flat_group(keys, 0.5, 1.0)).add_clipped(grads)
    assert np.sqrt(sum(float(x[0]) ** 2 for x in total.values())) <= 0.5


def search_roundings(n):
    """The largest |S(D) - S(D')| / C found where the rounding of each clipped gradient is left to
    chance, and the charge.
    """
    rng, largest, a = np.random.default_rng(0), 0.0, np.ones((n, 1), "float32")
    for _ in range(40):
        d = rng.uniform(1, 2, (n, 1)).astype("float32")
        (one, charged), (other, _) = (
            clipped(Outer(a[at:], d[at:]), 1.0, "factored", n) for at in (0, 1)
        )
        largest = max(largest, float(np.linalg.norm(one - other)))
    return largest, charged


@pytest.mark.parametrize("n, least", [(60, 0), (600, 0), (1100, 0), (1900, 1), (2200, 0)])
def test_random_roundings_move_the_sum_by_at_most_what_is_charged(n, least):
    """By more than C at 1,900, so that sums in float32 that are not charged would be found."""
    largest, charged = search_roundings(n)
    assert least < largest <= charged


def numbers_of_every_size(rng, shape, dtype):
    """Rows about a power of two that the dtype has, some with a number that is not finite or
    zero.
    """
    least, most = (-149, 127) if dtype == "float32" else (-1074, 1023)
    rows = (shape[0],) + (1,) * (len(shape) - 1)
    x = np.ldexp(rng.uniform(0.3, 1, shape), rng.integers(least, most + 1, rows)).astype(dtype)
    if rng.random() < 0.1:
        x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, 0.0])
    return x


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("clip_norm", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("a", 2.0 ** np.array([-149, -100, 0, 59, 61, 100, 126]))
@pytest.mark.parametrize("d", 2.0 ** np.array([-126, 0, 59, 61, 126]))
def test_a_lot_too_large_for_float32_products_holds_the_same_examples(a, d, clip_norm):
    """With one row more a lot is summed in float64; which rows count must not change with that."""
    most, sums = products(100, "auto").most, []
    for n in (most, most + 1):
        rows = (np.full((n, 40), each, "float32") for each in (a, d))
        raw, factor = clipped(Outer(*rows), clip_norm, lot=100)
        sums.append(raw)
    assert np.linalg.norm(sums[1] - sums[0]) <= factor


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_gradient_of_any_size_contributes_more_than_its_clip_norm(strategy, dtype):
    """Gradients of factors of every size, and clip norms about where the weight begins to fall."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(400):
        t, i, o = rng.choice([1, 3]), rng.choice([1, 4, 60]), rng.choice([1, 4, 200])
        a, d = (numbers_of_every_size(rng, (1, t, n), dtype) for n in (i, o))
        sizes = [np.linalg.norm(factor.astype("longdouble")) for factor in (a, d)]
        norm = float(sizes[0] * sizes[1] * rng.uniform(0.3, 1))
        usual = rng.random() < 0.5 and 1e-12 < norm < 1e12
        clip_norm = norm if usual else 10.0 ** rng.integers(-12, 13)
        grad = OuterSum(a, d) if t > 1 or rng.random() < 0.3 else Outer(a[:, 0], d[:, 0])
        weight = None if rng.random() < 0.5 else rng.choice([0, 0.7, 1, 1.5, np.nan], 1)
        got, charged = clipped(grad, clip_norm, strategy, 100, weight)
        assert np.isfinite(got).all()
        largest = max(largest, float(np.linalg.norm(got)) / charged)
    assert 0.9 < largest <= 1


PAIRS = (1.8e19, 2.6e-23), (2.6e-23, 1.8e19), (3e38, 1e-40)
KINDS = ("float32", 1), ("float64", 1), ("float64", 7)


@pytest.mark.parametrize(
    "a, d, dtype, cls",
    [
        *((a**power, d**power, dtype, Outer) for a, d in PAIRS for dtype, power in KINDS),
        (2.0**75, 0.099 * 2**74, "float32", Outer),
        (2.0**-149, 2.0**127, "float32", Outer),
        (1e-163, 1e152, "float64", OuterSum),
        (0.0, 1e307, "float64", Outer),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
def test_what_vanishes_below_the_least_number_hides_no_norm(a, d, dtype, cls, strategy):
    """Squares of one factor vanish; a weight, or its product with a factor, is rounded to twice its
    size; 0 times 2^1024.
    """
    shape = (1,) if cls is Outer else (1, 1)
    for widths in ((1, 100_000), (4, 100)):
        factors = [np.full((*shape, n), each, dtype) for n, each in zip(widths, (a, d))]
        for clip_norm in (1.0, 0.01, 1e-12, 0.51 * a * d * np.prod(widths) ** 0.5):
            if 1e-12 <= clip_norm <= 1e12:
                got, _ = clipped(cls(*factors), clip_norm, strategy)
                assert np.linalg.norm(got) <= 1
