"""`fit` with persons: what it protects, says and refuses, and that nothing else shows a person's
rows.
"""

import json

import numpy as np
import pytest

import minidp
from minidp.errors import CheckpointError, DataError, ParameterError, RowsError, ShapeError
from minidp.privacy import Ledger
from minidp.run.verify import verify

PERSONS, MOST = 90, 3
# the weights, what is measured on them, times, and keyed hashes of the data
CHANGING = {"test_accuracy", "seconds_total", "seconds_per_step"}


def problem(seed=3):
    """x (N, 4), labels, and whose row each is, in mixed order."""
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.repeat(np.arange(PERSONS), rng.integers(1, 6, PERSONS)))
    y = rng.integers(0, 2, len(person))
    return rng.normal(size=(len(person), 4)) + 2 * np.eye(2, 4)[y], y, person


def fitted(x, y, person, **named):
    named = {"epsilon": 2.0, "seed": 1, "quiet": True, "steps": 5, "rows_per_person": MOST} | named
    return minidp.fit(x, y, person=person, **named)


def of_seven(change):
    """The problem, where person 7 has replaced rows, more rows, or one row."""
    x, y, person = problem()
    hers = np.flatnonzero(person == 7)
    if change == "replaced":
        x[hers], y[hers] = 1e3, 1 - y[hers]
    elif change == "added":
        x = np.vstack([x, np.full((50, 4), -7.0)])
        y, person = np.append(y, np.ones(50, int)), np.append(person, np.full(50, 7))
    elif change == "removed":
        x, y, person = (np.delete(each, hers[1:], axis=0) for each in (x, y, person))
    return x, y, person


TABLE = {name: {"type": "number", "low": -4, "high": 4} for name in "abcd"}


def shapes_in(folder):
    """{file: shapes of its arrays, or number of its lines}, of files that hold weights or metrics;
    the bytes of the others, but for what names a time or a hash of these.
    """
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".npz":
            with np.load(path) as stored:
                found[path.name] = {name: stored[name].shape for name in stored if name != "meta"}
        elif path.suffix == ".csv":
            found[path.name] = [line.split(",")[0] for line in path.read_text().splitlines()]
        elif path.suffix != ".png" and path.name not in ("result.json", "manifest.json"):
            found[path.name] = len(path.read_bytes()) if path.suffix == ".key" else path.read_text()
    return found


@pytest.mark.parametrize("schema", [None, TABLE])
def test_the_rows_of_a_person_show_in_nothing_but_weights_and_metrics(schema, tmp_path, capsys):
    found = {}
    for change in ("none", "replaced", "added", "removed"):
        x, y, person = of_seven(change)
        test = problem(4)[:2]
        public = {"classes": [0, 1], "dataset_size": PERSONS, "seed": None, "ledger": None}
        public |= {"scale": "private"} if schema is None else {"schema": schema}
        if schema is not None:
            x, person = {**dict(zip("abcd", x.T)), "who": person}, "who"
            test = dict(zip("abcd", test[0].T)), test[1]
        folder = tmp_path / change
        fitted(x, y, person, folder=folder, quiet=False, test=test, **public)
        said = capsys.readouterr()
        lines = [line for line in said.out.splitlines() if not line.startswith("test ")]
        result = json.loads((folder / "result.json").read_text())
        rest = {key: value for key, value in result.items() if key not in CHANGING}
        size = (folder / "model.npz").stat().st_size
        found[change] = lines, said.err, rest, shapes_in(folder), size
    for change in found:
        assert found[change] == found["none"]


def test_ledger_result_statement_and_verify_say_person(tmp_path):
    x, y, person = problem()
    model = fitted(x, y, person, folder=tmp_path / "run", ledger=tmp_path / "all", group_size=2)
    result = model.result
    assert result["unit"] == "person" and result["rows_per_person"] == MOST
    assert result["settings"]["dataset_size"] == PERSONS and model.delta == 1e-3
    assert f"the number of persons, {PERSONS}" in result["disclosed"]
    assert "for each person with all of her rows" in repr(model) and "for 2 persons" in repr(model)
    statement = " ".join((tmp_path / "run" / "privacy.md").read_text().split())
    for words in ("private for one person with all of her rows, added", "2 persons together"):
        assert words in statement
    assert "row by itself" not in statement and str(len(x)) not in statement
    report = verify(tmp_path / "run")
    assert not report.failed and "of persons" in report.findings[2].answer
    assert {purpose for *_, purpose in Ledger.load(tmp_path / "all").entries()} == {
        "person_setup",
        "person_step",
    }
    with pytest.raises(ParameterError, match="no sum; choose another file"):
        minidp.fit(x, y, epsilon=1.0, ledger=tmp_path / "all", quiet=True)
    with pytest.raises(CheckpointError, match="rows_per_person"):
        fitted(x, y, person, folder=tmp_path / "run", rows_per_person=2, group_size=2)


def test_another_person_of_a_row_is_other_data(tmp_path, monkeypatch):
    x, y, person = problem()
    calls = []

    def interrupted(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *given)

    step = minidp.train.Trainer.step
    monkeypatch.setattr("minidp.train.Trainer.step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(x, y, person, folder=tmp_path / "run")
    person[0] = (person[0] + 1) % PERSONS
    with pytest.raises(DataError, match="other examples"):
        fitted(x, y, person, folder=tmp_path / "run")


def test_a_person_with_many_rows_counts_as_the_mean_of_a_few():
    x, y, person = problem()
    hers = np.flatnonzero(person == 7)[:1]
    rows = np.concatenate([np.delete(np.arange(len(x)), np.flatnonzero(person == 7)), hers])
    few = np.append(rows, np.repeat(hers, 4))
    many = np.append(rows, np.repeat(hers, 9_999))
    one, other = (
        fitted(x[each], y[each], person[each], rows_per_person=5).predict_proba(x)
        for each in (few, many)
    )
    assert (one == other).all()


@pytest.mark.parametrize("scale", ["unit-norm", "private"])
def test_the_order_of_different_persons_rows_does_not_matter(scale):
    x, y, person = problem()
    order = np.argsort(-person, kind="stable")
    one, other = (
        fitted(x[each], y[each], person[each], scale=scale).predict_proba(x)
        for each in (order, np.arange(len(x)))
    )
    assert (one == other).all()


def test_a_row_that_is_not_finite_takes_its_person_out():
    """As if she were a person of weight zero."""
    x, y, person = problem()
    weight = np.ones(PERSONS)
    weight[np.searchsorted(np.unique(person), 7)] = 0.0
    hers = np.flatnonzero(person == 7)[-1:]
    named = {"scale": "none", "check": False, "rows_per_person": 9, "network": None}
    without = fitted(x, y, person, example_weight=weight, **named).predict_proba(x)
    x = x.copy()
    x[hers] = np.nan
    left_out = fitted(x, y, person, **named).predict_proba(problem()[0])
    assert (without == left_out).all()


@pytest.mark.parametrize(
    "error, words, given",
    [
        (RowsError, "rows have no person", {"person": np.full(20, np.nan), "check": False}),
        (ShapeError, "same number", {"example_weight": np.ones(20)}),
        (ParameterError, "at most the 5 persons", {"lot_size": 6}),
        (ParameterError, "the name of a column", {"person": "who"}),
    ],
)
def test_what_does_not_fit_is_refused_before_any_charge(error, words, given, tmp_path):
    x, y = np.ones((20, 2)), np.arange(20) % 2
    given = {"person": np.arange(20) % 5, "ledger": tmp_path / "all"} | given
    with pytest.raises(error, match=words):
        fitted(x, y, **given)
    assert not (tmp_path / "all").exists()


def test_a_command_names_the_column(tmp_path, monkeypatch):
    from minidp.__main__ import main

    monkeypatch.chdir(tmp_path)
    x, y, person = problem()
    lines = [f"{a},p{who},{b},{c},{d},{label}" for (a, b, c, d), who, label in zip(x, person, y)]
    (tmp_path / "t.csv").write_text("\n".join(["a,who,b,c,d,label", *lines]))
    command = "train t.csv --label label --target-epsilon 2 --steps 5 --seed 1 --out mine --quiet"
    command += " --scale unit-norm"
    main([*command.split(), "--person", "who", "--rows-per-person", str(MOST)])
    result = json.loads((tmp_path / "mine" / "result.json").read_text())
    assert result["unit"] == "person" and result["settings"]["dataset_size"] == PERSONS
    model = minidp.load_model(tmp_path / "mine" / "model.npz")
    names = np.char.add("p", person.astype(str))
    assert (model.predict_proba(x) == fitted(x, y, names).predict_proba(x)).all()
