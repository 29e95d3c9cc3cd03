"""Descent: what changes in place, and moving averages that leave the parameters alone."""

import numpy as np
import pytest

from minidp.train import OPTIMIZERS, Averaged, Momentum

KEYS = [("dense1", "W"), ("dense1", "b")]
optimizers = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def make_params(rng, backend, dtype="float64"):
    return {
        KEYS[0]: backend.asarray(rng.standard_normal((3, 2)).astype(dtype)),
        KEYS[1]: backend.asarray(rng.standard_normal(2).astype(dtype)),
    }


@optimizers
def test_parameters_change_in_place_and_keep_their_dtype(make, backend, rng):
    params = make_params(rng, backend, "float32")
    arrays = dict(params)
    optimizer = make(0.1)
    for step in range(2):
        optimizer.update(params, make_params(rng, backend, "float32"), step)
    assert all(params[key] is arrays[key] for key in KEYS)
    for array in (
        *params.values(),
        *(a for slot in optimizer.slots.values() for a in slot.values()),
    ):
        assert array.dtype == np.float32 and type(array) is type(arrays[KEYS[0]])
    assert tuple(optimizer.slots) == make.slot_names


def test_parameters_come_back_after_an_error():
    params, optimizer = {KEYS[0]: np.array([3.0, 1.0])}, Averaged(Momentum(0.1), 0.9)
    for step in range(3):
        optimizer.update(params, {KEYS[0]: np.array([1.0 + step, -2.0])}, step)
    before = params[KEYS[0]].copy()
    with pytest.raises(RuntimeError), optimizer.averaged_weights(params):
        assert (params[KEYS[0]] != before).any()
        raise RuntimeError()
    np.testing.assert_array_equal(params[KEYS[0]], before)
    assert set(optimizer.slots) == {"velocity", "average"} and optimizer.learning_rate == 0.1
