"""The audit of a run's files: a real run passes, and every kind of tampering is named."""
import json
import shutil

import mnist_pca
import mnist_variants
import pytest

from minidp.privacy import Gaussian, Ledger, PoissonSampled
from tools import audit_privacy


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a small run on the offline digits."""
    out = tmp_path_factory.mktemp("run") / "run"
    assert mnist_pca.main(["--smoke", "--dataset", "strokes", "--quiet", "--hidden", "10", "--pca-dim", "8",
                           "--device", "cpu", "--out", str(out)]) == 0
    return out


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
    assert mnist_variants.main(["--smoke", "--dataset", "strokes", "--quiet", "--hidden", "10", "--pca-dim", "8",
                                "--device", "cpu", "--noise-multiplier", "6", "--final-noise-multiplier", "3",
                                "--stages", "2", "--stage-lots", "3", "--out", str(run)]) == 0
    assert audit_privacy.main([str(run)]) == 0
    assert "a schedule, stated as one" in capsys.readouterr().out
    edit(run, "result.json", lambda r: r["settings"]["clip_groups"][0]["noise_multiplier"].update(length=4))
    assert any("Is every release in the ledger" in line for line in mismatches(run, capsys))
    edit(run, "result.json", lambda r: r["settings"]["clip_groups"][0]["noise_multiplier"].update(first=5.0, length=3))
    assert any("Is the noise multiplier the one asked for" in line for line in mismatches(run, capsys))


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
    quieter._entries = [(PoissonSampled(e.sampling_probability, Gaussian(40.0)) if isinstance(e, PoissonSampled) else e, n)
                        for e, n in quieter._entries]
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
                                   lambda run: (run / "result.json").write_text("{}")])
def test_a_user_error_is_one_line_and_exit_2(run, spoil, capsys):
    spoil(run)
    with pytest.raises(SystemExit) as raised:
        audit_privacy.main([str(run)])
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
