"""Kill the main job at any moment: nothing that was charged is lost, and a seeded run ends the
same.
"""

import random
import subprocess
import time

import pytest

from tests.support.scripts import command, environment

FLAGS = (
    "mnist_pca.py --smoke --quiet --dataset strokes --hidden 50 --no-train-metrics --seed 5 "
    "--average 0.99"
)


@pytest.mark.parametrize(
    "kills, steps", [(2, 3000), pytest.param(50, 16_000, marks=pytest.mark.slow)]
)
def test_a_seeded_run_killed_at_random_moments_ends_bit_for_bit_like_one_that_was_not(
    kills, steps, run_script, tmp_path
):
    flags, chance, done, out = f"{FLAGS} --steps {steps}", random.Random(7), 0, tmp_path / "out"
    run_script(f"{flags} --out whole", check=0)
    while done < kills:
        resume = "--resume" if (out / "config.json").exists() else ""
        process = subprocess.Popen(
            command(f"{flags} --out out {resume}"),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not (out / "ledger.json").exists() and process.poll() is None:
            time.sleep(0.01)
        try:
            assert process.wait(timeout=chance.uniform(0, 2.5)) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        done += 1
    else:
        run_script(f"{flags} --out out --resume", check=0)
    assert done >= kills / 2
    for name in ("model.npz", "ledger.json", "metrics.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (out / name).read_bytes(), name
