"""verify: a run's files agree with its ledger, and no single edit of the ledger goes unseen."""
import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minidp.__main__ import main
from minidp.errors import DataError
from minidp.privacy import Gaussian, JointGaussian, Ledger, PoissonSampled
from minidp.privacy.catalogue import all_bounds
from minidp.privacy.verify import _printed, differences

NAMES = ("moments", "renyi", "gaussian_clt", "basic")


def write_run(folder, names=NAMES):
    ledger = Ledger()
    ledger.append(Gaussian(7.0))
    ledger.append(PoissonSampled(0.01, JointGaussian((4.0, 3.0))), 500)
    ledger.save(folder / "ledger.json")
    found = {name: {**bound.to_json(), "kind": kind}
             for name, (bound, kind, _) in all_bounds(ledger, names, delta=1e-5).items()}
    result = {"epsilon": found, "delta": 1e-5, "relation": "add_remove", "ledger_sha256": ledger.sha256()}
    (folder / "result.json").write_text(json.dumps(result))
    rows = [f"| {name} | " + " | ".join(_printed(found[name][side]) for side in ("lower", "estimate", "upper")) + " | |"
            for name in names]
    (folder / "privacy.md").write_text("\n".join([*rows, f"Ledger SHA-256 {ledger.sha256()}"]))
    return ledger


def edits(value, path=()):
    """Every way to change one field: (path, new value)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from edits(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from edits(inner, (*path, i))
    elif isinstance(value, str):
        yield path, value + "x"
        yield path, "replace_one" if value == "add_remove" else "Laplace"
    elif value is None:
        yield path, 0.5
    else:
        yield path, value + 1
        yield path, value * 2
        yield path, 0


def changed(data, path, value):
    data = copy.deepcopy(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


def test_a_run_as_written_agrees(tmp_path, capsys):
    write_run(tmp_path)
    assert differences(tmp_path) == []
    assert main(["verify", str(tmp_path)]) == 0
    assert "not somebody who edits all three" in capsys.readouterr().out


def test_every_single_field_edit_of_the_ledger_is_caught(tmp_path):
    data = write_run(tmp_path).to_json()
    found = list(edits(data))
    assert len(found) > 20
    for path, value in found:
        (tmp_path / "ledger.json").write_text(json.dumps(changed(data, path, value)))
        assert differences(tmp_path), (path, value)


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_numbers_in_a_field_are_caught(tmp_path, data):
    ledger = write_run(tmp_path).to_json()
    numbers = [path for path, _ in edits(ledger) if isinstance(path[-1], (str, int))]
    path = data.draw(st.sampled_from(numbers))
    value = data.draw(st.one_of(st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=3)))
    after = changed(ledger, path, value)
    place = ledger
    for key in path:
        place = place[key]
    if type(value) in (int, float) and value == place:
        return
    (tmp_path / "ledger.json").write_text(json.dumps(after))
    assert differences(tmp_path)


def test_edits_of_the_result_and_the_statement_are_caught(tmp_path):
    write_run(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    for path, value in list(edits(result["epsilon"], ("epsilon",))):
        if path[-1] in ("lower", "estimate", "upper"):
            (tmp_path / "result.json").write_text(json.dumps(changed(result, path, value)))
            assert differences(tmp_path), path
    for path, value in [(("delta",), 1e-6), (("delta",), 2.0), (("delta",), None), (("relation",), "zero_out"),
                        (("ledger_sha256",), "0" * 64), (("epsilon",), {}), (("epsilon",), {"magic": {}})]:
        (tmp_path / "result.json").write_text(json.dumps(changed(result, path, value)))
        assert differences(tmp_path), path
    (tmp_path / "result.json").write_text(json.dumps(result))
    statement = (tmp_path / "privacy.md").read_text()
    for old in ("| moments", _printed(result["epsilon"]["renyi"]["upper"]), result["ledger_sha256"]):
        (tmp_path / "privacy.md").write_text(statement.replace(old, "| 0.001"))
        assert differences(tmp_path), old


def test_exit_status_and_sentences(tmp_path, capsys):
    write_run(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    result["epsilon"]["moments"]["upper"] *= 0.99
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert main(["verify", str(tmp_path), "--json"]) == 1
    assert "moments upper is" in json.loads(capsys.readouterr().out)["differences"][0]


@pytest.mark.parametrize("name", ["ledger.json", "privacy.md"])
def test_missing_files_are_named(tmp_path, name):
    write_run(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=name):
        differences(tmp_path)


def test_an_unfinished_run_is_told_what_it_has_spent(tmp_path, capsys):
    ledger = write_run(tmp_path)
    (tmp_path / "result.json").unlink()
    assert "gives no delta" in differences(tmp_path)[0]
    (tmp_path / "config.json").write_text('{"delta": 1e-5}')
    assert main(["verify", str(tmp_path)]) == 1
    bound, *_ = all_bounds(ledger, ["moments"], delta=1e-5)["moments"]
    said = capsys.readouterr().out
    assert f"epsilon {_printed(bound.upper)} by moments" in said and "not finished" in said and "1e-05" in said


def test_a_folder_that_is_no_run_is_told_so(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "nowhere"):
        assert main(["verify", str(path)]) == 2
        assert "ledger.json: no such file" in capsys.readouterr().err


def test_damaged_files_are_named(tmp_path):
    write_run(tmp_path)
    (tmp_path / "result.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="result.json"):
        differences(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(DataError, match="result.json"):
        differences(tmp_path)
