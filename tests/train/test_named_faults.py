"""With the audit at hand, the trial before the first charge names the layer and what is wrong."""

import re

import numpy as np
import pytest

from minidp import nn
from minidp.train import selfcheck
from tests.core.test_before_the_first_charge import LABELS, LOSS, network_of, refusal
from tests.support.wrong import LAYERS, LOSSES


@pytest.mark.parametrize("layer, words", LAYERS)
def test_wrong_layers_are_refused_by_name(layer, words):
    layer.name = None
    assert re.match(words, refusal(network_of(layer)))


@pytest.mark.parametrize("loss, words", LOSSES)
def test_wrong_losses_are_refused_by_name(loss, words):
    assert re.match(words, refusal(network_of(), loss, np.zeros((10, 3))))


def test_where_only_rounding_is_off_the_layers_decide(monkeypatch):
    """A network may differ from its derivative, by kinks, where no layer does."""
    suspicion = iter(["dense1.W: the per-example gradient is not the derivative"])
    monkeypatch.setattr(selfcheck, "_not_derivatives", lambda *_: suspicion)
    selfcheck.check(network_of(nn.ReLU()), LOSS, LABELS)
    assert next(suspicion, None) is None
