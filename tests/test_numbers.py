import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidp.numbers import lower_text, upper_text

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
