"""Editing the files of a finished run, as somebody would who knows the program."""

import json

from minidp.run import RunFolder
from minidp.run.verify import verify
from tests.support.running import LOT

FLAGS = {
    "sampler": "poisson",
    "lot_size": LOT,
    "noise_multiplier": 4.0,
    "delta": 1e-5,
    "seed": None,
    "target_epsilon": None,
    "dataset": "arrays",
    "clip_norm": 1.0,
}


def edit(run, name, change):
    """Edit a JSON file and seal the folder again."""
    data = json.loads((run / name).read_text())
    change(data)
    (run / name).write_text(json.dumps(data, indent=2) + "\n")
    RunFolder(run).seal(private=True)


def failed(run):
    return [finding.question for finding in verify(run).failed]
