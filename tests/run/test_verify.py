"""verify: a right run passes, no single edit of its files goes unseen, and every kind of tampering
is named.
"""

import json
import random
import re
import shutil
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest

import minidp
from minidp.__main__ import main
from minidp.errors import DataError
from minidp.mechanism import Stages
from minidp.privacy import Gaussian, Ledger, MomentsAccountant, PoissonSampled
from minidp.run import RunFolder, load_arrays
from minidp.run.checkpoint import save_arrays
from minidp.run.folder import FILES
from minidp.run.statement import render
from minidp.run.verify import verify
from minidp.util.text import upper_text
from tests.support.running import FLAGS, train
from tests.support.scripts import ROOT
from tests.support.sealed import GONE, edit, failed, put, tell

SEALED = [*FILES, "manifest.json"]
DAMAGES = 40  # of each file


def test_a_right_run_passes_on_one_page(finished, tmp_path, capsys):
    assert main(["verify", str(finished), "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    for text in ("5 questions, 0 mismatches", "loss_distribution", "ledger_2016"):
        assert text in out
    assert "FAIL" not in out
    page = (tmp_path / "page.html").read_text()
    assert "Does the ledger cover the plan?" in page and "<script" not in page
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
    for number in range(200):
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


def places(value, at=""):
    """The place of every value in JSON data, and the value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        if isinstance(each, (dict, list)) and each:
            yield from places(each, f"{at}{key} ")
        else:
            yield f"{at}{key}", each


def another(value):
    """Another value of the same type, or of one that it might be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x"


# What nothing else says: notes and versions are text, the rest is of the one process.
UNSEEN = r"commit|command|ranks|seconds_\w+|versions \w+|epsilon \w+ note"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["result.json", "config.json", "ledger.json"])
def test_every_edit_of_a_value_is_noticed_even_when_it_is_sealed_again(run, name):
    before = (run / name).read_text()
    for place, value in places(json.loads(before)):
        data = json.loads(before)
        put(data, place, another(value))
        (run / name).write_text(json.dumps(data, indent=2) + "\n")
        RunFolder(run).seal(private=True)
        try:
            noticed = bool(failed(run))
        except DataError:
            noticed = True
        assert noticed is not bool(re.fullmatch(UNSEEN, place)), place


@pytest.mark.parametrize("name", [*SEALED, "folder.key"])
def test_a_file_that_is_gone_is_noticed(run, name, capsys):
    (run / name).unlink()
    assert main(["verify", str(run)]) in (1, 2)
    said = capsys.readouterr()
    assert name in said.out + said.err


GROUP = "settings clip_groups 0"


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("sampler", "ShuffleSampler", "sampler is stated as 'ShuffleSampler'"),
        ("settings sampler", "ShuffleSampler", "the plan zero_out"),
        ("steps", 15, "15 lots ran, 10 charged"),
        ("steps", 10**38, "0 lots ran, 10 charged"),
        (f"{GROUP} noise_std_on_sum", 8.0, "clip_groups[0].noise_std_on_sum is stated as 8.0"),
        (f"{GROUP} grid", 2.0**-30, "clip_groups[0].grid is stated as"),
        ("settings sampling_probability", 0.01, "settings.sampling_probability is stated"),
        ("settings mean_noise_multiplier", 9.0, "settings.mean_noise_multiplier is stated"),
        ("settings setup 0 noise_multiplier", 9.0, "setup[0].noise_multiplier is stated as 9"),
        ("settings expected_lot_size", 6, "lot_size was to be 12 and is 6"),
        ("settings setup", [], "charged, and not in the plan: Gaussian"),
        ("settings setup 0 event noise_multiplier", 9.0, "not charged: 1 x Gaussian"),
        ("epsilon moments upper", 0.5, "epsilon.moments.upper is stated as 0.5"),
        ("epsilon loss_distribution lower", 0.0, "epsilon.loss_distribution.lower is stated"),
        ("epsilon renyi", GONE, "epsilon.renyi is stated as None"),
        ("delta", 1e-3, "delta is stated as 0.001 and comes out as 1e-05"),
        ("config clip_norm", 3.0, "clip_norm was 1.0 in config.json and is 3.0"),
        ("settings average", 0.0, "settings.average was 0.9 in config.json"),
        ("dataset", "mnist", "dataset was 'arrays'"),
        ("steps_charged", 9, "steps_charged is stated as 9 and comes out as 10"),
        ("setup_charged", 2, "setup_charged is stated as 2"),
        ("test_accuracy", 0.99, "test_accuracy is 0.99, and"),
        ("train_accuracy", None, "train_accuracy is None, and"),
        ("test_r2", 0.99, "test_r2 is 0.99, and None in metrics.csv"),
        ("epsilon_without_amplification upper", 0.5, "epsilon_without_amplification.upper is"),
        ("meaning true_positive_rates 0.1", 0.11, "meaning.true_positive_rates.0.1 is stated"),
        ("meaning mu", 0.1, "meaning.mu is stated as 0.1"),
        ("meaning", None, "meaning is stated as None"),
        ("reproducible", True, "reproducible exactly if it has a seed"),
        ("target_epsilon", 0.1, "target_epsilon is stated as 0.1"),
        ("settings target_epsilon", 0.1, "above the target 0.1"),
        ("stopped", "budget", "stopped is 'budget', after 10 of 10 lots"),
        ("notice", "MNIST", "privacy.md is not what result.json gives"),
        ("device", "gpu", "device was 'cpu' in config.json"),
        ("dataset_sha256", "ab", "dataset_sha256 was None"),
        ("generator", "rand", "generator was 'chacha20'"),
        ("not_private", [], "train_r2 is not named as not private"),
        ("loss_not_private", 1.5, "loss_not_private is not named as not private"),
        ("not_for_release", [], "not_for_release names other files"),
        ("experiment", "another", "model.npz has another experiment"),
        ("group", {"size": 10, "epsilon": 0.01}, "group.epsilon is stated as 0.01"),
        ("arithmetic", "exact", "not charged: 10 x Composed"),
    ],
)
def test_a_result_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, place, value, named
):
    edit(run, "result.json", {place: value})
    assert named in failed(run)


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("sampler", "shuffle", "sampler was to be 'shuffle' and is 'poisson'"),
        ("noise_multiplier", 3.0, "noise_multiplier was to be 3.0 and is 4.0"),
        ("charged", False, "says that nothing was charged"),
        ("settings optimizer", "Adam", "settings.optimizer was 'Adam'"),
        ("target_epsilon", 0.1, "above the target 0.1"),
        ("delta", 1e-3, "delta was to be 0.001 and is 1e-05"),
        ("seed", 3, "seed was 3 in config.json and is None"),
    ],
)
def test_a_configuration_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, place, value, named
):
    edit(run, "config.json", {place: value})
    assert named in failed(run)


@pytest.mark.parametrize(
    "change, named",
    [
        (lambda e, n, p: (e, n - 1 if p == "step" else n, p), "10 lots ran, 9 charged"),
        (lambda e, n, p: (e, n, "step"), "other releases before the first step"),
        (lambda e, n, p: (e, n, "free" if p == "setup" else p), "charges for another purpose"),
        (
            lambda e, n, p: (
                PoissonSampled(e.sampling_probability, Gaussian(40.0)) if p == "step" else e,
                n,
                p,
            ),
            "charged, and not in the plan: PoissonSampled",
        ),
    ],
)
def test_a_ledger_that_is_edited_together_with_its_hashes_is_noticed(run, change, named):
    before = Ledger.load(run / "ledger.json")
    after = Ledger(before.relation, (change(*entry) for entry in before.entries()))
    after.save(run / "ledger.json")
    tell(run, {"ledger_sha256": after.sha256()})
    assert named in failed(run) and "model.npz has another ledger_sha256" in failed(run)


@pytest.mark.parametrize(
    "column, value, named",
    [
        ("epsilon", "0.01", "metrics.csv: epsilon 0.01 at step 5, which cost"),
        ("epsilon", "90", "metrics.csv: epsilon 1.6"),
        ("epoch", "0.5", "metrics.csv: step 5 is not epoch 0.5"),
    ],
)
def test_metrics_that_say_something_else_are_noticed(run, column, value, named):
    head, *rows = (run / "metrics.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    cells[0][head.split(",").index(column)] = value
    (run / "metrics.csv").write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    RunFolder(run).seal(private=True)
    assert named in failed(run)


@pytest.mark.parametrize(
    "change",
    [
        {"disclosed": []},
        {"public": []},
        {"rows_checked": False},
        {"weighted": True},
        {"notice": "all is well"},
        {"not_private": [], "not_for_release": ["folder.key"]},
    ],
)
def test_a_result_and_a_statement_that_are_edited_together_are_noticed(run, change):
    tell(run, change)
    assert "model.npz has another statement_sha256" in failed(run)


def test_figures_of_a_statement_are_compared_whichever_version_wrote_it(run):
    edit(run, "result.json", {"versions minidp": "9.9"})
    assert not failed(run)
    before = (run / "privacy.md").read_text()
    statement = re.sub(r"\| [0-9.]+ \| bound \|", "| 0.1000 | bound |", before)
    assert statement.count("0.1000") > 3
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", {"statement_sha256": sha256(statement.encode()).hexdigest()})
    assert "privacy.md is not what result.json gives" in failed(run)


@pytest.mark.parametrize(
    "place, value",
    [
        ("ledger_sha256", "0" * 64),
        ("about statement_sha256", "0" * 64),
        ("about steps", 99),
    ],
)
def test_the_model_of_another_run_is_noticed(run, place, value):
    arrays, header = load_arrays(run / "model.npz")
    put(header, place, value)
    save_arrays(run / "model.npz", arrays, header)
    RunFolder(run).seal(private=True)
    assert failed(run).endswith(f"model.npz has another {place.split()[-1]}")


def test_a_model_of_an_earlier_version_does_not_name_its_statement(run):
    arrays, header = load_arrays(run / "model.npz")
    put(header, "about statement_sha256", GONE)
    save_arrays(run / "model.npz", arrays, header)
    RunFolder(run).seal(private=True)
    assert not failed(run)


def test_the_facts_of_a_fit_are_those_that_it_began_with(tmp_path):
    run, x = tmp_path / "run", np.random.default_rng(0).standard_normal((200, 3))
    minidp.fit(x, x[:, 0] > 0, epsilon=1, folder=run, quiet=True)
    assert not failed(run)
    for flag, value, name in (
        ("weighted", True, "weighted"),
        ("check", False, "rows_checked"),
        ("public", "validation", "best_of_measured"),
    ):
        before = (run / "config.json").read_text()
        edit(run, "config.json", {flag: value})
        assert f"{name} was {bool(value)} in config.json" in failed(run)
        (run / "config.json").write_text(before)


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("group", None, "group is stated as None"),
        ("group size", 2, "group.size is stated as 2 and comes out as 3"),
        ("group epsilon", 5.0, "group.epsilon is stated as 5.0"),
    ],
)
def test_epsilon_of_several_examples_is_computed_again(place, value, named, tmp_path):
    run = tmp_path / "run"
    train(run, flags={**FLAGS, "group_size": 3}, group_size=3)
    assert not failed(run)
    tell(run, {place: value})
    assert named in failed(run)


def test_noise_that_follows_a_schedule_is_rebuilt_from_it(tmp_path):
    run = tmp_path / "run"
    train(run, sigma=Stages(6.0, 3.0, 2, 3), flags={**FLAGS, "noise_multiplier": 6.0})
    assert not failed(run)
    told = "Stages(first=6.0, last=3.0, stages=2, length=3): follows the step"
    assert told in (run / "privacy.md").read_text()
    edit(run, "result.json", {f"{GROUP} noise_multiplier length": 4})
    assert "not charged" in failed(run)


def test_a_bound_that_another_accountant_gave_is_compared_too(tmp_path):
    run = tmp_path / "run"
    result = train(run, sigma=0.01)
    assert result["epsilon"]["loss_distribution"]["fallback"] == "renyi" and not failed(run)
    edit(run, "result.json", {"epsilon loss_distribution fallback": GONE})
    assert "epsilon.loss_distribution.fallback is stated as None" in failed(run)


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


def test_the_statement_follows_from_the_result_alone(finished):
    result = json.loads((finished / "result.json").read_text())
    assert render(result) == (finished / "privacy.md").read_text()
    bound = result["epsilon"]["moments"]["upper"]
    assert f"| {upper_text(bound)} | bound |" in render(result)
    assert float(upper_text(bound)) >= bound


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
