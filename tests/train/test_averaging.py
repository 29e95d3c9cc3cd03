"""The moving average of parameters: its formula, that the descent does not notice it, and its way through a file."""
import numpy as np
import pytest
from minidp.errors import ParameterError
from minidp.train import SGD, Averaged, Momentum


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


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_bad_decay_is_refused(decay):
    with pytest.raises(ParameterError, match="decay"):
        Averaged(SGD(0.1), decay)
