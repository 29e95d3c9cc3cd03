"""`fit` on tables: what rows may change, what no row may change, and what is not private."""

import math

import numpy as np
import pytest

import minidp

SCHEMA = {
    "age": {"type": "number", "low": 0, "high": 100},
    "job": {"type": "category", "values": ["clerk", "nurse"]},
    "since": {"type": "date", "low": "2000-01-01", "high": "2020-12-31"},
    "id": {"type": "ignore"},
    "sick": {"type": "category", "values": ["no", "yes"], "role": "label"},
}
N = 400


def table(rows=N):
    rng = np.random.default_rng(5)
    age = rng.uniform(0, 100, rows)
    return {
        "age": age.tolist(),
        "job": np.array(["clerk", "nurse", "cook"], object)[rng.integers(0, 3, rows)].tolist(),
        "since": ["2010-01-01"] * rows,
        "id": list(range(rows)),
        "sick": np.where(age > 50, "yes", "no").astype(object).tolist(),
    }


def fitted(found, folder=None, **named):
    named = {"epsilon": 2.0, "delta": 1e-4, "seed": 1, "quiet": True, "dataset_size": N} | named
    return minidp.fit(found, None, schema=SCHEMA, folder=folder, **named)


def test_a_model_says_which_table_it_takes_and_a_file_of_it_does_the_same(tmp_path):
    found = table()
    model = fitted(found, epsilon=8.0)
    assert model.score(found, found["sick"]) > 0.8
    model.save(tmp_path / "model.npz")
    loaded = minidp.load_model(tmp_path / "model.npz")
    rows = {"since": [None], "job": ["astronaut"], "more": [1], "age": ["99"]}
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist() == ["yes"]
    with pytest.raises(minidp.errors.ParameterError, match="lacks the columns age"):
        loaded.predict({"Age": [1], "job": ["clerk"], "since": [""]})


def test_a_label_of_numbers_has_the_schemas_bounds_and_a_test_set_is_encoded():
    found = table()
    schema = SCHEMA | {"age": SCHEMA["age"] | {"role": "label"}, "sick": {"type": "ignore"}}
    public = {name: cells[::-1] for name, cells in table().items()}
    named = {"schema": schema, "test": (public, None), "epsilon": 2.0, "steps": 3}
    model = minidp.fit(found, None, quiet=True, **named)
    low, high = model.target_bounds
    assert 0 <= low < high <= 100 and model.result["test_r2"] is not None


def test_without_privacy_the_same_code_learns_at_least_as_much_and_says_what_it_is():
    found = table()
    model = fitted(found, epsilon=math.inf)
    assert model.epsilon.upper == math.inf and model.score(found, found["sick"]) > 0.9
    assert repr(model).startswith("not private")
    assert "**This model is not private" in model.statement
    (group,) = model.result["settings"]["clip_groups"]
    assert (group["noise_multiplier"], group["clip_norm"]) == (0, "inf")
    eight, twenty = (fitted(found, epsilon=each, scale="auto") for each in (8.0, 20.0))
    assert model.result["steps"] == eight.result["steps"]
    rates = [each.result["settings"]["learning_rate"] for each in (eight, twenty)]
    assert rates[0] < rates[1]  # the rule sees every finite epsilon as it is


def test_a_frame_of_booleans_and_numbers_is_trained_on_and_predicted_with_private_scaling():
    pandas = pytest.importorskip("pandas")
    found = table()
    frame = pandas.DataFrame({"age": found["age"], "nurse": np.array(found["job"]) == "nurse"})
    model = minidp.fit(frame, found["sick"], epsilon=4.0, quiet=True, seed=1)
    assert model.result["choices"]["scale"] == "private"
    assert model.score(frame, found["sick"]) > 0.8


def test_too_few_rows_for_a_look_are_divided_by_their_length_and_said_to_be_few(rng, capsys):
    x = rng.normal(size=(60, 20))
    model = minidp.fit(x, x[:, 0] > 0, epsilon=1.0, steps=2, seed=1)
    assert model.result["choices"]["scale"] == "unit-norm"
    assert "only their direction counts" in " ".join(repr(model).split())
    said = capsys.readouterr().err
    assert "NOTICE: 60 rows are few for 21 weights of each of 2 outputs" in said
    minidp.fit(rng.normal(size=(2000, 20)), np.arange(2000) % 2, epsilon=1.0, steps=2)
    assert "rows are few" not in capsys.readouterr().err


@pytest.mark.parametrize("classes", [True, False])
def test_an_array_and_a_frame_of_the_same_numbers_give_the_same_model(classes):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    x = np.stack([rng.uniform(18, 90, 4000), rng.uniform(0, 1e5, 4000)], axis=1)
    y = 0.5 * x[:, 0] + 0.0003 * x[:, 1] + rng.normal(size=4000)
    given = {"epsilon": 1.0, "seed": 1, "quiet": True}
    y, given = (y > 40, given) if classes else (y, given | {"target_bounds": (0, 80)})
    models = [minidp.fit(each, y, **given) for each in (x, pandas.DataFrame(x, columns=["a", "b"]))]
    assert (
        models[0].predict(x) == models[1].predict(pandas.DataFrame(x, columns=["a", "b"]))
    ).all()
    assert models[0].score(x, y) > 0.95


def test_a_resumed_fit_looks_once_and_gives_the_same_model(rng, tmp_path, monkeypatch):
    x = rng.normal(size=(2000, 4))
    given = {"epsilon": 2.0, "delta": 1e-5, "seed": 1, "quiet": True, "steps": 20}
    whole = minidp.fit(x, x[:, 0] > 0, **given)

    def interrupted(self, *lot, step=minidp.train.Trainer.step):
        step(self, *lot)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("minidp.train.Trainer.step", interrupted)
        minidp.fit(x, x[:, 0] > 0, **given, folder=tmp_path / "run")
    monkeypatch.setattr("minidp.fitting.column_look.raw_counts", None)  # the look is not made again
    again = minidp.fit(x, x[:, 0] > 0, **given, folder=tmp_path / "run")
    assert again.record.choices["scale"] == "private"
    assert (again.predict_proba(x) == whole.predict_proba(x)).all()


@pytest.mark.parametrize("scale, offset", [(1e9, 0), (1e15, 0), (1, 1e6), (1e6, 1.7e9)])
def test_large_numbers_and_offsets_cost_a_frame_nothing(rng, scale, offset):
    pandas = pytest.importorskip("pandas")
    a = rng.normal(size=3000)
    frame = pandas.DataFrame({"a": a * scale + offset})
    model = minidp.fit(frame, a > 0, epsilon=1.0, seed=1, quiet=True)
    assert model.score(frame, a > 0) > 0.95
