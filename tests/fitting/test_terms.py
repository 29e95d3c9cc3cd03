"""What a model learned of each column, and how often its probabilities came true."""

import numpy as np
import pytest

import minidp
from minidp.errors import ParameterError
from minidp.fitting import terms
from minidp.fitting.estimators import PrivateClassifier, PrivateRegressor
from minidp.fitting.terms import draw_reliability
from minidp.run.verify import verify

BOUNDS = {"bounds": (-3, 3), "epsilon": 4.0, "seed": 1, "quiet": True}
SCHEMA = {
    "age": {"type": "number", "low": 0, "high": 100},
    "since": {"type": "date", "low": "2000-01-01", "high": "2020-12-31"},
    "job": {"type": "category", "values": ["clerk", "nurse"]},
}


def rows(size, columns=3):
    return np.random.default_rng(size).uniform(-2.5, 2.5, (size, columns))


@pytest.mark.parametrize("size", [150, 20_000])
@pytest.mark.parametrize("classes", [2, 3, None])
def test_a_row_gets_the_sum_of_its_columns_terms(size, classes):
    """With pieces and without, of classes and of a regression."""
    x = rows(size)
    y, named = np.abs(x[:, 0]), {"target_bounds": (0, 3)}
    if classes is not None:
        y, named = np.digitize(y, [0.8, 1.7][: classes - 1]), {"classes": range(classes)}
    model = minidp.fit(x, y, **BOUNDS, **named)
    terms, new = model.terms(), x[:200]
    assert any(layer.kind == "pieces" for layer in model.network.layers) == (size > 150)
    found = []
    for place, term in enumerate(terms.values()):
        near = np.abs(new[:, [place]] - term.values).argmin(axis=1)
        new[:, place] = term.values[near]
        found.append(term.adds[near])
    sums, said = sum(found), model.decision_function(new)
    if classes == 3:
        said = said - said.mean(axis=1, keepdims=True)
    apart = (said - sums) - (said - sums).mean(axis=0)
    np.testing.assert_allclose(apart, 0, atol=1e-4 * np.abs(said).max())
    if size > 150:  # the curve of |x|
        adds = terms["x[0]"].adds
        adds = adds[:, -1] if classes == 3 else adds
        assert adds[100] < min(adds[10], adds[-10]) - 0.5


def test_coefficients_are_in_the_units_of_the_columns():
    x = rows(150) * [1, 100, 1e4] + [0, 5e3, 0]
    named = {"bounds": ([-3, 4e3, -4e4], [3, 6e3, 4e4]), "epsilon": 4.0, "random_state": 1}
    for kind, y, more in (
        (PrivateClassifier, x[:, 0] > 0, {}),
        (PrivateClassifier, np.digitize(x[:, 0], [-1, 1]), {}),
        (PrivateRegressor, x[:, 0], {"target_bounds": (-3, 3)}),
    ):
        model = kind(**named, **more, quiet=True).fit(x, y)
        by_hand = x @ model.coef_.T + model.intercept_
        said = model.fitted_.decision_function(x)
        np.testing.assert_allclose(by_hand, said, atol=1e-4)
        if kind is PrivateClassifier:
            np.testing.assert_array_equal(model.decision_function(x), said)


def test_a_model_that_is_not_linear_names_its_terms():
    x = rows(20_000)
    model = minidp.fit(x, x[:, 0] > 0, **BOUNDS)
    with pytest.raises(AttributeError, match="model.terms"):
        model.coef_  # noqa: B018
    with pytest.raises(ParameterError, match="one column each"):
        minidp.fit(x, x[:, 0] > 0, **BOUNDS, hidden=4, steps=2).terms()
    assert not hasattr(PrivateClassifier(), "coef_")


def test_a_report_has_pictures_of_the_columns_and_of_the_probabilities(tmp_path):
    rng = np.random.default_rng(1)
    table = {
        "age": rng.uniform(0, 100, 900),
        "since": (np.datetime64("2001-01-01") + rng.integers(0, 7000, 900)).astype(object),
        "job": rng.choice(["clerk", "nurse", None], 900),
    }
    sick = table["age"] > 50
    model = minidp.fit(table, sick, schema=SCHEMA, epsilon=4.0, seed=1, quiet=True)
    assert model.terms()["job"].values.tolist() == ["clerk", "nurse", None]
    assert model.terms()["since"].values[0] == np.datetime64("2000-01-01")
    at = model.report(tmp_path / "report", test=(table, sick))
    for name in ("columns.png", "reliability.png"):
        assert (at / name).read_bytes()[1:4] == b"PNG"
    assert not verify(at).failed


def test_a_reliability_diagram_shows_shares_beside_probabilities(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("minidp.run.plotting.save", lambda figure, path: drawn.append(figure))
    p = np.repeat([[0.75, 0.25], [0.05, 0.95]], 20, axis=0)
    draw_reliability(p, np.repeat([0, 1, 0, 1], [15, 5, 1, 19]), tmp_path / "r.png")
    x, y = drawn[0].axes[0].lines[1].get_data()
    np.testing.assert_allclose(x, [0.25, 0.95])
    np.testing.assert_allclose(y, [0.25, 0.95])


def test_a_folder_has_the_pictures_and_one_that_fails_stops_nothing(tmp_path, monkeypatch, capsys):
    x, public = rows(400), rows(100)
    given = {**BOUNDS, "classes": [0, 1], "steps": 3, "test": (public, public[:, 0] > 0)}
    minidp.fit(x, (x[:, 0] > 0) * 1, folder=tmp_path / "run", **given)
    assert {"columns.png", "reliability.png"} <= {
        each.name for each in (tmp_path / "run").iterdir()
    }
    assert not verify(tmp_path / "run").failed
    monkeypatch.setattr("minidp.fitting.model.draw_terms", lambda *_: 1 / 0)
    given = {**given, "quiet": False}
    assert minidp.fit(x, (x[:, 0] > 0) * 1, folder=tmp_path / "other", **given).epsilon.upper <= 4
    assert "pictures of the model could not be drawn (division by zero)" in capsys.readouterr().err


def test_a_point_of_the_reliability_picture_has_ten_rows(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(terms.plotting, "save", lambda figure, path: drawn.append(figure))
    p = np.repeat([0.95, 0.25], [9, 12])
    draw_reliability(np.stack([1 - p, p], axis=1), np.ones(21, int), tmp_path / "r.png")
    ((axis,),) = (figure.axes for figure in drawn)
    assert [text.get_text() for text in axis.texts] == ["12"]
