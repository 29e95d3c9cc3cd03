"""The shared contract: every row of minidp/audit/cases.py, on every backend."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp import nn
from minidp.audit import gradcheck
from minidp.backend import to_host
from minidp.errors import BackendMismatchError, DtypeError, ShapeError
from minidp.mechanism import Sanitizer, flat_group
from minidp.audit.cases import LAYERS, everything, to_backend
from tests.support.guarded import guarded_backend

TOLERANCE = 1e-6
layers = pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
with_params = pytest.mark.parametrize(
    "case", [c for c in LAYERS if c.make(np.random.default_rng(0), "float64").params], ids=lambda case: case.name)


@layers
def test_forward_equals_loop(case, backend, rng):
    layer = case.make(rng, "float64")
    x = case.input(rng, 5)
    expected = case.reference(x, everything(layer))
    y, _ = to_backend(layer, backend).forward(backend.asarray(x))
    np.testing.assert_allclose(to_host(y), expected, rtol=1e-12, atol=1e-14)
    assert tuple(y.shape[1:]) == layer.output_shape(case.shape)


@layers
def test_input_gradient(case, rng):
    layer = case.make(rng, "float64")
    error = gradcheck.away_from_kinks(lambda: case.input(rng, 5), lambda x: gradcheck.layer_input_error(layer, x, rng))
    assert error < TOLERANCE


@pytest.mark.parametrize("case", [c for c in LAYERS if c.analytic], ids=lambda case: case.name)
def test_input_gradient_by_complex_step(case, rng):
    layer = case.make(rng, "float64")
    assert gradcheck.layer_input_error(layer, case.input(rng, 5), rng, complex_step=True) < 1e-13


@with_params
def test_per_example_gradients_equal_differences(case, rng):
    layer = case.make(rng, "float64")
    errors = gradcheck.layer_param_errors(layer, case.input(rng, 3), rng)
    assert errors.keys() == layer.params.keys()
    assert max(errors.values()) < TOLERANCE


@with_params
def test_per_example_gradients_equal_a_loop_over_examples(case, backend, rng):
    layer = to_backend(case.make(rng, "float64"), backend)
    x = backend.asarray(case.input(rng, 4))
    y, cache = layer.forward(x)
    dy = backend.asarray(rng.uniform(-1, 1, y.shape))
    for name, grad in layer.param_grads(dy, cache).items():
        for b in range(4):
            _, one = layer.forward(x[b : b + 1])
            single = layer.param_grads(dy[b : b + 1], one)[name].materialise()
            np.testing.assert_allclose(to_host(grad.materialise()[b]), to_host(single[0]), rtol=1e-12, atol=1e-15)


@with_params
def test_weights_of_one_give_the_gradient_of_the_batch(case, backend, rng):
    layer = to_backend(case.make(rng, "float64"), backend)
    x = backend.asarray(case.input(rng, 4))
    y, cache = layer.forward(x)
    dy = backend.asarray(rng.uniform(-1, 1, y.shape))
    for grad in layer.param_grads(dy, cache).values():
        expected = to_host(grad.materialise()).sum(axis=0)
        for strategy in ("auto", "explicit", "factored"):
            ones = backend.asarray(np.ones(4))
            got = to_host(grad.form(strategy).weighted_sum(ones))
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


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
        assert grad.sq_norms().shape == (batch,) and grad.sq_norms().dtype == np.dtype(dtype)
    if grads:
        keyed = {("layer", name): grad for name, grad in grads.items()}
        for key, total in Sanitizer(flat_group(keyed, 1.0, 0.0)).add_clipped(keyed).items():
            assert total.shape == layer.params[key[1]].shape and total.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(to_host(x), host)
    np.testing.assert_array_equal(to_host(dy), dy_host)


@layers
def test_examples_do_not_talk_to_each_other(case, rng):
    layer = case.make(rng, "float64")
    x = case.input(rng, 4)
    moved = x.copy()
    moved[0] += rng.uniform(1, 2, case.shape)
    results = []
    dy = None
    for at in (x, moved):
        y, cache = layer.forward(at)
        dy = rng.uniform(-1, 1, y.shape) if dy is None else dy
        results.append((y, layer.backward(dy, cache),
                        *(g.materialise() for g in layer.param_grads(dy, cache).values())))
    for before, after in zip(*results):
        np.testing.assert_array_equal(before[1:], after[1:])


@layers
def test_backward_can_be_called_twice_and_late(case, rng):
    layer = case.make(rng, "float64")
    x = case.input(rng, 3)
    y, cache = layer.forward(x)
    dy = rng.uniform(-1, 1, y.shape)
    first = layer.backward(dy, cache)
    layer.forward(case.input(rng, 2))
    np.testing.assert_array_equal(first, layer.backward(dy, cache))


@layers
def test_wrong_input_is_refused_with_the_layers_name(case, rng):
    layer = case.make(rng, "float64")
    layer.name = "thelayer"
    with pytest.raises(DtypeError, match="thelayer"):
        layer.forward(np.zeros((2, *case.shape), int))
    y, cache = layer.forward(case.input(rng, 2))
    with pytest.raises(ShapeError, match="thelayer: expected dy of shape"):
        layer.backward(np.zeros((2, 17)), cache)
    if case.wrong_shape:
        with pytest.raises(ShapeError, match="thelayer: expected"):
            layer.forward(np.zeros((2, *case.wrong_shape)))
        with pytest.raises(ShapeError, match="thelayer: expected"):
            layer.output_shape(case.wrong_shape)
    if layer.params or layer.constants:
        with pytest.raises(BackendMismatchError, match="one library"):
            layer.forward(guarded_backend().asarray(case.input(rng, 2)))


def test_the_message_names_both_shapes(rng):
    layer = nn.Dense(784, 10, rng=rng, name="dense1")
    with pytest.raises(ShapeError, match=r"^dense1: expected x of shape \(B, 784\), got \(64, 28, 28\)$"):
        layer.forward(np.zeros((64, 28, 28)))


class WrongTanh(nn.Tanh):
    """A backward that is wrong in a way which an all-ones gradient on symmetric data can miss."""

    def _gradient(self, dy, y, xp):
        return dy * (1 - y)


class WrongSoftmax(nn.Softmax):
    """Wrong by a term that vanishes when the upstream gradient is constant."""

    def _gradient(self, dy, y, xp):
        return 3 * y * (dy - (dy * y).sum(axis=-1, keepdims=True))


class WrongDense(nn.Dense):
    """Right in dx, wrong in one entry of the per-example gradient."""

    def param_grads(self, dy, cache):
        grads = super().param_grads(dy, cache)
        grads["W"].a = grads["W"].a.copy()
        grads["W"].a[:, 0] *= 1.001
        return grads


@pytest.mark.parametrize("wrong", [WrongTanh(), WrongSoftmax()], ids=["tanh", "softmax"])
def test_broken_input_gradients_are_noticed(wrong, rng):
    x = rng.uniform(-1, 1, (4, 3))
    assert gradcheck.layer_input_error(wrong, x, rng) > 1e-2
    assert gradcheck.layer_input_error(wrong, x, rng, complex_step=True) > 1e-2


def test_a_broken_parameter_gradient_is_noticed(rng):
    errors = gradcheck.layer_param_errors(WrongDense(3, 2, rng=rng, dtype="float64"), rng.uniform(-1, 1, (2, 3)), rng)
    assert errors["W"] > 1e-4 and errors["b"] < TOLERANCE
