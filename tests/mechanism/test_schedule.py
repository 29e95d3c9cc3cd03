"""Numbers that follow the step."""
import math

import pytest

from minidp.errors import ParameterError
from minidp.mechanism import Constant, LinearDecay
from minidp.mechanism.schedule import value_at


def test_linear_decay_is_a_line_and_then_constant():
    rate = LinearDecay(0.1, 0.052, 1000)  # Section 5.2: from 0.1 to 0.052 over 10 epochs of 100 lots
    assert rate(0) == 0.1
    assert rate(500) == pytest.approx(0.076)
    assert rate(250) - rate(251) == pytest.approx(0.048 / 1000)
    assert [rate(step) for step in (1000, 1001, 10**9)] == [0.052] * 3


@pytest.mark.parametrize("step", [0, 1, 10**9])
def test_constant_stays(step):
    assert Constant(4.0)(step) == 4.0
    assert LinearDecay(2.0, 3.0, 0)(step) == 3.0


def test_a_plain_number_is_constant():
    assert value_at(4.0, 7) == 4.0
    assert value_at(LinearDecay(1.0, 0.0, 10), 5) == 0.5


def test_schedules_can_be_compared_and_hashed():
    assert LinearDecay(1.0, 0.5, 3) == LinearDecay(1.0, 0.5, 3) != LinearDecay(1.0, 0.5, 4)
    assert len({Constant(1.0), Constant(1.0), LinearDecay(1.0, 0.5, 3)}) == 2


@pytest.mark.parametrize("make, message", [
    (lambda: Constant(-1.0), "value=-1.0"), (lambda: Constant(math.inf), "value=inf"),
    (lambda: LinearDecay(math.nan, 1.0, 3), "initial=nan"), (lambda: LinearDecay(1.0, -1.0, 3), "final=-1.0"),
    (lambda: LinearDecay(1.0, 1.0, -1), "steps=-1"), (lambda: LinearDecay(1.0, 1.0, 1.5), "steps=1.5")])
def test_bad_schedules_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
