"""The shared contract of every layer and loss of minidp/audit/cases.py; what is special to some,
and initial values.
"""

import numpy as np
import pytest
from scipy import stats

from minidp import nn
from minidp.audit import check_layer, check_loss
from minidp.audit.cases import LAYERS, LOSSES
from minidp.backend import to_host
from minidp.errors import BackendMismatchError, DtypeError, ShapeError
from minidp.nn import init
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
            layer.output_shape(case.wrong_shape)
    if layer.params or layer.constants:
        with pytest.raises(BackendMismatchError, match="one library"):
            layer.forward(guarded_backend().asarray(case.input(rng, 2)))


def test_a_group_of_one_number_a_position_has_its_positions():
    assert nn.GroupNorm(4, 4).output_shape((3, 4)) == (3, 4)


@pytest.mark.parametrize("size", [1e30, 1.0, 1e-30])
def test_rows_of_any_size_get_unit_length_and_rows_of_zeros_stay(size, backend):
    x = np.array([[3, 4], [0, 0], [-6, 8]], np.float32) * np.float32(size)
    layer, dy = nn.UnitNorm(), np.array([[4, -3], [1, 1], [-6, 8]], np.float32)
    y, cache = layer.forward(backend.asarray(x))
    np.testing.assert_allclose(to_host(y), [[0.6, 0.8], [0, 0], [-0.6, 0.8]], rtol=1e-6)
    dx = to_host(layer.backward(backend.asarray(dy), cache)) * np.float32(size)
    np.testing.assert_allclose(dx, [[0.8, -0.6], [0, 0], [0, 0]], atol=1e-6)  # across, zero, along


losses = pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)


@losses
def test_the_tests_for_own_losses_pass(case):
    report = check_loss(case.loss, case.shape, case.target)
    assert report, str(report)


@losses
def test_wrong_shapes_and_dtypes_are_refused(case, rng):
    target, shape = case.target(rng, 3, case.shape), case.shape
    for z, target, error, words in (
        (np.zeros((3, *shape, 1)), target, ShapeError, "expected z of shape"),
        (np.zeros((2, *shape)), target, ShapeError, "same number of examples"),
        (np.zeros((3, *shape)), np.zeros((3, *shape, 2)), ShapeError, "target of shape"),
        (np.zeros((3, *shape), int), target, DtypeError, "expected z"),
    ):
        with pytest.raises(error, match=words):
            case.loss(z, target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_he_normal_follows_its_distribution(dtype, rng):
    values = init.he_normal(rng, (5, 8, 5, 50), dtype)  # a kernel: fan-in 5 8 5 = 200
    assert values.shape == (5, 8, 5, 50) and values.dtype == np.dtype(dtype)
    # chance of a false alarm
    assert stats.kstest(values.ravel().astype("float64"), stats.norm(scale=0.1).cdf).pvalue > 1e-6
