"""verify: a right run passes, no single edit of its files goes unseen, and every kind of tampering
is named.
"""

import json
import random
import shutil

import pytest

from minidp.__main__ import main
from minidp.errors import DataError
from minidp.mechanism import Stages
from minidp.privacy import Gaussian, Ledger, MomentsAccountant, PoissonSampled
from minidp.run import RunFolder
from minidp.run.folder import FILES
from minidp.run.statement import render
from minidp.run.verify import verify
from minidp.util.text import upper_text
from tests.support.running import train
from tests.support.sealed import edit, failed


def test_a_right_run_passes_on_one_page(finished, tmp_path, capsys):
    assert main(["verify", str(finished), "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert (
        "0 mismatches" in out
        and "loss_distribution" in out
        and "ledger_2016" in out
        and "FAIL" not in out
    )
    page = (tmp_path / "page.html").read_text()
    assert "Is the sampler used the one accounted for?" in page and "<script" not in page
    assert (
        main(["verify", str(finished), "--json"]) == 0
        and json.loads(capsys.readouterr().out)["differences"] == []
    )


def test_a_lot_size_that_was_left_to_a_rule_is_none_that_was_asked_for(run):
    edit(run, "config.json", lambda c: c.update(lot_size=None))
    assert "Are lot and noise the ones asked for?" not in failed(run)


def test_every_single_edit_of_any_file_is_noticed(run):
    """A byte changed, taken out or put in, or the end cut off, anywhere in any file, the manifest
    too.
    """
    chance, names = random.Random(1), [*FILES, "manifest.json"]
    for number in range(200):
        path = run / names[number % len(names)]
        before = path.read_bytes()
        at, byte = chance.randrange(len(before)), bytes([chance.randrange(256)])
        after = (
            before[:at]
            + chance.choice([byte, b"", byte + before[at : at + 1], before[at + 1 : at + 2]])
            + before[at + 1 :]
        )
        after = before[:at] if chance.random() < 0.1 else after
        if after != before:
            path.write_bytes(after)
            try:
                assert verify(run).failed, (path.name, at)
            except DataError:  # one line, and exit status 2
                pass
            path.write_bytes(before)
    assert not failed(run)


@pytest.mark.parametrize("name", [*FILES, "manifest.json", "folder.key"])
def test_a_file_that_is_gone_is_noticed(run, name, capsys):
    (run / name).unlink()
    assert main(["verify", str(run)]) in (1, 2)
    said = capsys.readouterr()
    assert name in said.out + said.err


@pytest.mark.parametrize(
    "change, question",
    [
        (
            lambda r: r.update(sampler="ShuffleSampler"),
            "Is the sampler used the one accounted for?",
        ),
        (lambda r: r.update(steps=r["steps"] + 5), "Did any step run uncharged?"),
        (lambda r: r.update(steps=10**38), "Did any step run uncharged?"),
        (
            lambda r: r["settings"]["clip_groups"][0].update(noise_std_on_sum=8.0),
            "Do q, the groups' noise",
        ),
        (
            lambda r: r["settings"]["clip_groups"][0].update(grid=2.0**-30),
            "Do q, the groups' noise",
        ),
        (lambda r: r["settings"].update(sampling_probability=0.01), "Do q, the groups' noise"),
        (lambda r: r["settings"].update(mean_noise_multiplier=9.0), "Do q, the groups' noise"),
        (
            lambda r: r["settings"]["setup"][0].update(noise_multiplier=9.0),
            "Do q, the groups' noise",
        ),
        (
            lambda r: r["settings"].update(expected_lot_size=6),
            "Are lot and noise the ones asked for?",
        ),
        (lambda r: r["settings"].update(setup=[]), "Is every release in the ledger"),
        (
            lambda r: r["settings"]["setup"][0]["event"].update(noise_multiplier=9.0),
            "Is every release in the ledger",
        ),
        (
            lambda r: r["epsilon"]["moments"].update(upper=0.5),
            "Does epsilon by moments come out again?",
        ),
        (
            lambda r: r["epsilon"]["loss_distribution"].update(lower=0.0),
            "Does epsilon by loss_distribution come out again?",
        ),
        (lambda r: r["epsilon"].pop("renyi"), "Is every accountant's figure there?"),
        (lambda r: r.update(delta=1e-3), "Is delta the one asked for"),
        (lambda r: r["config"].update(clip_norm=3.0), "and the configuration the recorded one?"),
        (lambda r: r["settings"].update(average=0.0), "and the configuration the recorded one?"),
        (lambda r: r.update(dataset="mnist"), "and the configuration the recorded one?"),
        (lambda r: r.update(steps_charged=9), "Does the result count every charge?"),
        (lambda r: r.update(setup_charged=2), "Does the result count every charge?"),
        (lambda r: r.update(test_accuracy=0.99), "Is the test accuracy the last one measured?"),
        (
            lambda r: r.update(train_accuracy=None),
            "Is the training accuracy the last one measured?",
        ),
        (
            lambda r: r["epsilon_without_amplification"].update(upper=0.5),
            "Does epsilon without amplification come out again?",
        ),
        (
            lambda r: r["meaning"]["true_positive_rates"].update({"0.01": 0.011}),
            "Does what epsilon means come out again?",
        ),
        (lambda r: r["meaning"].update(mu=0.1), "Does what epsilon means come out again?"),
        (lambda r: r.update(meaning=None), "Does what epsilon means come out again?"),
        (
            lambda r: r.update(reproducible=True),
            "Is the run called reproducible exactly if it has a seed?",
        ),
        (lambda r: r.update(target_epsilon=0.1), "Was the target kept?"),
        (lambda r: r.update(notice="MNIST"), "Does the statement follow from the result?"),
        (lambda r: r.update(device="gpu"), "Are the run's facts those"),
        (lambda r: r.update(dataset_sha256="ab"), "Are the run's facts those"),
        (lambda r: r.update(not_private=[]), "Is every figure that is not private named"),
        (lambda r: r.update(loss_not_private=1.5), "Is every figure that is not private named"),
        (lambda r: r.update(not_for_release=[]), "Is every figure that is not private named"),
        (lambda r: r.update(test_r2=0.99), "Is the test R2 the last one measured?"),
        (lambda r: r.update(experiment="another"), "Is the model the one of this ledger"),
    ],
)
def test_a_result_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, change, question
):
    edit(run, "result.json", change)
    assert any(question in asked for asked in failed(run))


@pytest.mark.parametrize(
    "change, question",
    [
        (lambda c: c.update(sampler="shuffle"), "Is the sampler used the one accounted for?"),
        (lambda c: c.update(noise_multiplier=3.0), "Are lot and noise the ones asked for?"),
        (lambda c: c.update(charged=False), "and the configuration the recorded one?"),
        (
            lambda c: c["settings"].update(optimizer="Adam"),
            "and the configuration the recorded one?",
        ),
        (lambda c: c.update(target_epsilon=0.1), "Was the target kept?"),
    ],
)
def test_a_configuration_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, change, question
):
    edit(run, "config.json", change)
    assert any(question in asked for asked in failed(run))


@pytest.mark.parametrize(
    "change",
    [
        lambda e, n, p: (e, n - 1 if p == "step" else n, p),
        lambda e, n, p: (e, n, "step"),
        lambda e, n, p: (
            PoissonSampled(e.sampling_probability, Gaussian(40.0)) if p == "step" else e,
            n,
            p,
        ),
    ],
)
def test_a_ledger_that_is_edited_together_with_its_hashes_is_noticed(run, change):
    before = Ledger.load(run / "ledger.json")
    after = Ledger(before.relation, (change(*entry) for entry in before.entries()))
    after.save(run / "ledger.json")
    statement = (run / "privacy.md").read_text().replace(before.sha256(), after.sha256())
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", lambda result: result.update(ledger_sha256=after.sha256()))
    assert {
        "Is every release in the ledger, and nothing else?",
        "Does the result count every charge?",
    } & set(failed(run))


def test_metrics_with_a_smaller_epsilon_are_noticed(run):
    head, *rows = (run / "metrics.csv").read_text().splitlines()
    at, cells = head.split(",").index("epsilon"), [row.split(",") for row in rows]
    cells[0][at] = "0.01"
    (run / "metrics.csv").write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    RunFolder(run).seal(private=True)
    assert failed(run) == [
        "Is epsilon in the metrics never below what its step had cost, and in the end the run's?"
    ]
    cells[0][head.split(",").index("epoch")] = "0.5"
    (run / "metrics.csv").write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    RunFolder(run).seal(private=True)
    assert "Do the metrics follow the steps, up to the last?" in failed(run)


def test_noise_that_follows_a_schedule_is_rebuilt_from_it(tmp_path):
    run = tmp_path / "run"
    train(run, sigma=Stages(6.0, 3.0, 2, 3))
    assert (
        not failed(run)
        and "Stages(first=6.0, last=3.0, stages=2, length=3): follows the step"
        in (run / "privacy.md").read_text()
    )
    edit(
        run,
        "result.json",
        lambda r: r["settings"]["clip_groups"][0]["noise_multiplier"].update(length=4),
    )
    assert any("Is every release in the ledger" in question for question in failed(run))


def test_a_bound_that_another_accountant_gave_is_compared_too(tmp_path):
    run = tmp_path / "run"
    result = train(run, sigma=0.01)
    assert result["epsilon"]["loss_distribution"]["fallback"] == "renyi" and not failed(run)
    edit(run, "result.json", lambda r: r["epsilon"]["loss_distribution"].pop("fallback"))
    assert "Does epsilon by loss_distribution come out again?" in failed(run)


def test_a_seeded_run_says_so(tmp_path, capsys):
    train(tmp_path / "run", 5)
    assert main(["verify", str(tmp_path / "run")]) == 0
    assert "must not be released" in capsys.readouterr().out
    assert (
        "Not for release: any file of a seeded run."
        in (tmp_path / "run" / "privacy.md").read_text()
    )


def test_a_result_of_another_format_is_one_line(run):
    edit(run, "result.json", lambda result: result.update(statement_format=8))
    with pytest.raises(
        DataError,
        match="its result has format 8, and this version reads .* the version that wrote it",
    ):
        verify(run)


def test_the_statement_follows_from_the_result_alone(finished):
    result = json.loads((finished / "result.json").read_text())
    assert render(result) == (finished / "privacy.md").read_text()
    bound = result["epsilon"]["moments"]["upper"]
    assert (
        f"| {upper_text(bound)} | bound |" in render(result) and float(upper_text(bound)) >= bound
    )


def test_an_unfinished_run_is_told_what_it_has_spent(run, capsys):
    for name in ("result.json", "manifest.json"):
        (run / name).unlink()
    bound = MomentsAccountant().epsilon(Ledger.load(run / "ledger.json"), 1e-5)
    assert main(["verify", str(run)]) == 1
    said = capsys.readouterr().out
    assert (
        f"epsilon {upper_text(bound.upper)} by moments" in said
        and "not finished" in said
        and "1e-05" in said
    )
    (run / "config.json").unlink()
    assert "gives no delta" in verify(run).failed[0].answer


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: (run / "ledger.json").unlink(),
        lambda run: shutil.rmtree(run),
        lambda run: edit(run, "result.json", lambda r: r.update(delta=10**400)),
        lambda run: edit(run, "result.json", lambda r: r["settings"].update(expected_lot_size=0)),
        lambda run: edit(run, "result.json", lambda r: r["epsilon"]["moments"].update(upper="x")),
        lambda run: [(run / "result.json").write_text("[" * 100_000), RunFolder(run).seal(True)],
        lambda run: [(run / "metrics.csv").write_bytes(bytes(200_000)), RunFolder(run).seal(True)],
        lambda run: [(run / "model.npz").write_text("no model"), RunFolder(run).seal(True)],
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
