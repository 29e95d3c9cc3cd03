"""Descent: every rule against a loop over single numbers, written from the papers."""
import math

import numpy as np
import pytest

from minidp.backend import to_host
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay
from minidp.train import OPTIMIZERS, SGD, AdaGrad, Adam, Momentum, Nesterov

KEYS = [("dense1", "W"), ("dense1", "b")]
RATE = 0.1
optimizers = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def sgd(theta, gs, rate):
    for t, g in enumerate(gs):
        theta -= rate(t) * g
    return theta


def momentum(theta, gs, rate, m=0.9):
    v = 0.0
    for t, g in enumerate(gs):
        v = m * v + g
        theta -= rate(t) * v
    return theta


def nesterov(theta, gs, rate, m=0.9):
    v = 0.0
    for t, g in enumerate(gs):
        v = m * v + g
        theta -= rate(t) * (g + m * v)
    return theta


def adagrad(theta, gs, rate, e=1e-8):
    s = 0.0
    for t, g in enumerate(gs):
        s += g * g
        theta -= rate(t) * g / (math.sqrt(s) + e)
    return theta


def adam(theta, gs, rate, b1=0.9, b2=0.999, e=1e-8):
    m = v = 0.0
    for t, g in enumerate(gs):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        theta -= rate(t) * (m / (1 - b1 ** (t + 1))) / (math.sqrt(v / (1 - b2 ** (t + 1))) + e)
    return theta


LOOPS = {"sgd": sgd, "momentum": momentum, "nesterov": nesterov, "adagrad": adagrad, "adam": adam}


def make_params(rng, backend, dtype="float64"):
    return {KEYS[0]: backend.asarray(rng.standard_normal((3, 2)).astype(dtype)),
            KEYS[1]: backend.asarray(rng.standard_normal(2).astype(dtype))}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("rate", [0.1, LinearDecay(0.2, 0.1, 3)], ids=["constant", "schedule"])
def test_steps_equal_a_scalar_loop(name, rate, backend, rng):
    params, optimizer = make_params(rng, backend), OPTIMIZERS[name](rate)
    start = {key: to_host(array).copy() for key, array in params.items()}
    grads = [{key: rng.standard_normal(array.shape) for key, array in start.items()} for _ in range(5)]
    for step, g in enumerate(grads):
        optimizer.update(params, {key: backend.asarray(array.copy()) for key, array in g.items()}, step)
    for key, array in params.items():
        for index in np.ndindex(array.shape):
            expected = LOOPS[name](start[key][index], [g[key][index] for g in grads],
                                   rate if callable(rate) else lambda t: rate)
            assert to_host(array)[index] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("make, scalar", [
    (lambda: Momentum(RATE, momentum=0.5), lambda *a: momentum(*a, m=0.5)),
    (lambda: Nesterov(RATE, momentum=0.5), lambda *a: nesterov(*a, m=0.5)),
    (lambda: AdaGrad(RATE, offset=0.5), lambda *a: adagrad(*a, e=0.5)),
    (lambda: Adam(RATE, 0.5, 0.7, 0.2), lambda *a: adam(*a, 0.5, 0.7, 0.2))],
    ids=["momentum", "nesterov", "adagrad", "adam"])
def test_settings_reach_the_rule(make, scalar, rng):
    theta, gs, optimizer = {KEYS[1]: np.array([2.0])}, rng.standard_normal(6), make()
    for step, g in enumerate(gs):
        optimizer.update(theta, {KEYS[1]: np.array([g])}, step)
    assert theta[KEYS[1]][0] == pytest.approx(scalar(2.0, gs, lambda t: RATE), rel=1e-12)


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


@optimizers
def test_a_gradient_or_rate_of_zero_moves_nothing(make, rng):
    theta = {KEYS[1]: np.array([1.0, 2.0])}
    make(0.1).update(theta, {KEYS[1]: np.zeros(2)}, 0)
    make(0.0).update(theta, {KEYS[1]: np.ones(2)}, 0)
    np.testing.assert_array_equal(theta[KEYS[1]], [1.0, 2.0])


@optimizers
def test_every_optimizer_goes_down(make):
    theta, optimizer = {KEYS[1]: np.array([3.0, -2.0])}, make(0.1)
    for step in range(300):
        optimizer.update(theta, {KEYS[1]: 2 * theta[KEYS[1]]}, step)
    assert np.abs(theta[KEYS[1]]).max() < 1.0


@optimizers
def test_slots_are_not_shared_between_optimizers(make):
    first, second = make(0.1), make(0.1)
    first.allocate({KEYS[1]: np.ones(2)})
    assert second.slots == {}


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
