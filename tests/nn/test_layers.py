"""The shared contract: every row of minidp/audit/cases.py, on every backend."""
import numpy as np
import pytest

from minidp.errors import BackendMismatchError, ShapeError
from minidp.audit import check_layer
from minidp.audit.cases import LAYERS
from tests.support.guarded import guarded_backend

layers = pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)


@layers
def test_the_tests_for_own_layers_pass(case, rng):
    report = check_layer(case.make(rng, "float64"), case.shape)
    assert report, str(report)


@layers
def test_wrong_input_is_refused_with_the_layers_name(case, rng):
    layer = case.make(rng, "float64")
    layer.name = "thelayer"
    if case.wrong_shape:
        with pytest.raises(ShapeError, match="thelayer: expected"):
            layer.forward(np.zeros((2, *case.wrong_shape)))
        with pytest.raises(ShapeError, match="thelayer: expected"):
            layer.output_shape(case.wrong_shape)
    if layer.params or layer.constants:
        with pytest.raises(BackendMismatchError, match="one library"):
            layer.forward(guarded_backend().asarray(case.input(rng, 2)))
