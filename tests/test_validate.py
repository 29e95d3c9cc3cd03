"""Checks of settings and shapes, and numbers as text: what passes, and what the message says."""
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from minidp import validate
from minidp.errors import DtypeError, ParameterError, ShapeError
from minidp.numbers import lower_text, upper_text

NUMBERS = {
    "probability": ([0, 1, 0.5, np.float32(0.5), np.float64(1), Fraction(1, 3)], [-1e-9, 1.0000001, math.inf]),
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


@pytest.mark.parametrize("check, message", [
    (lambda: validate.positive_finite(scale=math.inf), "expected scale=inf in (0, inf)"),
    (lambda: validate.in_range(0, 1, open_low=True, open_high=True, delta=1.0), "expected delta=1.0 in (0, 1)"),
    (lambda: validate.probability(good=0.5, bad=2), "expected bad=2 in [0, 1]"),
    (lambda: validate.count(1, steps=0), "expected steps=0 to be an integer of at least 1"),
    (lambda: validate.one_of(("a", "b"), mode="c"), "expected mode='c' to be one of a, b"),
    (lambda: validate.shape("dense1", "x", np.zeros((2, 3)), ("B", 4)),
     "dense1: expected x of shape (B, 4), got (2, 3)"),
    (lambda: validate.shape("loss", "y", np.zeros((2, 3)), ("B",)), "loss: expected y of shape (B,), got (2, 3)"),
    (lambda: validate.same_batch("run", x=np.zeros((2, 3)), y=np.zeros(3)),
     "run: expected the same number of examples, got: x has 2, y has 3"),
    (lambda: validate.inexact("dense1", x=np.zeros(2, "int64")),
     "dense1: expected x of dtype float32 or float64, got int64; convert it with .astype(numpy.float32); there are no "
     "embeddings of integers, since a layer's input has to have a gradient: one-hot rows and a Dense layer are the same function"),
    (lambda: validate.inexact("dense1", x=np.zeros(2, "uint8")),
     "dense1: expected x of dtype float32 or float64, got uint8; convert it with .astype(numpy.float32)")])
def test_messages_name_what_was_wrong_and_what_is_allowed(check, message):
    with pytest.raises((ParameterError, ShapeError, DtypeError)) as caught:
        check()
    assert str(caught.value) == message


def test_integers_beyond_float64_are_refused_in_few_words():
    for check in (validate.positive, validate.probability, validate.count, lambda **n: validate.in_range(0, 5, **n)):
        for value in (10 ** 400, 10 ** 5000):       # Python prints no more than 4300 digits
            with pytest.raises(ParameterError, match=r"setting=\(an integer of about \d+ digits\)") as refused:
                check(setting=value)
            assert len(str(refused.value)) < 160
    with pytest.raises(ParameterError, match="float64 can hold"):
        validate.positive(setting=Fraction(10 ** 400))
    for value in (-1, 1.0, True, "1", None, math.nan):
        with pytest.raises(ParameterError, match="to be an integer of at least 0"):
            validate.count(steps=value)
    validate.count(0, 2 ** 128 - 1, seed=2 ** 128 - 1, steps=np.int64(3))
    with pytest.raises(ParameterError, match="hidden=10000000000000000000000000 to be an integer of at most 1099511627776"):
        validate.count(hidden=10 ** 25)


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


@pytest.mark.parametrize("value, low, high", [(0.0, "0", "0"), (-0.0, "0", "0"), (99999.0, "9.999e+04", "1e+05"),
                                              (5e-324, "5e-324", "5e-324"), (9999.0, "9999", "9999"),
                                              (0.00012345, "0.0001234", "0.0001235"), (-1.23456, "-1.235", "-1.234")])
def test_by_hand(value, low, high):
    assert (lower_text(value), upper_text(value)) == (low, high)


def test_infinity_and_what_is_unknown_have_words():
    assert upper_text(math.inf) == upper_text("inf") == "infinite"
    assert upper_text(None) == lower_text(None) == "unknown"
