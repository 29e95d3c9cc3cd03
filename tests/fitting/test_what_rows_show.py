"""What the rows of one unit hold shows in weights and in metrics of private rows, and nowhere
else.
"""

import json

import numpy as np
import pytest

import minidp
from minidp.fitting.rows import FACTS
from minidp.run.verify import verify
from tests.support.fitting import fitted

UNITS = 90
# measured on the weights, or times
CHANGING = {"test_accuracy", "test", "seconds_total", "seconds_per_step", "statement_sha256"}
NUMBER = {"type": "number", "low": -4, "high": 4}
SCHEMA = {"a": NUMBER, "b": NUMBER, "job": {"type": "category", "values": ["clerk", "nurse"]}}


def rows_of(change, by_person, seed=3):
    """x (N, 3), labels, and whose row each is, where unit 7 has replaced, more or fewer rows."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, UNITS) if by_person else 1
    unit = rng.permutation(np.repeat(np.arange(UNITS), counts))
    y = rng.integers(0, 2, len(unit))
    x = rng.normal(size=(len(unit), 3)) + 2 * np.eye(2, 3)[y]
    mine = np.flatnonzero(unit == 7)
    if change == "replaced":
        x[mine], y[mine] = 1e9, 1 - y[mine]
    elif change == "added":
        more = 50 if by_person else 1
        x = np.vstack([x, np.full((more, 3), -7.0)])
        y, unit = np.append(y, np.ones(more, int)), np.append(unit, np.full(more, 7))
    elif change == "removed":
        x, y, unit = (np.delete(each, mine[by_person:], axis=0) for each in (x, y, unit))
    return x, y, unit


def as_table(x):
    job = np.array(["spy", "clerk", "nurse"], object)[np.digitize(x[:, 2], [-4, 0])]
    return {"a": x[:, 0], "b": x[:, 1], "job": job}


def shown(folder):
    """{file: shapes of its arrays and its size, or the first cells of its lines}, of files that
    hold weights or metrics; the text of the others, but for what names a time or a hash of these.
    """
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".npz":
            with np.load(path) as stored:
                found[path.name] = {name: stored[name].shape for name in stored if name != "meta"}
            if path.name == "model.npz":
                found["size"] = path.stat().st_size
        elif path.suffix == ".csv":
            found[path.name] = [line.split(",")[0] for line in path.read_text().splitlines()]
        elif path.suffix == ".key":
            found[path.name] = path.stat().st_size
        elif path.suffix != ".png" and path.name not in ("result.json", "manifest.json"):
            found[path.name] = path.read_text()
    result = json.loads((folder / "result.json").read_text())
    return {**found, "result": {key: result[key] for key in result.keys() - CHANGING}}


@pytest.mark.parametrize(
    "how",
    [{"scale": "private"}, {"bounds": (-4, 4)}, {"scale": "none"}, {}, {"schema": SCHEMA}],
    ids=str,
)
@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
def test_what_a_unit_holds_shows_in_weights_and_metrics_alone(by_person, how, capsys):
    found, (x_test, y_test, _) = {}, rows_of("none", False, seed=4)
    for change in ("none", "replaced", "added", "removed"):
        x, y, unit = rows_of(change, by_person)
        test, named = x_test, {"rows_per_person": 3, "person": unit} if by_person else {}
        if "schema" in how:
            x, test = as_table(x), as_table(x_test)
        if "schema" in how and by_person:
            x, named["person"] = {**x, "who": unit}, "who"
        named |= {"classes": [0, 1], "dataset_size": UNITS, "test": (test, y_test), **how}
        model = fitted(x, y, seed=None, quiet=False, steps=2, **named)
        assert not verify(model.folder).failed
        said = capsys.readouterr()
        lines = [line for line in said.out.splitlines() if not line.startswith("test ")]
        told = [line for line in said.err.splitlines() if "for the owner of the data" not in line]
        found[change] = lines, told, shown(model.folder)
    for change in found:
        assert found[change] == found["none"]


def test_the_statement_names_all_that_a_schema_has_from_the_rows(tmp_path):
    """Every key of a column that was read from the data, compared with the files."""
    rng = np.random.default_rng(0)
    table = {
        "amount": rng.integers(0, 9, 300).astype(str),
        "flag": rng.choice(["true", "false"], 300),
        "city": rng.choice(["Bern", "Rome"], 300),
        "y": rng.choice(["a", "b"], 300),
    }
    table["amount"][:20] = "refused"
    data = {"from": "data"}
    schema = {
        "amount": data | {"type": "number", "low": 0, "high": 9, "gaps": ["refused"]},
        "flag": data | {"type": "number", "low": 0, "high": 1},
        "city": data | {"type": "category", "values": ["Bern", "Rome"]},
        "y": data | {"type": "category", "values": ["a", "b"], "role": "label"},
    }
    folder = tmp_path / "run"
    minidp.fit(table, epsilon=1.0, steps=2, schema=schema, folder=folder, quiet=True)
    result = json.loads((folder / "result.json").read_text())
    (line,) = (each for each in result["disclosed"] if each.startswith("as the schema has them"))
    assert line in (folder / "privacy.md").read_text()
    stored = json.loads((folder / "config.json").read_text())["schema"]
    for name, entry in stored.items():
        assert name in line
        for key in entry.keys() - {"from"}:
            assert any(key in keys and words in line for words, keys in FACTS.items()), key
