"""A model file knows its network: what goes out comes back, and nothing else in a file does harm."""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidp
from minidp import nn
from minidp.audit.cases import LAYERS, to_backend
from minidp.backend import to_host
from minidp.errors import CheckpointError, DtypeError, ParameterError, ShapeError
from minidp.run import Model, load_model, load_weights, save_model
from minidp.run.checkpoint import load_arrays, save_arrays
from minidp.run.architecture import describe
from tests.support.running import make_arrays, make_run

ROOT = Path(__file__).resolve().parents[2]
PRETRAINED = ROOT / "experiments" / "pretrained" / "cifar_transfer.npz"


class Bent(nn.Layer):
    """One's own layer: y = power(x s), its argument kept under its name."""

    kind = "bent"

    def __init__(self, numbers, power, *, dtype="float32"):
        super().__init__()
        self.numbers, self.power = numbers, power
        self.params = {"s": np.full(numbers, 2, dtype)}
        self.params["s"] *= 1.5  # its arrays may be changed at once

    def compute_y(self, x, rng):
        return (x * self.params["s"]) ** self.power, None


class Forgets(Bent):
    """Keeps an argument nowhere."""

    def __init__(self, size):
        super().__init__(size, 1)


class Doubles(Bent):
    """Keeps another number than it was given under the argument's name."""

    def __init__(self, power):
        super().__init__(3, 2 * power)


def dense(inputs, outputs, rng, **options):
    return nn.Dense(inputs, outputs, rng=rng, **options)


def some_model(rng):
    return nn.Sequential([nn.Standardise(np.ones(3), np.full(3, 2.0)), dense(3, 4, rng, bias=False, name="first"),
                          nn.ReLU(), nn.LayerNorm(4), dense(4, 2, rng)], (3,), frozen=["first"])


def saved(folder, network, **more):
    path = folder / "m.npz"
    save_model(path, network, **more)
    return path


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_layer_comes_back_and_gives_the_same_bits(case, dtype, backend, rng, tmp_path):
    network = nn.Sequential([to_backend(case.make(rng, dtype), backend)], case.shape)
    again = load_model(saved(tmp_path, network)).network
    x = case.input(rng, 3, dtype)
    before, after = to_host(network.forward(backend.asarray(x))[0]), again.forward(x)[0]
    np.testing.assert_array_equal(before, after)
    assert before.dtype == after.dtype and again.layers[0].name == network.layers[0].name
    assert again.layers[0].settings().keys() == network.layers[0].settings().keys()


def test_a_model_comes_back_with_all_that_it_knows(rng, tmp_path):
    network = some_model(rng)
    model = minidp.load_model(saved(tmp_path, network, about={"epsilon": np.float64(2)}, classes=["a", "b"],
                                    ledger_sha256="ab" * 32))
    assert model.about == {"epsilon": 2.0} and model.ledger_sha256 == "ab" * 32 and list(model.classes) == ["a", "b"]
    assert model.network.frozen == {"first"} and model.network.params.keys() == network.params.keys()
    x = rng.uniform(-1, 1, (5, 3))
    assert list(model.predict(x)) == ["ab"[k] for k in network.predict(x.astype("float32")).argmax(axis=1)]
    assert repr(model) == ("<Model: x (B, 3) to 2 classes (a, b); standardise1, first, relu1, layernorm1, dense2; "
                           "36 parameters>")
    other = some_model(np.random.default_rng(9))
    assert load_weights(tmp_path / "m.npz", other) == {"epsilon": 2.0}
    np.testing.assert_array_equal(other.predict(x), network.predict(x))


@pytest.mark.parametrize("classes", [[3, 1], [True, False], [0.5, -1.0], ["a", "ü"], np.array(["x", 1], object),
                                     np.array([7, 250], np.uint8)])
def test_classes_of_every_kind_come_back(classes, rng, tmp_path):
    if getattr(classes, "dtype", None) == object:
        with pytest.raises(ParameterError, match="all of one kind"):
            save_model(tmp_path / "m.npz", some_model(rng), classes=classes)
        return
    found = load_model(saved(tmp_path, some_model(rng), classes=classes)).predict(np.zeros((1, 3)))
    assert found[0] in list(classes) and found.dtype.kind == np.asarray(classes).dtype.kind.replace("u", "i")


def test_probabilities_are_float64_and_sum_to_one(rng):
    model = Model(nn.Sequential([dense(3, 2, rng)], (3,)), [0, 1])
    x = rng.uniform(-1, 1, (50, 3)) * 1e4
    found = model.predict_proba(x)
    assert found.dtype == np.float64 and np.abs(found.sum(axis=1) - 1).max() < 1e-15
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(x))
    x[3] = np.nan
    x[4] = np.inf
    assert model.predict(x).shape == (50,) and np.isnan(model.predict_proba(x)[3]).all()
    np.testing.assert_array_equal(model.predict_proba(x)[5:], found[5:])


def test_a_regression_is_mapped_to_its_bounds_and_clipped(rng, tmp_path):
    network = nn.Sequential([dense(1, 1, rng)], (1,))
    network.params["dense1", "W"][...] = 1
    model = load_model(saved(tmp_path, network, target_bounds=(10, 30)))
    assert list(model.predict([[-1], [0], [0.5], [9]])) == [10, 20, 25, 30] and model.target_bounds == (10.0, 30.0)
    with pytest.raises(ParameterError, match="predict_proba: expected a model with classes"):
        model.predict_proba([[0]])
    assert list(load_model(saved(tmp_path, network)).predict([[7]])[0]) == [7]
    assert "numbers from 10 to 30" in repr(model) and "outputs (1,)" in repr(Model(network))


def test_numbers_of_every_kind_are_converted_batch_by_batch(rng, backend, tmp_path, monkeypatch):
    monkeypatch.setattr(minidp.run.model, "MOST_ROWS", 2)
    model = Model(nn.Sequential([dense(3, 2, rng)], (3,)).to(backend), [0, 1])
    whole = rng.integers(0, 2, (5, 3))
    on_disk = np.memmap(tmp_path / "x", "uint8", "w+", shape=(5, 3))
    on_disk[:] = whole
    expected = model.predict_proba(whole)
    for x in (whole.tolist(), whole.astype(bool), on_disk, whole.astype("float16"), whole.astype("float64")):
        np.testing.assert_array_equal(model.predict_proba(x), expected)
    assert model.predict(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize("x, error, message", [
    (np.zeros((2, 4)), ShapeError, r"takes x of shape \(B, 3\), got \(2, 4\)$"),
    (np.zeros(3), ShapeError, r"got \(3,\); give one example as x\[None\]"),
    ([[1, 2, 3], [1]], ShapeError, "different lengths"), (7, ShapeError, r"got \(\)"),
    ([["a", "b", "c"]], DtypeError, "takes x of numbers, got dtype <U1"),
    (np.zeros((2, 3), complex), DtypeError, "got dtype complex128"), ([[None] * 3], DtypeError, "got dtype object")])
def test_other_inputs_are_refused_with_what_the_model_takes(x, error, message, rng):
    with pytest.raises(error, match=message):
        Model(some_model(rng), [0, 1]).predict(x)


@pytest.mark.parametrize("more, message", [
    ({"classes": [0, 1, 2]}, "expected 2 classes"), ({"classes": [0, 0]}, "different"),
    ({"classes": 2}, "classes=2 to be"),
    ({"classes": [0, np.nan]}, "different"), ({"classes": [0, [1]]}, "different"),
    ({"target_bounds": (0, 1)}, "one output"), ({"target_bounds": (1, 0)}, "low < high"),
    ({"target_bounds": ("0", "1")}, "finite"), ({"target_bounds": 3}, "finite"),
    ({"target_bounds": (-1.7e308, 1.7e308)}, "finite"), ({"classes": [0, 1], "target_bounds": (0, 1)}, "got both")])
def test_classes_and_bounds_that_do_not_fit_are_refused(more, message, rng):
    with pytest.raises(ParameterError, match=message):
        Model(some_model(rng), **more)


def test_a_layer_of_ones_own_is_loaded_by_its_class(rng, tmp_path):
    network = nn.Sequential([Bent(3, 2), dense(3, 2, rng)], (3,))
    path, x = saved(tmp_path, network, classes=[0, 1]), rng.uniform(-1, 1, (4, 3)).astype("float32")
    np.testing.assert_array_equal(load_model(path, {"Bent": Bent}).network.predict(x), network.predict(x))
    with pytest.raises(CheckpointError, match="class 'Bent' is none of minidp's layers; pass yours to load_model"):
        load_model(path)
    with pytest.raises(CheckpointError, match="is no nn.Layer with a name that is printable"):
        load_model(path, {"Bent": lambda numbers, power: "nothing"})


def test_ones_own_class_named_as_one_of_the_library_is_not_mistaken_for_it(rng, tmp_path):
    class Dense(nn.Dense):
        def compute_y(self, x, rng):
            return -super().compute_y(x, rng)[0], x

        def __init__(self, inputs, outputs, *, rng, bias=True):
            super().__init__(inputs, outputs, rng=rng, bias=bias)

    network, x = nn.Sequential([Dense(3, 2, rng=rng)], (3,)), np.ones((1, 3), np.float32)
    path = saved(tmp_path, network)
    with pytest.raises(CheckpointError, match="class 'Dense' is none of minidp's"):
        load_model(path)
    np.testing.assert_array_equal(load_model(path, {"Dense": Dense}).network.predict(x), network.predict(x))
    with pytest.raises(ParameterError, match="got two Bent"):
        save_model(path, nn.Sequential([Bent(3, 1), type("Bent", (Bent,), {})(3, 1)], (3,)))


class Block(nn.Layer):
    """One's own layer made of another, whose arrays are its own."""

    def __init__(self, outputs, *, rng, dtype="float32"):
        super().__init__()
        self.outputs, self.inner = outputs, nn.Dense(3, outputs, rng=rng, dtype=dtype)
        self.params = {f"inner_{name}": array for name, array in self.inner.params.items()}

    def shape_of_y(self, input_shape):
        return self.inner.output_shape(input_shape)

    def compute_y(self, x, rng):
        return self.inner.forward(x)


class Halved(nn.Sequential):
    """One's own network."""

    def forward(self, x, *, rng=None):
        y, caches = super().forward(x, rng=rng)
        return y / 2, caches


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_made_of_others_and_a_network_of_ones_own_come_back(dtype, rng, tmp_path):
    network, x = Halved([Block(2, rng=rng, dtype=dtype)], (3,)), rng.uniform(-1, 1, (4, 3)).astype(dtype)
    again = load_model(saved(tmp_path, network), {"Halved": Halved, "Block": Block}).network
    np.testing.assert_array_equal(again.predict(x), network.predict(x))

    class Needs(Halved):
        def __init__(self, *layers):
            super().__init__(layers, (3,))

    with pytest.raises(ParameterError, match="cannot hold the network Needs: .*; give an nn.Sequential"):
        save_model(tmp_path / "m.npz", Needs(nn.ReLU()))
    with pytest.raises(ParameterError, match="holds an nn.Sequential, or a subclass of it, got a ReLU"):
        describe(nn.ReLU())


@pytest.mark.parametrize("layer, message", [
    (Forgets(3), r"bent1: a model file cannot hold the layer Forgets: .* no attribute size, an argument of Forgets"),
    (Doubles(1), "has the settings {'power': 4}; give the class a method settings"),
    (Bent(3, lambda x: x), "cannot hold the layer Bent"), (Bent(3, float("inf")), "cannot hold the layer Bent"),
    (Bent(np.arange(3), 1), "cannot hold the layer Bent")])
def test_a_layer_that_cannot_be_made_again_is_refused_before_anything_is_charged(layer, message, rng, tmp_path):
    network = nn.Sequential([layer, dense(3, 2, rng)], (3,))
    with pytest.raises(ParameterError, match=message):
        save_model(tmp_path / "m.npz", network)
    run = make_run(tmp_path / "run")
    with pytest.raises(ParameterError, match=message):
        type(run)(tmp_path / "other", network, run.loss, run.optimizer, run.plan, run.budget, run.streams)
    with pytest.raises(ParameterError, match=message):
        run.train(*make_arrays(), model=network)
    assert not run.ledger.items() and not (tmp_path / "other").exists()


def test_settings_of_ones_own_make_up_for_names(rng, tmp_path):
    class Settled(Forgets):
        def settings(self):
            return {"size": self.numbers}

    network, x = nn.Sequential([Settled(3)], (3,)), rng.uniform(-1, 1, (2, 3)).astype("float32")
    found = load_model(saved(tmp_path, network), {"Settled": Settled})
    np.testing.assert_array_equal(found.predict(x), network.predict(x))


def test_parameters_of_an_earlier_version_need_their_network():
    with pytest.raises(CheckpointError, match="parameters without an architecture.*load_weights"):
        load_model(PRETRAINED)


def test_a_model_of_one_process_predicts_in_another(rng, tmp_path):
    x = rng.uniform(-1, 1, (6, 3))
    path = saved(tmp_path, some_model(rng), classes=["no", "yes"])
    np.save(tmp_path / "x.npy", x)
    script = ("import minidp, numpy as np; m = minidp.load_model('m.npz'); "
              "np.savez('y.npz', y=m.predict(np.load('x.npy')), p=m.predict_proba(np.load('x.npy')))")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=True, timeout=120)
    with np.load(tmp_path / "y.npz") as there:
        np.testing.assert_array_equal(there["y"], load_model(path).predict(x))
        np.testing.assert_array_equal(there["p"], load_model(path).predict_proba(x))


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """(path, arrays, header) of a model with layers of every kind of setting."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("model") / "m.npz"
    network = nn.Sequential([
        nn.Conv2D(1, 2, 3, rng=rng, stride=2), nn.GroupNorm(2, 1), nn.MaxPool2D(2, 1, "same"), nn.Flatten(),
        nn.Dropout(0.1), nn.Project(np.ones((18, 4), np.float32)), nn.Standardise(np.ones(4, "f4"), np.ones(1, "f4")),
        nn.LayerNorm(4), nn.Tanh(), nn.Dense(4, 3, rng=rng)], (5, 6, 1))
    save_model(path, network, {"a": 1}, classes=[1, 2, 3], ledger_sha256="0" * 64)
    return path, *load_arrays(path)


def refused_or_whole(path):
    """Whatever is in the file: a CheckpointError of one line, or a model."""
    try:
        return load_model(path)
    except CheckpointError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return None


def places(value, at=()):
    """Every place in a JSON value."""
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


odd = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9),
    st.sampled_from([10**6, 10**9, 2**40, 10**30, -(10**9), 1e308, 0.5, -1.0]),
    st.sampled_from(["", "nn.Dense", "nn.Layer", "nn.Sequential", "os.system", "x" * 9999, "a\nb", "same", "W"]),
    st.lists(st.integers(0, 2**40), max_size=3), st.just({}), st.just({"rng": 1}), st.just({"W": "W"}), st.just([[[]]]))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_edits_of_the_header_are_refused_in_one_line(example, data):
    path, arrays, header = example
    header = json.loads(json.dumps(header))
    crafted = path.with_name("crafted.npz")
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from([place for place in places(header) if place]))
        inner = header
        for key in way:
            inner = inner[key]
        if data.draw(st.integers(0, 3)):
            inner[last] = json.loads(json.dumps(data.draw(odd)))
        else:
            del inner[last]
    save_arrays(crafted, arrays, header)
    refused_or_whole(crafted)


def test_bytes_changed_and_cut_are_refused_or_harmless(example):
    path, arrays, _ = example
    content, crafted = path.read_bytes(), path.with_name("cut.npz")
    before = load_model(path)
    for place in range(0, len(content), 11):
        crafted.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :])
        found = refused_or_whole(crafted)
        if found:
            assert repr(found) == repr(before)
        crafted.write_bytes(content[:place])
        assert refused_or_whole(crafted) is None


def by_kind(header, kind):
    return next(row for row in header["architecture"]["layers"] if row["class"] == kind)["settings"]


@pytest.mark.parametrize("kind, setting", [
    ("nn.Dense", {"inputs": 10**9}), ("nn.Dense", {"inputs": 10**9, "outputs": 10**9}),
    ("nn.Dense", {"outputs": 2**40}),
    ("nn.Conv2D", {"out_channels": 10**12}), ("nn.Conv2D", {"kernel": [10**6] * 2}), ("nn.Conv2D", {"padding": 10**6}),
    ("nn.GroupNorm", {"channels": 10**11}), ("nn.LayerNorm", {"shape": [10**6, 10**6]}),
    ("nn.LayerNorm", {"shape": [2**40] * 3})])
def test_huge_sizes_are_refused_before_they_take_memory(kind, setting, example, monkeypatch):
    path, arrays, header = example
    header = json.loads(json.dumps(header))
    by_kind(header, kind).update(setting)
    crafted = path.with_name("huge.npz")
    save_arrays(crafted, arrays, header)
    loaded = load_arrays(crafted, "model")
    made, full = [], np.full
    monkeypatch.setattr(minidp.run.model, "load_arrays", lambda *asked: loaded)
    monkeypatch.setattr(nn.init.np, "full", lambda shape, *more: made.append(shape) or full(shape, *more))
    with pytest.raises(CheckpointError, match="huge.npz"):
        load_model(crafted)
    assert set(made) <= {()}
