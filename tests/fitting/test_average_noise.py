"""The known noise in averaged weights."""

import numpy as np
import pytest

from minidp.fitting.average_noise import noise_of_average
from minidp.fitting.defaults import Choice
from minidp.train import Averaged, Momentum


@pytest.mark.parametrize(
    "momentum, average, steps", [(0.9, 0.9, 100), (0.0, 0.0, 7), (0.5, 0.9, 400)]
)
def test_noise_of_the_average_is_what_the_optimizer_leaves(momentum, average, steps):
    rng = np.random.default_rng(0)
    choice = Choice(1, steps, 1.0, 0.05, average, momentum)
    optimizer = Averaged(Momentum(choice.learning_rate, momentum), average)
    params = {("a", "W"): np.zeros(20_000)}
    for step in range(steps):
        optimizer.update(params, {("a", "W"): rng.standard_normal(20_000)}, step)
    with optimizer.averaged_weights(params):
        found = params["a", "W"].std()
    assert noise_of_average(choice) == pytest.approx(found, rel=0.03)
