"""Settings: their checks and what the messages say, numbers as text, and that every public
constructor names a wrong one.
"""

import math
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidp import validate
from minidp.data import centre_crop, draw_distortions
from minidp.errors import DtypeError, ParameterError, ShapeError
from minidp.mechanism import (
    ClipGroup,
    FixedSizeSampler,
    LinearDecay,
    Plan,
    PoissonSampler,
    PrivatePCA,
    Sanitizer,
    ShuffleSampler,
    flat_group,
    random_projection,
)
from minidp.nn import AvgPool2D, Conv2D, Dropout, GroupNorm, LayerNorm, MaxPool2D
from minidp.numbers import lower_text, upper_text
from minidp.privacy import (
    ApproximateDP,
    Composed,
    Filter,
    FixedSizeSampled,
    Gaussian,
    JointGaussian,
    Laplace,
    MomentsAccountant,
    PoissonSampled,
    PureDP,
    Repeated,
    TotalVariation,
    theorem_d1,
)
from minidp.streams import Streams
from minidp.train import SGD, AdaGrad, Adam, Averaged, Momentum

NUMBERS = {
    "probability": (
        [0, 1, 0.5, np.float32(0.5), np.float64(1), Fraction(1, 3)],
        [-1e-9, 1.0000001, math.inf],
    ),
    "positive": ([1e-300, 1, math.inf], [0, 0.0, -0.0, -1, -math.inf]),
    "positive_finite": ([1e-300, 1], [0, -1, math.inf]),
    "non_negative": ([0, 1, math.inf], [-1e-300, -math.inf]),
    "non_negative_finite": ([0, 1e300], [-1e-300, math.inf]),
}
NO_NUMBERS = [math.nan, np.float32("nan"), None, "1", True, 1j, [1], np.ones(1)]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_their_range_pass_and_others_do_not(name):
    check, (good, bad) = getattr(validate, name), NUMBERS[name]
    for value in good:
        check(setting=value)
    for value in bad:
        with pytest.raises(ParameterError, match="^expected setting=.* in "):
            check(setting=value)
    for value in NO_NUMBERS:
        with pytest.raises(ParameterError, match="^expected setting=.* to be a number$"):
            check(setting=value)


@pytest.mark.parametrize(
    "check, message",
    [
        (lambda: validate.positive_finite(scale=math.inf), "expected scale=inf in (0, inf)"),
        (
            lambda: validate.in_range(0, 1, open_low=True, open_high=True, delta=1.0),
            "expected delta=1.0 in (0, 1)",
        ),
        (lambda: validate.probability(good=0.5, bad=2), "expected bad=2 in [0, 1]"),
        (lambda: validate.count(1, steps=0), "expected steps=0 to be an integer of at least 1"),
        (lambda: validate.one_of(("a", "b"), mode="c"), "expected mode='c' to be one of a, b"),
        (
            lambda: validate.shape("dense1", "x", np.zeros((2, 3)), ("B", 4)),
            "dense1: expected x of shape (B, 4), got (2, 3)",
        ),
        (
            lambda: validate.shape("loss", "y", np.zeros((2, 3)), ("B",)),
            "loss: expected y of shape (B,), got (2, 3)",
        ),
        (
            lambda: validate.same_batch("run", x=np.zeros((2, 3)), y=np.zeros(3)),
            "run: expected the same number of examples, got: x has 2, y has 3",
        ),
        (
            lambda: validate.inexact("dense1", x=np.zeros(2, "int64")),
            "dense1: expected x of dtype float32 or float64, got int64; convert it with "
            ".astype(numpy.float32); there are no embeddings of integers, since a layer's input "
            "has to have a gradient: one-hot rows and a Dense layer are the same function",
        ),
        (
            lambda: validate.inexact("dense1", x=np.zeros(2, "uint8")),
            "dense1: expected x of dtype float32 or float64, got uint8; convert it with "
            ".astype(numpy.float32)",
        ),
    ],
)
def test_messages_name_what_was_wrong_and_what_is_allowed(check, message):
    with pytest.raises((ParameterError, ShapeError, DtypeError)) as caught:
        check()
    assert str(caught.value) == message


def test_integers_beyond_float64_are_refused_in_few_words():
    for check in (
        validate.positive,
        validate.probability,
        validate.count,
        lambda **n: validate.in_range(0, 5, **n),
    ):
        for value in (10**400, 10**5000):  # Python prints no more than 4300 digits
            with pytest.raises(
                ParameterError, match=r"setting=\(an integer of about \d+ digits\)"
            ) as refused:
                check(setting=value)
            assert len(str(refused.value)) < 160
    with pytest.raises(ParameterError, match="float64 can hold"):
        validate.positive(setting=Fraction(10**400))
    for value in (-1, 1.0, True, "1", None, math.nan):
        with pytest.raises(ParameterError, match="to be an integer of at least 0"):
            validate.count(steps=value)
    validate.count(0, 2**128 - 1, seed=2**128 - 1, steps=np.int64(3))
    with pytest.raises(
        ParameterError,
        match="hidden=10000000000000000000000000 to be an integer of at most 1099511627776",
    ):
        validate.count(hidden=10**25)


values = st.floats(allow_nan=False, allow_infinity=False)


@given(values, st.integers(1, 17))
def test_significant_digits_enclose_the_value(value, digits):
    low, high = lower_text(value, digits), upper_text(value, digits)
    assert float(low) <= value <= float(high)
    assert Fraction(low) <= Fraction(repr(value)) <= Fraction(high)


@given(values, st.integers(0, 12))
def test_decimals_enclose_the_value_to_one_unit(value, decimals):
    low, high = lower_text(value, decimals=decimals), upper_text(value, decimals=decimals)
    assert Fraction(low) <= Fraction(repr(value)) <= Fraction(high)
    assert Fraction(repr(value)) - Fraction(low) < Fraction(10) ** -decimals


@pytest.mark.parametrize(
    "value, low, high",
    [
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (99999.0, "9.999e+04", "1e+05"),
        (5e-324, "5e-324", "5e-324"),
        (9999.0, "9999", "9999"),
        (0.00012345, "0.0001234", "0.0001235"),
        (-1.23456, "-1.235", "-1.234"),
    ],
)
def test_by_hand(value, low, high):
    assert (lower_text(value), upper_text(value)) == (low, high)


def test_infinity_and_what_is_unknown_have_words():
    assert upper_text(math.inf) == upper_text("inf") == "infinite"
    assert upper_text(None) == lower_text(None) == "unknown"


KEYS, Q = [("dense1", "W"), ("dense2", "W")], PoissonSampler(0.01)


def group(clip_norm=1.0, noise_multiplier=1.0, keys=KEYS):
    return ClipGroup("all", keys, clip_norm, noise_multiplier)


def plan(steps=1, lot=600, sampler=Q):
    return Plan(sampler, Sanitizer(flat_group(KEYS, 4.0, 4.0)), steps, lot)


ROWS = [
    (make, value, words)
    for make, values, words in [
        (group, (-1.0, 0.0, nan, 1e-30, 9e-13, 1.1e12), "clip_norm={}"),
        (lambda v: group(1.0, v), (-1.0, nan, inf), "noise_multiplier={}"),
        (group, (inf,), "finite clip_norm"),
        (lambda v: group(keys=v), ((),), "at least one parameter"),
        (lambda v: LinearDecay(v, 1.0, 3), (nan,), "initial={}"),
        (lambda v: LinearDecay(1.0, v, 3), (-1.0,), "final={}"),
        (lambda v: LinearDecay(1.0, 1.0, v), (-1, 1.5), "steps={}"),
        (PoissonSampler, (1.2, nan), "sampling_probability={}"),
        (lambda v: FixedSizeSampler(10, v), (0, 11), "lot_size={}"),
        (lambda v: ShuffleSampler(10, v), (11, 2.5), "lot_size={}"),
        (lambda v: ShuffleSampler(v, 1), (0,), "dataset_size={}"),
        (plan, (-1,), "steps={}"),
        (lambda v: plan(1, v), (0, inf), "expected_lot_size={}"),
        (lambda v: plan(1, 600, v), ("poisson",), "expected a sampler, got str"),
        (lambda v: PrivatePCA(v, 4.0), (0,), "dimensions={}"),
        (lambda v: PrivatePCA(2, v), (-1.0, inf, nan), "pca_noise_multiplier={}"),
        (lambda v: random_projection(4, v, None), (0,), "dimensions={}"),
        (lambda v: Conv2D(1, 1, v), (0, (3, 0)), "kernel"),
        (lambda v: Conv2D(1, 1, 3, stride=v), (0,), "stride"),
        (lambda v: Conv2D(1, 1, 3, padding=v), ("full", -1, True), "padding"),
        (lambda v: Conv2D(*v, 3), ((0, 1), (1, 0)), "channels"),
        *((pool, (0,), "window") for pool in (MaxPool2D, AvgPool2D)),
        (lambda v: MaxPool2D(2, v), (0,), "stride"),
        (lambda v: AvgPool2D(2, padding=v), ("full", 2, (0, 1, 1), -1), "padding"),
        (lambda v: MaxPool2D((3, 2), padding=v), ((1, 2),), "padding"),
        (lambda v: GroupNorm(6, v), (4, 0), "groups={}"),
        (LayerNorm, (0,), "0"),
        (lambda v: LayerNorm(4, epsilon=v), (0.0, -1.0), "epsilon={}"),
        (Dropout, (-0.1, 1.0, nan, "half"), "rate"),
        (SGD, (-0.1, nan), "learning_rate={}"),
        (AdaGrad, (inf,), "learning_rate={}"),
        (lambda v: AdaGrad(0.1, v), (-1.0,), "offset={}"),
        (lambda v: Momentum(0.1, v), (1.0,), "momentum={}"),
        (lambda v: Adam(0.1, beta1=v), (1.0,), "beta1={}"),
        (lambda v: Adam(0.1, beta2=v), (-0.1,), "beta2={}"),
        (lambda v: Adam(0.1, offset=v), (0.0,), "offset={}"),
        (lambda v: Averaged(SGD(0.1), v), (-0.1, 1.0, nan), "decay={}"),
        (Gaussian, (-1.0, nan, "4"), "noise_multiplier={!r}"),
        (Laplace, (-2,), "noise_multiplier={}"),
        (PureDP, (-1, nan), "epsilon={}"),
        (lambda v: ApproximateDP(1.0, v), (-0.1, 1.1), "delta={}"),
        (JointGaussian, ((),), "at least one"),
        (JointGaussian, ((1.0, -1.0),), "noise_multiplier=-1.0"),
        (lambda v: PoissonSampled(v, Gaussian(1)), (1.2, nan), "sampling_probability={}"),
        (lambda v: PoissonSampled(0.1, v), (4.0,), "expected an Event"),
        (Composed, ((Gaussian(1), None),), "expected an Event"),
        (lambda v: FixedSizeSampled(10, v, Gaussian(1)), (11,), "lot_size"),
        (lambda v: FixedSizeSampled(v, 0, Gaussian(1)), (0,), "dataset_size"),
        (lambda v: Repeated(Gaussian(1), v), (-1, 1.5), "count={}"),
        (lambda v: TotalVariation(v, 3), (1.0, nan), "tau={}"),
        (lambda v: TotalVariation(0.1, v), (-1,), "count={}"),
        (lambda v: MomentsAccountant(orders=v), ((),), "at least one"),
        (lambda v: MomentsAccountant(orders=(v,)), (0, nan), "order={}"),
        (lambda v: MomentsAccountant(orders=(v,)), (2000,), "1024"),
        (lambda v: Filter(MomentsAccountant(), v, 1e-5), (-1.0, nan), "epsilon={}"),
        (lambda v: Filter(MomentsAccountant(), 1.0, v), (0.0, 1.0), "delta={}"),
        (lambda v: Filter(v, 1.0, 1e-5), ("momens",), "accountant='momens' to be one of moments"),
        (
            lambda v: Filter(v, 1.0, 1e-5),
            (7,),
            "expected accountant=7 to be an accountant, such as MomentsAccountant",
        ),
        (
            lambda v: theorem_d1(*v),
            ((1.0, 0.6, 0.05, 0.1), (1.0, 0.0, 0.05, 0.1)),
            "epsilon_prime=",
        ),
        (lambda v: theorem_d1(1.0, 0.5, v, 0.1), (0.0,), "delta="),
        (lambda v: theorem_d1(1.0, 0.5, 0.05, v), (0.0,), "good_share="),
        (lambda v: theorem_d1(v, 0.5, 0.05, 0.1), (-1.0,), "epsilon"),
        (Streams, (-1, 1.5, "1", True), "expected seed={!r}"),
        (lambda v: centre_crop(np.zeros((1, 24, 24, 3)), v), (25,), "size={}"),
        (lambda v: draw_distortions(2, None, size=v), (33,), "size={}"),
    ]
    for value in values
]


@pytest.mark.parametrize("make, value, words", ROWS, ids=range(len(ROWS)))
def test_a_wrong_setting_is_named(make, value, words):
    with pytest.raises(ParameterError) as refused:
        make(value)
    assert words.format(value) in str(refused.value)
