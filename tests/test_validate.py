"""Checks of settings and shapes: what passes, what does not, and what the message says."""
import math
from fractions import Fraction

import numpy as np
import pytest

from minidp import validate
from minidp.errors import DtypeError, ParameterError, ShapeError

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
