"""A model file knows its network: what goes out comes back, and what would not is refused."""

from dataclasses import replace

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.audit.cases import LAYERS, to_backend
from minidp.backend import to_host
from minidp.errors import CheckpointError, DtypeError, ParameterError, RowsError, ShapeError
from minidp.run import Model, Run, load_model, save_model
from tests.support.running import make_arrays, make_run


class Bent(nn.Layer):
    """One's own layer: y = power(x s), its argument kept under its name."""

    def __init__(self, numbers, power, *, dtype="float32"):
        super().__init__()
        self.numbers, self.power, self.params = numbers, power, {"s": np.full(numbers, 2, dtype)}
        self.params["s"] *= 1.5  # its arrays may be changed at once

    def compute_y(self, x, rng):
        return (x * self.params["s"]) ** self.power, None


class Forgets(Bent):  # keeps an argument nowhere
    def __init__(self, size):
        super().__init__(size, 1)


class Settled(Forgets):  # says where
    def settings(self):
        return {"size": self.numbers}


class Tanh(nn.Tanh):  # has the name of one of minidp's
    def compute_y(self, x, rng):
        return -super().compute_y(x, rng)[0], x


class Halved(nn.Sequential):  # one's own network
    def forward(self, x, *, rng=None):
        y, caches = super().forward(x, rng=rng)
        return y / 2, caches


def network_of(*layers):
    return nn.Sequential(layers, (3,))


def dense(outputs=2, inputs=3):
    return nn.Dense(inputs, outputs, rng=np.random.default_rng(0))


def some_model():
    layers = [
        nn.Standardise(np.ones(3), np.full(3, 2.0)),
        dense(4),
        nn.ReLU(),
        nn.LayerNorm(4),
        dense(2, 4),
    ]
    return nn.Sequential(layers, (3,), frozen=["dense1"])


def again(folder, network, layers=None, **more):
    """The model that was saved and loaded."""
    save_model(folder / "m.npz", network, **more)
    return load_model(folder / "m.npz", layers)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_layer_comes_back_and_gives_the_same_bits(case, dtype, backend, rng, tmp_path):
    network = nn.Sequential([to_backend(case.make(rng, dtype), backend)], case.shape)
    found, x = again(tmp_path, network).network.to(backend), case.input(rng, 3, dtype)
    before, after = (to_host(each.forward(backend.asarray(x))[0]) for each in (network, found))
    np.testing.assert_array_equal(before, after)
    assert before.dtype == after.dtype and found.layers[0].name == network.layers[0].name
    assert found.layers[0].settings().keys() == network.layers[0].settings().keys()


def test_a_model_comes_back_with_all_that_it_knows(rng, tmp_path):
    network, x = some_model(), rng.uniform(-1, 1, (6, 3))
    model = again(
        tmp_path,
        network,
        about={"epsilon": np.float64(2)},
        classes=["a", "b"],
        ledger_sha256="ab" * 32,
    )
    assert (
        model.about == {"epsilon": 2.0}
        and model.ledger_sha256 == "ab" * 32
        and model.network.frozen == {"dense1"}
    )
    assert list(model.predict(x)) == [
        "ab"[k] for k in network.predict(x.astype("float32")).argmax(axis=1)
    ]
    assert repr(model) == (
        "<Model: x (B, 3) to 2 classes (a, b); standardise1, dense1, relu1, layernorm1, dense2; "
        "40 parameters>"
    )


@pytest.mark.parametrize(
    "classes", [[3, 1], [True, False], [0.5, -1.0], ["a", "ü"], np.array([7, 250], np.uint8)]
)
def test_classes_of_every_kind_come_back(classes, tmp_path):
    found = again(tmp_path, some_model(), classes=classes).predict(np.zeros((1, 3)))
    assert found[0] in list(classes) and found.dtype.kind == np.asarray(classes).dtype.kind.replace(
        "u", "i"
    )


def test_probabilities_are_float64_and_sum_to_one(rng):
    model, x = Model(network_of(dense()), [0, 1]), rng.uniform(-1, 1, (50, 3)) * 1e4
    found = model.predict_proba(x)
    assert found.dtype == np.float64 and np.abs(found.sum(axis=1) - 1).max() < 1e-15
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(x))
    x[3:5] = [[np.nan], [np.inf]]
    with pytest.warns(UserWarning, match="^2 of 50 rows hold a number that is not finite") as said:
        after = model.predict_proba(x)
        assert model.predict(x).shape == (50,)
    assert [each.filename for each in said] == [__file__] * 2
    assert np.isnan(after[3]).all()
    np.testing.assert_array_equal(after[5:], found[5:])


def test_images_are_taken_as_a_loader_gives_them_and_pixels_are_never_misread(
    rng, backend, tmp_path
):
    images = rng.integers(0, 256, (5, 3, 1), dtype="uint8")
    network = network_of(dense())
    model = again(tmp_path, network, classes=["no", "yes"], image_shape=(3, 1))
    model.network.to(backend)
    scaled = images.reshape(5, 3) / np.float32(255)
    expected = again(tmp_path, network, classes=["no", "yes"]).predict_proba(scaled)
    for x in (images, images.astype("int64"), images.reshape(5, 3), scaled, scaled[..., None]):
        np.testing.assert_allclose(model.predict_proba(x), expected, rtol=1e-6)
    assert model.image_shape == (3, 1) and repr(model).startswith(
        "<Model: x (B, 3) or images (B, 3, 1) to"
    )
    for x in (images.astype("float32"), images.astype("int16") - 256, -scaled):
        with pytest.raises(RowsError, match="integers from 0 to 255, or as other numbers from 0"):
            model.predict(x)
    for x, got in (
        (images[0], r"\(3, 1\); give one example as x\[None\]"),
        (images.T, r"\(1, 3, 5\)"),
    ):
        message = rf"takes x of shape \(B, 3\), or images of shape \(B, 3, 1\), got {got}$"
        with pytest.raises(ShapeError, match=message):
            model.predict(x)


def test_a_regression_is_mapped_to_its_bounds_and_clipped(tmp_path):
    network = nn.Sequential([dense(1, 1)], (1,))
    network.params["dense1", "W"][...] = 1
    model = again(tmp_path, network, target_bounds=(10, 30))
    assert list(model.predict([[-1], [0], [0.5], [9]])) == [
        10,
        20,
        25,
        30,
    ] and model.target_bounds == (10.0, 30.0)
    with pytest.raises(ParameterError, match="predict_proba: expected a model with classes"):
        model.predict_proba([[0]])
    assert list(again(tmp_path, network).predict([[7]])[0]) == [7]
    assert "numbers from 10 to 30" in repr(model) and "outputs (1,)" in repr(Model(network))


def test_numbers_of_every_kind_are_converted_batch_by_batch(rng, backend, tmp_path, monkeypatch):
    monkeypatch.setattr(minidp.run.model, "MOST_ROWS", 2)
    model, whole = Model(network_of(dense()).to(backend), [0, 1]), rng.integers(0, 2, (5, 3))
    on_disk = np.memmap(tmp_path / "x", "uint8", "w+", shape=(5, 3))
    on_disk[:] = whole
    expected = model.predict_proba(whole)
    for x in (
        whole.tolist(),
        whole.astype(bool),
        on_disk,
        whole.astype("float16"),
        whole.astype("float64"),
    ):
        np.testing.assert_array_equal(model.predict_proba(x), expected)
    assert model.predict(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    "x, error, message",
    [
        ([[1, 2, 3], [1]], ShapeError, "different lengths"),
        (np.zeros((2, 3), complex), DtypeError, "takes x of numbers, got dtype complex128"),
    ],
)
def test_other_inputs_are_refused_with_what_the_model_takes(x, error, message):
    with pytest.raises(error, match=message):
        Model(some_model(), [0, 1]).predict(x)


@pytest.mark.parametrize(
    "message, more",
    [
        ("one class for each", {"classes": [0, 1, 2]}),
        ("one output", {"target_bounds": (0, 1)}),
        *[
            ("to be different .* all of one kind", {"classes": each})
            for each in (2, [0, 0], [0, np.nan], [0, [1]], np.array(["x", 1], object))
        ],
        ("low < high", {"target_bounds": (1, 0)}),
        ("got both", {"classes": [0, 1], "target_bounds": (0, 1)}),
        ("as many pixels as the network's input", {"image_shape": (2, 2)}),
    ],
)
def test_classes_and_bounds_that_do_not_fit_are_refused(message, more):
    with pytest.raises(ParameterError, match=message):
        Model(some_model(), **more)


@pytest.mark.parametrize(
    "network",
    [
        network_of(Bent(3, 2), dense()),
        network_of(Settled(3)),
        network_of(Tanh()),
        Halved([Bent(3, 1)], (3,)),
    ],
)
def test_classes_of_ones_own_come_back_where_they_are_passed(network, rng, tmp_path):
    own, x = (
        {each.__name__: each for each in (Bent, Settled, Tanh, Halved)},
        np.ones((1, 3), "float32"),
    )
    np.testing.assert_array_equal(
        again(tmp_path, network, own).network.predict(x), network.predict(x)
    )
    with pytest.raises(
        CheckpointError, match="is none of minidp's layers; pass yours to load_model"
    ):
        load_model(tmp_path / "m.npz")
    with pytest.raises(CheckpointError, match="is no nn.Layer with a name that is printable"):
        load_model(tmp_path / "m.npz", {name: lambda *given, **more: "nothing" for name in own})


@pytest.mark.parametrize(
    "network, message",
    [
        (
            network_of(Forgets(3)),
            r"layer1: a model file cannot hold Forgets: .* no attribute size, an argument of "
            r"Forgets",
        ),
        (network_of(Bent(3, lambda x: x)), "cannot hold Bent"),
        (network_of(Bent(3, 1), type("Bent", (Bent,), {})(3, 1)), "two classes have the name Bent"),
    ],
)
def test_what_cannot_be_made_again_is_refused_before_anything_is_charged(
    network, message, tmp_path
):
    run = make_run(tmp_path / "run")
    training = replace(run.training, network=network)
    for attempt in (
        lambda: save_model(tmp_path / "m.npz", network),
        lambda: run.train(*make_arrays(), model=network),
        lambda: Run(tmp_path / "other", training, run.privacy),
    ):
        with pytest.raises(ParameterError, match=message):
            attempt()
    assert not list(tmp_path.iterdir())
