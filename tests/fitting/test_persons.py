"""`fit` with persons: what it protects and says."""

import json

import numpy as np
import pytest

import minidp
from minidp.errors import CheckpointError, DataError, ParameterError
from minidp.privacy import Ledger
from minidp.run.verify import verify

PERSONS, MOST = 90, 3


def problem(seed=3):
    """x (N, 4), labels, and whose row each is, in mixed order."""
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.repeat(np.arange(PERSONS), rng.integers(1, 6, PERSONS)))
    y = rng.integers(0, 2, len(person))
    return rng.normal(size=(len(person), 4)) + 2 * np.eye(2, 4)[y], y, person


def fitted(x, y, person, **named):
    named = {"epsilon": 2.0, "seed": 1, "quiet": True, "steps": 5, "rows_per_person": MOST} | named
    return minidp.fit(x, y, person=person, **named)


def test_a_person_on_both_sides_is_refused_and_notices_are_never_quiet(capsys):
    x, y, person = problem()
    table = {"patient": person.astype(str), **{f"c{n}": x[:, n] for n in range(4)}}
    named = {"quiet": True, "steps": 2, "epsilon": 2.0, "seed": 1}
    test = {**table, "patient": person + 0.0}, y
    with pytest.raises(
        ParameterError, match=f"{PERSONS} of its {PERSONS} persons are also trained"
    ):
        minidp.fit(table, y, person="patient", rows_per_person=MOST, test=test, **named)
    for write in ("{}.0", "00{}", " {} "):  # other ways to write the same numbers
        other = {**table, "patient": np.array([write.format(name) for name in person])}
        with pytest.raises(ParameterError, match="persons are also trained"):
            minidp.fit(table, y, person="patient", rows_per_person=MOST, test=(other, y), **named)
    minidp.fit({**table, "patient": person}, y, **named)
    assert "NOTICE: the values of column patient repeat" in capsys.readouterr().err


def test_ledger_result_statement_and_verify_say_person(tmp_path):
    x, y, person = problem()
    model = fitted(x, y, person, folder=tmp_path / "run", ledger=tmp_path / "all", group_size=2)
    result = model.result
    assert result["unit"] == "person" and result["rows_per_person"] == MOST
    assert result["settings"]["dataset_size"] == PERSONS and model.delta == 1e-3
    assert f"the number of persons, {PERSONS}" in result["disclosed"]
    assert "for each person with all of their rows" in repr(model) and "for 2 persons" in repr(
        model
    )
    statement = " ".join((tmp_path / "run" / "privacy.md").read_text().split())
    for words in ("private for one person with all of their rows, added", "2 persons together"):
        assert words in statement
    assert "row by itself" not in statement and str(len(x)) not in statement
    report = verify(tmp_path / "run")
    assert not report.failed and "of persons" in report.findings[2].answer
    assert Ledger.load(tmp_path / "all").unit == f"person of up to {MOST} rows" == model.ledger.unit
    with pytest.raises(ParameterError, match="all: expected a ledger of charges for the unit row"):
        minidp.fit(x, y, epsilon=1.0, ledger=tmp_path / "all", quiet=True)
    with pytest.raises(ParameterError, match="for the unit person of up to 2 rows"):
        fitted(x, y, person, ledger=tmp_path / "all", rows_per_person=2)
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


@pytest.mark.parametrize("scale", ["unit-norm", "private"])
def test_the_order_of_different_persons_rows_does_not_matter(scale):
    x, y, person = problem()
    order = np.argsort(-person, kind="stable")
    one, other = (
        fitted(x[each], y[each], person[each], scale=scale).predict_proba(x)
        for each in (order, np.arange(len(x)))
    )
    assert (one == other).all()


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
    same = fitted(x, y, names, scale="unit-norm")
    assert (model.predict_proba(x) == same.predict_proba(x)).all()
