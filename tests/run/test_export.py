"""ONNX files give what the model gives, by another program."""

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.errors import ParameterError
from minidp.run import Model

onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
NETWORKS = {
    "dense": lambda: nn.Sequential(
        [
            nn.Standardise(np.full(6, 0.5, "f"), np.full(6, 2.0, "f")),
            nn.Clamp(1.0),
            nn.UnitNorm(),
            nn.Project(RNG.normal(size=(6, 5)).astype("f")),
            nn.Dense(5, 7, rng=RNG),
            nn.LayerNorm(7),
            nn.Tanh(),
            nn.Dropout(0.5),
            nn.Dense(7, 4, rng=RNG, bias=False),
            nn.Sigmoid(),
        ],
        (6,),
    ),
    "positions": lambda: nn.Sequential(
        [nn.Dense(3, 4, rng=RNG), nn.LayerNorm(4), nn.Softmax(), nn.Flatten(), nn.Dense(20, 4)],
        (5, 3),
    ),
    **{
        f"images, {padding} and stride {stride}": lambda padding=padding, stride=stride: (
            nn.Sequential(
                [
                    nn.Conv2D(2, 6, (3, 2), rng=RNG, padding=padding, stride=stride),
                    nn.GroupNorm(6, 3),
                    nn.ReLU(),
                    nn.MaxPool2D(3, 2, padding=1),
                    nn.Conv2D(6, 4, 2, rng=RNG, bias=False),
                    nn.AvgPool2D((2, 3), 2, padding="same"),
                    nn.Flatten(),
                ],
                (11, 12, 2),
            )
        )
        for padding in ("same", (1, 0))
        for stride in (1, 2)
    },
}


def ran(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {"x": x})
    return {each.name: value for each, value in zip(session.get_outputs(), found)}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_outputs_of_every_layer_are_those_of_the_network(name, tmp_path):
    network = NETWORKS[name]()
    for array in network.params.values():
        array += RNG.normal(size=array.shape) / 2
    x = RNG.normal(size=(9, *network.input_shape)).astype("f")
    x[3] = 0
    Model(network).export(tmp_path / "model.onnx")
    found = ran(tmp_path / "model.onnx", x)["outputs"]
    assert np.ptp(found) > 0.1
    np.testing.assert_allclose(found, Model(network).predict(x), atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize(
    "classes", [["ann", "böb", "c"], [3, 7, 8], [0.5, 1.5, 2.5], [-1, 0, 2**40]]
)
def test_labels_and_probabilities(classes, tmp_path):
    model = Model(nn.Sequential([nn.Dense(4, 3, rng=RNG)], (4,)), classes)
    x = RNG.normal(size=(50, 4)).astype("f")
    model.export(tmp_path / "model.onnx")
    found = ran(tmp_path / "model.onnx", x)
    assert found["label"].tolist() == model.predict(x).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(x), atol=1e-6)


def test_a_fitted_regression_and_its_ledger(tmp_path, capfd):
    import onnx

    x = RNG.normal(size=(400, 3))
    given = {"epsilon": 3.0, "seed": 1, "quiet": True, "steps": 40, "scale": "unit-norm"}
    model = minidp.fit(x, 1e9 + 5 * x[:, 0], target_bounds=(1e9 - 5, 1e9 + 5), hidden=8, **given)
    capfd.readouterr()
    model.export(tmp_path / "model.onnx")
    (line,) = capfd.readouterr().err.splitlines()
    assert "model.onnx takes x as float32, 7 digits" in line
    found = ran(tmp_path / "model.onnx", x.astype("f"))["prediction"]
    np.testing.assert_allclose(found, model.predict(x), rtol=0, atol=1e-4)
    (stated,) = onnx.load(tmp_path / "model.onnx").metadata_props
    assert stated.value == model.ledger_sha256


@pytest.mark.parametrize("spread", [10, 1_000])
@pytest.mark.parametrize("public", [None, "bounds", "schema"])
def test_a_time_stamp_keeps_its_digits(public, spread, tmp_path, capfd):
    rng = np.random.default_rng(0)
    x = np.stack([1.7e9 + spread * rng.normal(size=1000), rng.normal(size=1000)], axis=1)
    low, high = [1.7e9 - 5 * spread, -4], [1.7e9 + 5 * spread, 4]
    given, rows = {}, x
    if public == "bounds":
        given["bounds"] = (low, high)
    if public == "schema":
        rows = {"time": x[:, 0], "other": x[:, 1]}
        ranges = zip(rows, low, high)
        given["schema"] = {name: {"type": "number", "low": a, "high": b} for name, a, b in ranges}
    y = np.where((x[:, 0] - 1.7e9) / spread + x[:, 1] > 0, 10**17 + 1, 10**17 + 3)
    model = minidp.fit(rows, y, epsilon=3.0, seed=1, quiet=True, steps=40, **given)
    Model(model.network, model.classes).export(tmp_path / "model.onnx")
    encoded = x if model.schema is None else model.schema.encode(rows).astype("float64")
    assert "float32" not in capfd.readouterr().err
    found = ran(tmp_path / "model.onnx", encoded)
    assert found["label"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-6)


def test_what_has_no_translation_is_refused_by_name(tmp_path):
    words = nn.Sequential([nn.Embedding(9, 4), nn.LSTM(4, 5), nn.Dense(5, 2)], (6,))
    with pytest.raises(ParameterError, match="got embedding1, lstm1"):
        Model(words).export(tmp_path / "model.onnx")
    schema = {"age": {"type": "number", "low": 0, "high": 99}}
    table = {"age": [20, 30, 40, 50] * 20}
    model = minidp.fit(table, [0, 1] * 40, epsilon=1.0, schema=schema, steps=3, quiet=True)
    with pytest.raises(ParameterError, match="one with a schema"):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [[10**17 + 1, 10**17 + 3], [False, True], [-1, 1]])
def test_labels_that_are_integers_or_booleans_stay_so(tmp_path, classes):
    runtime = pytest.importorskip("onnxruntime")
    network = nn.Sequential([nn.Dense(2, 2)], (2,))
    model = Model(network, classes)
    model.export(tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(size=(20, 2)).astype("float32")
    label, _ = runtime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"x": x})
    assert label.dtype == model.classes.dtype and label.tolist() == model.predict(x).tolist()
