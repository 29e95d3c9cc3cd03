"""verify: a right run passes, no single edit of its files goes unseen, and every kind of tampering
is named.
"""

import json
import random
import shutil

import pytest

from minidp.__main__ import main
from minidp.errors import DataError
from minidp.privacy import Ledger, MomentsAccountant
from minidp.run import RunFolder
from minidp.run.folder import FILES
from minidp.run.verify import verify
from minidp.util.text import upper_text
from tests.support.running import FLAGS, train
from tests.support.sealed import edit, failed

SEALED = [*FILES, "manifest.json"]
DAMAGES = 40  # of each file


def test_a_right_run_passes_on_one_page(finished, tmp_path, capsys):
    assert main(["verify", str(finished), "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    for text in ("5 questions, 0 mismatches", "loss_distribution", "ledger_2016"):
        assert text in out
    assert "FAIL" not in out
    page = (tmp_path / "page.html").read_text()
    assert "Does the ledger charge all that the run released?" in page and "<script" not in page
    assert main(["verify", str(finished), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == []


def test_a_lot_size_that_was_left_to_a_rule_is_none_that_was_asked_for(tmp_path):
    train(tmp_path / "run", flags={**FLAGS, "lot_size": None})
    assert not failed(tmp_path / "run")


def test_every_single_edit_of_any_file_is_noticed(run):
    """A byte changed, taken out or put in, or the end cut off, anywhere in any file, the manifest
    too.
    """
    chance = random.Random(1)
    for number in range(80):
        path = run / SEALED[number % len(SEALED)]
        before = path.read_bytes()
        at, byte = chance.randrange(len(before)), bytes([chance.randrange(256)])
        put_in = chance.choice([byte, b"", byte + before[at : at + 1], before[at + 1 : at + 2]])
        after = before[:at] + put_in + before[at + 1 :]
        after = before[:at] if chance.random() < 0.1 else after
        if after != before:
            path.write_bytes(after)
            try:
                assert verify(run).failed, (path.name, at)
            except DataError:  # one line, and exit status 2
                pass
            path.write_bytes(before)
    assert not failed(run)


@pytest.mark.parametrize("name", [*SEALED, "folder.key"])
def test_a_file_that_is_gone_is_noticed(run, name, capsys):
    (run / name).unlink()
    assert main(["verify", str(run)]) in (1, 2)
    said = capsys.readouterr()
    assert name in said.out + said.err
    assert "Error" not in said.out + said.err and "Errno" not in said.out + said.err


def test_a_seeded_run_says_so(tmp_path, capsys):
    train(tmp_path / "run", 5)
    assert main(["verify", str(tmp_path / "run")]) == 0
    assert "must not be released" in capsys.readouterr().out
    statement = (tmp_path / "run" / "privacy.md").read_text()
    assert "Not for release: any file of a seeded run." in statement


def test_a_result_of_another_format_is_one_line(run):
    edit(run, "result.json", {"statement_format": 8})
    with pytest.raises(DataError, match="has format 8, and .* the version that wrote it"):
        verify(run)


def test_a_sampler_that_is_none_of_the_librarys_is_one_line(run):
    edit(run, "result.json", {"settings sampler": "MySampler"})
    with pytest.raises(DataError, match="expected a sampler of PoissonSampler, .*'MySampler'"):
        verify(run)


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


def write(name, content):
    """A spoiler that writes a file and seals the folder again."""

    def spoil(run):
        (run / name).write_bytes(content)
        RunFolder(run).seal(True)

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: (run / "ledger.json").unlink(),
        lambda run: shutil.rmtree(run),
        lambda run: edit(run, "result.json", {"delta": 10**400}),
        lambda run: edit(run, "result.json", {"settings expected_lot_size": 0}),
        lambda run: edit(run, "result.json", {"epsilon moments upper": "x"}),
        write("result.json", b"[" * 100_000),
        write("metrics.csv", bytes(200_000)),
        write("model.npz", b"no model"),
    ],
)
def test_what_is_no_run_is_one_line_and_exit_2(run, spoil, capsys):
    spoil(run)
    assert main(["verify", str(run)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1 and len(said.err) < 600
    assert said.out == ""


@pytest.mark.parametrize("page", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written_is_refused_before_the_work(finished, tmp_path, page, capsys):
    assert main(["verify", str(finished), "--html", str(tmp_path / page)]) == 2
    said = capsys.readouterr()
    assert "cannot be written" in said.err and said.err.count("\n") == 1 and said.out == ""


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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SEALED, "folder.key"])
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


def test_a_missing_library_is_not_blamed_on_the_files(finished, monkeypatch):
    def missing(*args, **named):
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr("minidp.run.verify.all_bounds", missing)
    with pytest.raises(ModuleNotFoundError):
        verify(finished)
