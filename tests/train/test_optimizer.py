"""Descent: every rule against a loop over single numbers, written from the papers."""
import math

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.train import OPTIMIZERS, SGD, AdaGrad, Adam, Momentum

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


@pytest.mark.parametrize("make, message", [
    (lambda: SGD(-0.1), "learning_rate=-0.1"), (lambda: SGD(math.nan), "learning_rate=nan"),
    (lambda: Momentum(0.1, momentum=1.0), r"momentum=1.0 in \[0, 1\)"), (lambda: Adam(0.1, beta1=1.0), "beta1=1.0"),
    (lambda: Adam(0.1, beta2=-0.1), "beta2=-0.1"), (lambda: Adam(0.1, offset=0.0), "offset=0.0"),
    (lambda: AdaGrad(math.inf), "learning_rate=inf"), (lambda: AdaGrad(0.1, offset=-1.0), "offset=-1.0")])
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
