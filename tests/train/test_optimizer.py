"""Descent: what changes in place, and moving averages that the descent does not notice."""

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.train import OPTIMIZERS, SGD, Averaged, Momentum

KEYS = [("dense1", "W"), ("dense1", "b")]
optimizers = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def make_params(rng, backend, dtype="float64"):
    return {KEYS[0]: backend.asarray(rng.standard_normal((3, 2)).astype(dtype)),
            KEYS[1]: backend.asarray(rng.standard_normal(2).astype(dtype))}


@optimizers
def test_parameters_change_in_place_and_keep_their_dtype(make, backend, rng):
    params = make_params(rng, backend, "float32")
    arrays = dict(params)
    optimizer = make(0.1)
    for step in range(2):
        optimizer.update(params, make_params(rng, backend, "float32"), step)
    assert all(params[key] is arrays[key] for key in KEYS)
    for array in (*params.values(), *(a for slot in optimizer.slots.values() for a in slot.values())):
        assert array.dtype == np.float32 and type(array) is type(arrays[KEYS[0]])
    assert tuple(optimizer.slots) == make.slot_names


def test_gradients_of_other_parameters_are_refused():
    with pytest.raises(ParameterError, match="expected gradients of"):
        SGD(0.1).update({KEYS[0]: np.zeros(2)}, {KEYS[1]: np.zeros(2)}, 0)


def gradients(step):
    return {("a", "W"): np.array([1.0 + step, -2.0]), ("a", "b"): np.array([0.5 * step])}


def start():
    return {("a", "W"): np.array([3.0, 1.0]), ("a", "b"): np.array([-1.0])}


def test_descent_is_that_of_the_optimizer_alone():
    alone, averaged = start(), start()
    plain, wrapped = Momentum(0.1), Averaged(Momentum(0.1), 0.9)
    for step in range(5):
        plain.update(alone, gradients(step), step)
        wrapped.update(averaged, gradients(step), step)
        with wrapped.averaged_weights(averaged):
            assert (averaged["a", "W"] != alone["a", "W"]).any() or step == 0
    for key in alone:
        np.testing.assert_array_equal(alone[key], averaged[key])
    assert set(wrapped.slots) == {"velocity", "average"} and wrapped.learning_rate == 0.1


def test_parameters_come_back_after_an_error():
    params, optimizer = start(), Averaged(SGD(0.1), 0.9)
    for step in range(3):
        optimizer.update(params, gradients(step), step)
    before = params["a", "W"].copy()
    with pytest.raises(RuntimeError), optimizer.averaged_weights(params):
        raise RuntimeError()
    np.testing.assert_array_equal(params["a", "W"], before)
