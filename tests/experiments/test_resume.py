"""Kill the main job at any moment: nothing that was charged is lost, and a seeded run ends the same."""
import json
import random
import subprocess
import time

import numpy as np
import pytest

from minidp.privacy import Ledger, MomentsAccountant
from tests.support.scripts import command, environment

FLAGS = ("mnist_pca.py", "--smoke", "--quiet", "--dataset", "strokes", "--hidden", 50, "--no-train-metrics")


def kill_and_resume(run_script, tmp_path, flags, kills, on_kill=lambda: None):
    """Run with `kills` SIGKILLs at random moments after start-up, then to the end."""
    chance, done = random.Random(7), 0
    while done < kills:
        resume = ("--resume",) if (tmp_path / "out" / "config.json").exists() else ()
        process = subprocess.Popen(command(*flags, "--out", "out", *resume), cwd=tmp_path, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (tmp_path / "out" / "ledger.json").exists() and process.poll() is None:
            time.sleep(0.01)
        try:
            assert process.wait(timeout=chance.uniform(0, 2.5)) == 0
            return done
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        done += 1
        on_kill()
    run_script(*flags, "--out", "out", "--resume", check=0)
    return done


@pytest.mark.parametrize("kills, steps", [(4, 3000), pytest.param(50, 16_000, marks=pytest.mark.slow)])
def test_a_killed_seeded_run_ends_bit_for_bit_like_one_that_was_not(kills, steps, run_script, tmp_path):
    flags = (*FLAGS, "--seed", 5, "--steps", steps, "--average", 0.99)
    run_script(*flags, "--out", "whole", check=0)
    assert kill_and_resume(run_script, tmp_path, flags, kills) > kills / 2
    for name in ("model.npz", "ledger.json", "metrics.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


def test_a_killed_run_without_a_seed_keeps_its_charges_and_runs_fewer_lots(run_script, tmp_path):
    flags = (*FLAGS, "--steps", 3000)
    counts = []
    kill_and_resume(run_script, tmp_path, flags, 4, lambda: counts.append(
        sum(n for _, n in Ledger.load(tmp_path / "out" / "ledger.json").items())))
    assert counts == sorted(counts)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    ledger = Ledger.load(tmp_path / "out" / "ledger.json")
    lots = sum(n for event, n in ledger.items() if type(event).__name__ == "PoissonSampled")
    assert lots == 3000 and result["steps"] <= lots
    assert result["epsilon"]["moments"]["upper"] == MomentsAccountant().epsilon(ledger, 1e-5).upper
    with np.load(tmp_path / "out" / "checkpoint.npz") as file:
        assert "streams" not in json.loads(str(file["header"]))
