"""The audit of a run's files: a real run passes, and every kind of tampering is named."""
import json
import shutil

import mnist_pca
import mnist_variants
import pytest

from minidp.privacy import Gaussian, Ledger, PoissonSampled
from tools import audit_privacy


FLAGS = ("--smoke", "--dataset", "strokes", "--quiet", "--hidden", "10", "--pca-dim", "8", "--device", "cpu")


def train(out, *flags):
    """The folder of a small run on the offline digits."""
    assert mnist_pca.main([*FLAGS, "--out", str(out), *flags]) == 0
    return out


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def begun_again(tmp_path_factory):
    """A run that lost its checkpoint after 20 lots, and was cut off once more after DP-PCA was charged."""
    out = train(tmp_path_factory.mktemp("again") / "run")
    for name in ("checkpoint.npz", "result.json"):
        (out / name).unlink()

    def cut_off(job, *_):
        job.charge_setup()
        job.folder.unlock()  # as the end of the process would
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mnist_pca, "make_projection", cut_off)
        with pytest.raises(SystemExit):
            mnist_pca.main([*FLAGS, "--out", str(out), "--resume"])
    return train(out, "--resume")


@pytest.fixture
def run(finished, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(finished, tmp_path / "run")


def edit(run, name, change):
    data = json.loads((run / name).read_text())
    change(data)
    (run / name).write_text(json.dumps(data))


def mismatches(run, capsys):
    assert audit_privacy.main([str(run)]) == 1
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]


def test_a_right_run_passes_on_one_page(finished, tmp_path, capsys):
    assert audit_privacy.main([str(finished), "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert "0 mismatches" in out and "loss_distribution" in out and "ledger_2016" in out
    page = (tmp_path / "page.html").read_text()
    assert "Is the sampler used the one accounted for?" in page and "<script" not in page


def test_noise_that_follows_a_schedule_is_rebuilt_from_it(tmp_path, capsys):
    run = tmp_path / "run"
    assert mnist_variants.main([*FLAGS, "--noise-multiplier", "6", "--final-noise-multiplier", "3", "--stages", "2",
                                "--stage-lots", "3", "--out", str(run)]) == 0
    assert audit_privacy.main([str(run)]) == 0
    assert "a schedule, stated as one" in capsys.readouterr().out
    edit(run, "result.json", lambda r: r["settings"]["clip_groups"][0]["noise_multiplier"].update(length=4))
    assert any("Is every release in the ledger" in line for line in mismatches(run, capsys))
    edit(run, "result.json", lambda r: r["settings"]["clip_groups"][0]["noise_multiplier"].update(first=5.0, length=3))
    assert any("Is the noise multiplier the one asked for" in line for line in mismatches(run, capsys))


def test_lots_lost_early_in_a_schedule_may_leave_fewer_of_its_end(tmp_path):
    run = tmp_path / "run"
    assert mnist_variants.main([*FLAGS, "--noise-multiplier", "6", "--final-noise-multiplier", "3", "--stages", "2",
                                "--stage-lots", "9", "--out", str(run)]) == 0
    result, config, metrics, statement, ledger = audit_privacy.read(run)
    (pca, _), (first, early), (second, late) = ledger.items()

    def verdict(again, fewer):
        changed = Ledger(ledger.relation)
        for event, count in ((pca, 1), (first, early + again), (second, late - fewer)):
            changed.append(event, count)
        asked = audit_privacy.findings({**result, "steps": result["steps"] - 5}, config, metrics, statement, changed)
        return next(finding.passed for finding in asked if "every release" in finding.question)

    assert verdict(again=5, fewer=5)
    assert not verdict(again=5, fewer=6) and not verdict(again=4, fewer=5)


def test_a_ledger_with_fewer_steps_is_noticed(run, capsys):
    ledger = Ledger.load(run / "ledger.json")
    less = Ledger(ledger.relation)
    for event, count in ledger.items():
        less.append(event, count - 1 if isinstance(event, PoissonSampled) else count)
    less.save(run / "ledger.json")
    found = mismatches(run, capsys)
    assert any("Is every release in the ledger" in line for line in found)
    assert any("epsilon by moments" in line for line in found)


def test_a_ledger_that_is_edited_together_with_the_result_is_noticed(run, capsys):
    quieter = Ledger.load(run / "ledger.json")
    quieter._entries = [(PoissonSampled(e.sampling_probability, Gaussian(40.0)) if isinstance(e, PoissonSampled) else e, *n)
                        for e, *n in quieter._entries]
    quieter.save(run / "ledger.json")
    edit(run, "result.json", lambda result: result.update(ledger_sha256=quieter.sha256()))
    assert any("Is every release in the ledger" in line for line in mismatches(run, capsys))


@pytest.mark.parametrize("change, question", [
    (lambda r: r.update(sampler="ShuffleSampler"), "Is the sampler used the one accounted for?"),
    (lambda r: r.update(steps=r["steps"] + 5), "Did any step run uncharged?"),
    (lambda r: r["settings"]["clip_groups"][0].update(noise_std_on_sum=8.0), "Is the noise of dense1 sigma C"),
    (lambda r: r["settings"].update(sampling_probability=0.01), "Is q the expected lot over"),
    (lambda r: r["settings"].update(expected_lot_size=120), "and the lot the one asked for?"),
    (lambda r: r["settings"].update(pca_noise_multiplier=None), "Is every release in the ledger"),
    (lambda r: r["epsilon"]["moments"].update(upper=0.5), "Does epsilon by moments come out again?"),
    (lambda r: r.update(delta=1e-3), "Is delta the one asked for"),
    (lambda r: r["config"].update(clip_norm=3.0), "and the configuration the recorded one?"),
    (lambda r: r.update(dataset="mnist"), "and the configuration the recorded one?"),
    (lambda r: r.update(steps_charged=19), "Does the result count every charge?"),
    (lambda r: r.update(setup_charged=2), "Does the result count every charge?"),
    (lambda r: r.update(test_accuracy=0.99), "Is the test accuracy the last one measured?"),
    (lambda r: r["epsilon_without_amplification"].update(upper=0.5), "Does epsilon without amplification come out again?"),
    (lambda r: r.update(reproducible=True), "Is the run called reproducible exactly if it has a seed?"),
    (lambda r: r.update(target_epsilon=0.1), "Was the target kept?"),
])
def test_a_result_that_says_something_else_is_noticed(run, change, question, capsys):
    edit(run, "result.json", change)
    assert any(question in line for line in mismatches(run, capsys))


def test_a_configuration_with_another_sampler_is_noticed(run, capsys):
    edit(run, "config.json", lambda config: config.update(sampler="shuffle"))
    assert any("Is the sampler used the one accounted for?" in line for line in mismatches(run, capsys))


def test_a_target_that_was_not_kept_is_noticed(run, capsys):
    edit(run, "config.json", lambda config: config.update(target_epsilon=0.1))
    assert any("Was the target kept?" in line for line in mismatches(run, capsys))


@pytest.mark.parametrize("named, passes", [("strokes", True), ("mnist", False)])
def test_a_data_set_left_to_the_run_is_the_one_it_names(run, named, passes, capsys):
    edit(run, "result.json", lambda result: result["config"].update(dataset="auto"))
    edit(run, "config.json", lambda config: config.update(dataset=named))
    assert audit_privacy.main([str(run)]) == (0 if passes else 1)
    verdict = "ok  " if passes else "FAIL"
    assert f"{verdict} Is delta the one asked for, and the configuration the recorded one?" in capsys.readouterr().out


def test_charges_of_attempts_that_were_cut_off_pass_and_are_named(begun_again, capsys):
    assert audit_privacy.main([str(begun_again)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "Is every release" in line)
    assert "43 events" in line and "2 x Gaussian(noise_multiplier=7.0), 20 x PoissonSampled(" in line


@pytest.mark.parametrize("event, change", [(Gaussian(7.0), -3), (Gaussian(8.0), 1)])
def test_more_charges_hide_neither_a_missing_one_nor_one_of_another_kind(begun_again, tmp_path, event, change, capsys):
    run = shutil.copytree(begun_again, tmp_path / "run")
    ledger = Ledger.load(run / "ledger.json")
    changed = Ledger(ledger.relation)
    for known, count in ledger.items():
        changed.append(known, count if change > 0 or known != event else 0)
    changed.append(event, max(change, 0))
    changed.save(run / "ledger.json")
    assert any("Is every release in the ledger" in line for line in mismatches(run, capsys))


def test_what_earlier_attempts_released_is_told_apart(begun_again):
    result = json.loads((begun_again / "result.json").read_text())
    assert (result["setup_charged"], result["earlier_lots_charged"], result["steps_charged"]) == (3, 20, 20)
    statement = (begun_again / "privacy.md").read_text()
    assert "charged 3 times" in statement and "20 more lots are charged, of earlier attempts" in statement


def test_a_seeded_run_that_calls_itself_otherwise_is_noticed(tmp_path, capsys):
    run = train(tmp_path / "run", "--seed", "5")
    assert audit_privacy.main([str(run)]) == 0
    edit(run, "result.json", lambda result: result.update(reproducible=False))
    assert any("reproducible" in line for line in mismatches(run, capsys))


def test_the_target_that_held_by_default_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mnist_pca, "SMOKE_EPOCHS", None)  # a smoke run otherwise has a length and no target
    run = train(tmp_path / "run")
    assert json.loads((run / "result.json").read_text())["target_epsilon"] == 2.0
    assert audit_privacy.main([str(run)]) == 0
    assert "ok   Was the target kept? 1.9" in capsys.readouterr().out


def test_a_result_from_before_targets_were_written_is_read(run, capsys):
    assert json.loads((run / "result.json").read_text())["target_epsilon"] is None
    edit(run, "result.json", lambda result: result.pop("target_epsilon"))
    assert audit_privacy.main([str(run)]) == 0
    assert "Was the target kept? none was set" in capsys.readouterr().out


def test_metrics_with_a_smaller_epsilon_are_noticed(run, capsys):
    path = run / "metrics.csv"
    head, *rows = path.read_text().splitlines()
    at = head.split(",").index("epsilon")
    cells = [row.split(",") for row in rows]
    cells[0][at] = "0.01"
    path.write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    assert any("never below what its step had cost" in line for line in mismatches(run, capsys))


@pytest.mark.parametrize("spoil", [lambda run: (run / "result.json").unlink(),
                                   lambda run: (run / "ledger.json").write_text("{"),
                                   lambda run: (run / "result.json").write_text("{}"),
                                   lambda run: (run / "model.npz").unlink()])
def test_a_user_error_is_one_line_and_exit_2(run, spoil, capsys):
    spoil(run)
    with pytest.raises(SystemExit) as raised:
        audit_privacy.main([str(run)])
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize("change", [
    lambda r: r.update(delta="x"),
    lambda r: r.update(epsilon={"gaussian_clt": r["epsilon"]["gaussian_clt"]}),
    lambda r: r.update(epsilon={}),
    lambda r: r["settings"].update(expected_lot_size=0),
    lambda r: r["epsilon"]["moments"].update(upper="x")])
def test_a_damaged_result_is_one_line_and_exit_2(run, change, capsys):
    edit(run, "result.json", change)
    with pytest.raises(SystemExit) as raised:
        audit_privacy.main([str(run)])
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert "not the files of a run of this program" in err and err.count("\n") == 1


@pytest.mark.parametrize("page", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written_is_refused_before_the_work(finished, tmp_path, page, monkeypatch, capsys):
    monkeypatch.setattr(audit_privacy, "report", lambda folder: pytest.fail("the work was begun"))
    with pytest.raises(SystemExit) as raised:
        audit_privacy.main([str(finished), "--html", str(tmp_path / page)])
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: --html {tmp_path / page} cannot be written") and err.count("\n") == 1
