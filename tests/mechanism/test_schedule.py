"""Numbers that follow the step."""
import math

import pytest

from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay


@pytest.mark.parametrize("make, message", [
    (lambda: LinearDecay(math.nan, 1.0, 3), "initial=nan"), (lambda: LinearDecay(1.0, -1.0, 3), "final=-1.0"),
    (lambda: LinearDecay(1.0, 1.0, -1), "steps=-1"), (lambda: LinearDecay(1.0, 1.0, 1.5), "steps=1.5")])
def test_bad_schedules_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
