"""verify: files that are edited together, models of other runs, and damage that cannot be read or
shown.
"""

import json
import random
import re
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest

import minidp
from minidp.__main__ import main
from minidp.run import RunFolder, load_arrays
from minidp.run.checkpoint import save_arrays
from minidp.run.folder import FILES
from minidp.run.statement import render
from tests.support.running import FLAGS, train
from tests.support.scripts import ROOT
from tests.support.sealed import edit, failed

DAMAGES = 40  # of each file


def tell(run, change):
    """Edit the result, write the statement that follows from it, and seal the folder again."""
    result = json.loads((run / "result.json").read_text())
    change(result)
    (run / "privacy.md").write_text(render(result))
    digest = sha256((run / "privacy.md").read_bytes()).hexdigest()
    edit(run, "result.json", lambda r: r.update(result, statement_sha256=digest))


def edit_model(run, change):
    arrays, header = load_arrays(run / "model.npz")
    change(header)
    save_arrays(run / "model.npz", arrays, header)
    RunFolder(run).seal(private=True)


@pytest.mark.parametrize(
    "change",
    [
        {"disclosed": []},
        {"public": []},
        {"rows_checked": False},
        {"weighted": True},
        {"notice": "all is well"},
        {"not_private": [], "not_for_release": ["folder.key"]},
        {"group": {"size": 10, "epsilon": 0.01}},
    ],
)
def test_a_result_and_a_statement_that_are_edited_together_are_noticed(run, change):
    tell(run, lambda result: result.update(change))
    assert "Is the model the one of this ledger, result and statement?" in failed(run)
    edit_model(run, lambda header: header["about"].pop("statement_sha256"))
    assert bool({"group", "not_private"} & change.keys()) is bool(failed(run))


def test_figures_of_a_statement_are_compared_whichever_version_wrote_it(run):
    edit(run, "result.json", lambda result: result["versions"].update(minidp="9.9"))
    assert not failed(run)
    before = (run / "privacy.md").read_text()
    statement = re.sub(r"\| [0-9.]+ \| bound \|", "| 0.1000 | bound |", before)
    assert statement.count("0.1000") > 3
    (run / "privacy.md").write_text(statement)
    digest = sha256(statement.encode()).hexdigest()
    edit(run, "result.json", lambda result: result.update(statement_sha256=digest))
    assert "Does the statement follow from the result?" in failed(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(ledger_sha256="0" * 64),
        lambda header: header["about"].update(statement_sha256="0" * 64),
        lambda header: header["about"].update(steps=99),
    ],
)
def test_the_model_of_another_run_is_noticed(run, change):
    edit_model(run, lambda header: None)
    assert not failed(run)
    edit_model(run, change)
    assert failed(run) == ["Is the model the one of this ledger, result and statement?"]


def test_the_facts_of_a_fit_are_those_that_it_began_with(tmp_path):
    run, x = tmp_path / "run", np.random.default_rng(0).standard_normal((200, 3))
    minidp.fit(x, x[:, 0] > 0, epsilon=1, folder=run, quiet=True)
    assert not failed(run)
    for change in ({"weighted": True}, {"check": False}, {"public": "validation"}):
        before = (run / "config.json").read_text()
        edit(run, "config.json", lambda config: config.update(change))
        assert any("Are the run's facts those" in question for question in failed(run)), change
        (run / "config.json").write_text(before)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(group=None),
        lambda r: r["group"].update(size=2),
        lambda r: r["group"].update(epsilon=r["group"]["epsilon"] * 0.999),
    ],
)
def test_epsilon_of_several_examples_is_computed_again(change, tmp_path):
    run = tmp_path / "run"
    train(run, flags={**FLAGS, "group_size": 3}, group_size=3)
    assert not failed(run)
    tell(run, change)
    assert "Does epsilon for several examples together come out again?" in failed(run)


@pytest.mark.parametrize(
    "name, spoil",
    [
        ("metrics.csv", lambda text: text + "1" * 140_000 + "\n"),
        ("result.json", lambda text: text.replace('"basic": {', '"\\ud800": {')),
    ],
)
def test_damage_that_no_terminal_can_show_is_named_all_the_same(run, name, spoil):
    before = (run / name).read_text()
    (run / name).write_text(spoil(before))
    assert (run / name).read_text() != before
    command = [sys.executable, "-m", "minidp", "verify", run]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    told = done.stdout.splitlines()
    assert done.returncode == 1 and done.stderr == "" and f"{name} was changed" in done.stdout
    assert all(line.startswith(("ok  ", "FAIL")) for line in told if "? " in line)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, "manifest.json", "folder.key"])
def test_random_damage_never_gives_a_traceback(run, name, capsys):
    chance, path = random.Random(name), run / name
    whole, sealed = path.read_bytes(), (run / "manifest.json").read_bytes()
    for _ in range(DAMAGES):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            at, length = chance.randrange(len(content) + 1), chance.choice([1, 1, 4, 100])
            some = chance.choice([b"", b"\0", b"9", b'"', b",\n", b"\\ud800", chance.randbytes(1)])
            content[at : at + length] = some * chance.choice([1, length])
        for seal in (False, True):
            path.write_bytes(bytes(content))
            if seal and name in FILES:
                RunFolder(run).seal(private=True)
            assert main(["verify", str(run)]) in (0, 1, 2)
            capsys.readouterr()
            (run / "manifest.json").write_bytes(sealed)
