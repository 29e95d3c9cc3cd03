"""verify: a right run passes, no single edit of its files goes unseen, and every kind of tampering
is named.
"""

import json
import random

import pytest

from minidp.__main__ import main
from minidp.privacy import Ledger, MomentsAccountant, PaperStrongComposition
from minidp.run import RunFolder
from minidp.run.folder import FILES
from minidp.run.verify import verify
from minidp.util.text import upper_text
from tests.support.running import train
from tests.support.sealed import edit, failed, noticed

SEALED = [*FILES, "manifest.json"]


def test_a_right_run_passes_on_one_page(finished, tmp_path, capsys):
    assert main(["verify", str(finished), "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    for text in ("5 questions, 0 mismatches", "epsilon by moments, rdp, pld, gdp", "ledger_2016"):
        assert text in out
    assert "FAIL" not in out
    page = (tmp_path / "page.html").read_text()
    assert "Does the ledger charge all that the run released?" in page and "<script" not in page
    assert main(["verify", str(finished), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == []


@pytest.mark.usefixtures("answered_once")
def test_every_single_edit_of_any_file_is_noticed(run):
    """A byte changed, taken out or put in, or the end cut off, anywhere in any file, the manifest
    too. Where the folder is sealed again there is an answer all the same.
    """
    chance = random.Random(1)
    sealed = (run / "manifest.json").read_bytes()
    for number in range(80):
        path = run / SEALED[number % len(SEALED)]
        before = path.read_bytes()
        at, byte = chance.randrange(len(before)), bytes([chance.randrange(256)])
        put_in = chance.choice([byte, b"", byte + before[at : at + 1], before[at + 1 : at + 2]])
        after = before[:at] + put_in + before[at + 1 :]
        after = before[:at] if chance.random() < 0.1 else after
        if after != before:
            path.write_bytes(after)
            assert noticed(run), (path.name, at)
            RunFolder(run).seal(private=True)
            noticed(run)
            path.write_bytes(before)
            (run / "manifest.json").write_bytes(sealed)
    assert not failed(run)


@pytest.mark.parametrize("name", [*SEALED, "folder.key"])
def test_a_file_that_is_gone_is_noticed(run, name, capsys):
    (run / name).unlink()
    assert main(["verify", str(run)]) in (1, 2)
    said = capsys.readouterr()
    assert name in said.out + said.err
    assert "Error" not in said.out + said.err and "Errno" not in said.out + said.err


def test_files_that_are_not_of_the_run_are_named_and_not_checked(run):
    (run / "columns.png").write_bytes(b"")
    written, *_ = verify(run).findings
    assert written.passed and written.answer.endswith("; not checked: columns.png")


def test_a_seeded_run_says_so(tmp_path, capsys):
    train(tmp_path / "run", 5)
    assert main(["verify", str(tmp_path / "run")]) == 0
    assert "must not be released" in capsys.readouterr().out
    statement = (tmp_path / "run" / "privacy.md").read_text()
    assert "Not for release: any file of a seeded run." in statement


def test_an_unfinished_run_is_told_what_it_has_spent(run, capsys):
    for name in ("result.json", "manifest.json"):
        (run / name).unlink()
    bound = MomentsAccountant().epsilon(Ledger.load(run / "ledger.json"), 1e-5)
    assert main(["verify", str(run)]) == 1
    said = capsys.readouterr().out
    for text in (f"epsilon {upper_text(bound.upper)} by moments", "not finished", "1e-05"):
        assert text in said
    (run / "config.json").unlink()
    assert "gives no delta" in failed(run)


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda run: (run / "ledger.json").unlink(), "holds no ledger.json"),
        (
            lambda run: edit(run, "result.json", {"settings dataset_size": []}),
            "not a run of this program (TypeError",
        ),
        (lambda run: edit(run, "result.json", {"statement_format": 8}), "has format 8, and"),
        (
            lambda run: edit(run, "result.json", {"settings sampler": "MySampler"}),
            "expected a sampler of PoissonSampler, ",
        ),
        (lambda run: (run / "metrics.csv").write_text("step\n"), "no rows"),
    ],
)
def test_what_is_no_run_is_one_line_and_exit_2(run, spoil, words, capsys):
    spoil(run)
    if (run / "ledger.json").exists():
        RunFolder(run).seal(private=True)
    assert main(["verify", str(run)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1 and len(said.err) < 600
    assert said.out == "" and words in said.err


@pytest.mark.parametrize(
    "name, spoil",
    [
        ("metrics.csv", lambda text: text + "1" * 140_000 + "\n"),
        ("result.json", lambda text: text.replace('"basic": {', '"\\ud800": {')),
    ],
)
def test_damage_that_no_terminal_can_show_is_named_all_the_same(run, name, spoil, capsys):
    before = (run / name).read_text()
    (run / name).write_text(spoil(before))
    assert (run / name).read_text() != before
    assert main(["verify", str(run)]) == 1
    out, err = capsys.readouterr()
    assert err == "" and f"{name} was changed" in out
    assert all(line.startswith(("ok  ", "FAIL")) for line in out.splitlines() if "? " in line)


def test_a_missing_library_is_not_blamed_on_the_files(finished, monkeypatch):
    def missing(*args, **named):
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr("minidp.run.verify.all_bounds", missing)
    with pytest.raises(ModuleNotFoundError):
        verify(finished)


def test_an_accountant_that_came_later_is_no_difference_and_is_said(run, monkeypatch):
    """But a row of one that the version had may not be missing."""
    monkeypatch.setattr(PaperStrongComposition, "short", "paper")
    monkeypatch.setattr(PaperStrongComposition, "kind", "approximation")
    monkeypatch.setattr(PaperStrongComposition, "since", "99.0.0")
    report = verify(run)
    assert not report.failed
    assert any("not computed then: paper" in each.answer for each in report.findings)
    monkeypatch.setattr(PaperStrongComposition, "since", "0.1.0")
    assert "paper_strong_composition is None" in failed(run)
