import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from minidp.errors import ParameterError
from minidp.numbers import bound_texts, lower_text, upper_text
from minidp.privacy import Bound

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


@given(values, st.integers(1, 15))
def test_texts_are_no_longer_or_further_than_they_need_be(value, digits):
    assume(not 0 < abs(value) < 1e-300)  # where repr holds fewer digits than the exact value that format prints
    nearest = f"{value:.{digits}g}"
    assert nearest in (lower_text(value, digits), upper_text(value, digits), "-0")


@pytest.mark.parametrize("value, low, high", [(0.0, "0", "0"), (-0.0, "0", "0"), (99999.0, "9.999e+04", "1e+05"),
                                              (5e-324, "5e-324", "5e-324"), (9999.0, "9999", "9999"),
                                              (0.00012345, "0.0001234", "0.0001235"), (-1.23456, "-1.235", "-1.234")])
def test_by_hand(value, low, high):
    assert (lower_text(value), upper_text(value)) == (low, high)


def test_a_small_negative_number_rounds_up_to_zero_without_a_sign():
    assert upper_text(-1e-9, decimals=4) == "0.0000"


def test_infinity_and_what_is_unknown_have_words():
    assert upper_text(math.inf) == upper_text("inf") == "infinite"
    assert upper_text(None) == lower_text(None) == "unknown"


def test_nan_is_refused():
    with pytest.raises(ParameterError, match="expected a bound to be a number"):
        upper_text(math.nan)


def test_a_bound_has_three_texts():
    assert bound_texts(Bound(0.92634150, 0.92634155, 0.92634160)) == ("0.9263", "0.9263", "0.9264")
    assert bound_texts(Bound(None, math.inf, math.inf)) == ("unknown", "infinite", "infinite")
