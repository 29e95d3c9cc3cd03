"""Numbers that follow the step."""
import math

import pytest

from minidp.errors import ParameterError
from minidp.mechanism import Constant, LinearDecay
from minidp.mechanism.schedule import value_at


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
