"""What may not be stated of a step."""

import numpy as np
import pytest

from minidp.audit import check_step
from tests.audit.test_step import STATED, Plain


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"relation": "swap"}, "relation"),
        ({"claims": ["safe"]}, "claims"),
        ({"colour": 1}, "check_step has no parameter 'colour'"),
        ({"max_grad_norm": 1}, "no parameter 'max_grad_norm'; it is clip_norm="),
        ({"parts": {"a": (slice(15), 1, 1)}}, "cover all 20"),
        ({"parts": {"a": (slice(15), 1, 1), "b": (slice(9, 20), 1, 1)}}, "b is empty or overlaps"),
        ({"make_rows": lambda n, seed: np.zeros((n, 2))}, "expected make_rows of shape"),
        ({"step": lambda rows: np.array([1])}, "floating-point numbers, got int64"),
        ({"step": lambda rows: [np.zeros(9), np.zeros(2)]}, "one array of all coordinates, such"),
    ],
)
def test_a_statement_that_cannot_be_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        check_step(**{"step": Plain(), **STATED, **wrong})


@pytest.mark.parametrize("least", [16, 64])
def test_lots_that_are_left_out_below_a_size_are_found(least):
    def waiting(rows):
        return right(rows if len(rows) >= least else rows[:0])

    right = Plain()
    found = {each.name: each.verdict for each in check_step(waiting, **STATED).findings}
    assert found["independence of rows"] == "violated"
