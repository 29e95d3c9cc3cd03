"""What is special to dropout: its draws."""
import numpy as np
import pytest

from minidp import nn
from minidp.errors import NoiseReuseError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.streams import Streams
from minidp.train import SGD, Trainer


def test_training_drops_and_prediction_does_not():
    """The trainer passes the dropout stream, and that stream alone moves."""
    streams, seen = Streams(), []

    class Watched(nn.Dropout):
        def forward(self, x, *, rng=None):
            seen.append(rng)
            return super().forward(x, rng=rng)

    dense = nn.Dense(4, 8, rng=streams.init), nn.Dense(8, 2, rng=streams.init)
    network = nn.Sequential([dense[0], Watched(0.5), dense[1]], (4,))
    plan = Plan(PoissonSampler(0.5), Sanitizer(flat_group(network.params, 1.0, 1.0)), 3, 10)
    x, y = streams.init.standard_normal((20, 4), dtype=np.float32), streams.init.integers(0, 2, 20)
    Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan).run(x, y, streams)
    assert len([rng for rng in seen if rng is not None]) == 3  # the trial before it draws nothing
    with pytest.raises(NoiseReuseError):
        streams.dropout(2)
    seen.clear()
    np.testing.assert_array_equal(network.predict(x), network.predict(x))
    assert seen == [None, None] and streams.dropout(3)
