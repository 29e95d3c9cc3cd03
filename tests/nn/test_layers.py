"""The shared contract: every row of minidp/audit/cases.py, on every backend."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.backend import to_host
from minidp.errors import BackendMismatchError, ShapeError
from minidp.mechanism import Sanitizer, flat_group
from minidp.audit import check_layer
from minidp.audit.cases import LAYERS, to_backend
from tests.support.guarded import guarded_backend

layers = pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)


@layers
@settings(max_examples=15)
@given(batch=st.integers(0, 3), seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float64"]))
def test_any_batch_keeps_dtype_backend_and_inputs(case, backend, batch, seed, dtype):
    rng = np.random.default_rng(seed)
    layer = to_backend(case.make(rng, dtype), backend)
    host = case.input(rng, batch, dtype)
    x = backend.asarray(host)
    y, cache = layer.forward(x)
    dy_host = rng.uniform(-1, 1, y.shape).astype(dtype)
    dy = backend.asarray(dy_host)
    dx = layer.backward(dy, cache)
    assert y.dtype == dx.dtype == np.dtype(dtype)
    assert type(y) is type(x) and dx.shape == x.shape
    grads = layer.param_grads(dy, cache)
    for name, grad in grads.items():
        assert grad.n_examples == batch and grad.shape == tuple(layer.params[name].shape)
        assert grad.sq_norms().shape == (batch,) and grad.sq_norms().dtype == np.float64
    if grads:
        keyed = {("layer", name): grad for name, grad in grads.items()}
        for key, total in Sanitizer(flat_group(keyed, 1.0, 0.0)).add_clipped(keyed).items():
            assert total.shape == layer.params[key[1]].shape and total.dtype == np.float64
    np.testing.assert_array_equal(to_host(x), host)
    np.testing.assert_array_equal(to_host(dy), dy_host)


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
