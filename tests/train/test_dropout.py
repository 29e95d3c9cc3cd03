"""Dropout while a network trains."""

from minidp import nn
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tests.support.training import make_data, make_network, make_plan


def test_dropout_reaches_training():
    def dropping(rate):
        first, *rest = make_network().layers
        network = nn.Sequential([first, nn.Dropout(rate), *rest], (5,))
        plan = make_plan(network, steps=1)
        Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.5), plan).train(*make_data(), Streams(1))
        return network.params["dense1", "W"]

    assert (dropping(0.5) != dropping(0.0)).any()
