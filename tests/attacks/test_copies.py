"""Processes that are killed at random while copies are made of their folders: all of them together
release no more than the ledger that they share charges.
"""

import os
import random
import shutil
import subprocess
import sys
import time

import pytest

from minidp.privacy import Ledger
from tests.support.scripts import environment

FIT = """
import os, sys
import numpy as np
import minidp
from minidp.run import Run
from minidp.train import Trainer

folder, ledger, log = sys.argv[1:]
log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def step(self, *given, inner=Trainer.step):
    os.write(log, b"step ")
    inner(self, *given)

def first(self, name, event, what, function, inner=Run.release_first):
    def released():
        os.write(log, b"setup ")
        return function()
    return inner(self, name, event, what, released)

Trainer.step, Run.release_first = step, first
x = np.random.default_rng(0).normal(size=(200, 3))
print("begins", flush=True)
known = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-4, 4), "dataset_size": 200, "quiet": True}
minidp.fit(x, x[:, 0] > 0, steps=60, folder=folder, ledger=ledger, **known)
"""
FOLDERS, ATTEMPTS = 4, 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_copies_and_kills_release_no_more_than_the_shared_ledger_charges(tmp_path, seed):
    chance, names, log = random.Random(seed), ["run"], tmp_path / "log"

    def begin(name):
        words = [tmp_path / name, tmp_path / "shared.json", log]
        process = subprocess.Popen(
            [sys.executable, "-c", FIT, *map(str, words)],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()
        return process

    for _ in range(ATTEMPTS):
        processes = [begin(name) for name in names]
        time.sleep(chance.uniform(0.1, 2))
        origin = chance.choice(names)
        if len(names) < FOLDERS and (tmp_path / origin).is_dir():
            names.append(f"copy{len(names)}")
            try:
                shutil.copytree(tmp_path / origin, tmp_path / names[-1])
            except shutil.Error:  # a file went while it was copied
                shutil.rmtree(tmp_path / names.pop())
        time.sleep(chance.uniform(0, 1))
        for process in processes:
            process.kill()
            process.communicate()
    for name in names:
        process = begin(name)
        process.communicate()
        assert process.returncode == 0
    ledger, released = Ledger.load(tmp_path / "shared.json"), log.read_text().split()
    assert os.listdir(tmp_path / "run").count("result.json") == 1
    assert released.count("setup") <= ledger.count_of("setup")
    assert released.count("step") <= ledger.count_of("step") + ledger.count_of("earlier")
