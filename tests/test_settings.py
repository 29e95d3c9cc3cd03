"""Settings: their checks and what the messages say, numbers as text, and that every public
constructor names a wrong one.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidp.errors import DtypeError, ParameterError, ShapeError
from minidp.util import validate
from minidp.util.text import lower_text, upper_text

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
        with pytest.raises(
            ParameterError, match="^expected setting=.* (in|to be above|to be at least) "
        ):
            check(setting=value)
    for value in NO_NUMBERS:
        with pytest.raises(ParameterError, match="^expected setting=.* to be a number$"):
            check(setting=value)


@pytest.mark.parametrize(
    "check, message",
    [
        (lambda: validate.open_probability(delta=1.0), "expected delta=1.0 in (0, 1)"),
        (
            lambda: validate.count(hidden=10**25),
            "expected hidden=10000000000000000000000000 to be an integer of at most 1099511627776",
        ),
        (lambda: validate.one_of(("a", "b"), mode="c"), "expected mode='c' to be one of a, b"),
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
            ".astype(numpy.float32); ids are for a network that begins with nn.Embedding",
        ),
    ],
)
def test_messages_name_what_was_wrong_and_what_is_allowed(check, message):
    with pytest.raises((ParameterError, ShapeError, DtypeError)) as caught:
        check()
    assert str(caught.value) == message


@pytest.mark.parametrize("check", [validate.positive, validate.count])
def test_integers_beyond_float64_are_refused_in_few_words(check):
    with pytest.raises(ParameterError, match="an integer of about 5000 digits") as refused:
        check(setting=10**5000)  # Python prints no more than 4300 digits
    assert len(str(refused.value)) < 160


def test_counts_are_integers():
    validate.count(0, 2**128 - 1, seed=2**128 - 1, steps=np.int64(3))
    for value in (-1, 1.0, True, "1", None, math.nan):
        with pytest.raises(ParameterError, match="to be an integer of at least 0"):
            validate.count(steps=value)


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
