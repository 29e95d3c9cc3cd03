#!/usr/bin/env python3
"""Search for an experiment's settings, on data that stand in for its own.

    python experiments/settings.py mnist_best --json FILE           # ten minutes of one core
    python experiments/settings.py mnist_learned --json FILE        # half an hour
    python experiments/settings.py cifar_best --public-data DIR --json FILE
    python experiments/settings.py cifar_transfer --public-data DIR --pretrained FILE --json FILE

The data of the experiment itself are not opened; `features/stand_ins.py` says which data stand in
for them. One entry of the settings at a time is replaced by its alternatives, and stays replaced if
that gains enough. Then travel, clip norm and the average's decay are compared at every budget on
several sets of data, and the least mean regret wins. Accuracies are smoothed over their grid, so
that the middle of a plateau wins. The pre-trained file is EVEN/pretrained.npz after

    python experiments/cifar_transfer.py pretrain --public-data DIR --even --out EVEN
           --network deep --epochs 8 --batch-size 64 --learning-rate 0.03 --dropout 0.3
"""

import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path

import common

common.start(__name__)

from common.config import command_of, main_of, option

import numpy as np
from scipy.ndimage import uniform_filter

from features import stand_ins
from features.side_by_side import descend
from minidp.backend import Backend
from minidp.errors import ParameterError
from minidp.util.atomic import atomic_write

DELTA, SEED = 1e-5, 1
TRAVELS = 2.0 ** np.arange(5)
CLIPS = 0.0015 * 3.0 ** np.arange(5)
DECAYS = 0.9, 0.95, 0.98
RULE = {"steps": 300, "sigma": 3.0, "share": 0.03}  # to begin with
CHOSEN = "travel", "clip", "decay"  # at last; the other entries are the form's
SMOKE = {"steps": 5, "cosines": 16}


@dataclass(frozen=True)
class Config:
    """The flags."""

    json: str | None = option(
        None, "file to write: every setting tried, its accuracies, the choice"
    )
    public_data: str | None = option(
        None, "cifar_*: folder of the public set's train.bin and test.bin"
    )
    pretrained: str | None = option(None, "cifar_transfer: file that `pretrain --even` wrote")
    smoke: bool = option(False, "test on small sets with few steps, in seconds")

    def __post_init__(self):
        if self.json and not os.access(Path(self.json).parent, os.W_OK):
            raise ParameterError(
                f"--json {self.json}: expected a file in a folder that is there and writable"
            )


@dataclass(frozen=True)
class Problem:
    """A search: the data, and the settings to try on them.

    stand_in       class of features/stand_ins.py
    first          entries to begin with: the form's, and the rule's where RULE has others
    alternatives   {names: values} to try in their place; for several names, tuples of values
    sets, budgets  that each alternative is tried on and at
    near           travels and clip norms that it is tried with
    gain           in accuracy that an alternative needs
    last, wide     ((set, epsilons), ...), travels and clip norms that are compared at last
    """

    stand_in: type
    first: dict
    alternatives: dict
    sets: tuple
    budgets: tuple
    last: tuple
    near: tuple = (TRAVELS[1:4], CLIPS[1:4])
    wide: tuple = (TRAVELS, CLIPS)
    gain: float = 0.002


PROBLEMS = {
    "mnist_best": Problem(
        stand_ins.Digits,
        {"side": 24, "groups": 27, "width": 1.0, "cosines": 1024},
        {
            "width": (0.5, 0.71, 1.41),
            "groups": (1, 81),
            "side": (28,),
            "steps": (100,),
            "sigma": (2.0,),
            "share": (0.01, 0.1),
        },
        sets=((6000, 5000, 1.1),),
        budgets=(2.0, 8.0),
        last=(
            ((60_000, 10_000, 1.1), (0.5, 1.0, 2.0, 2.93, 8.0)),
            ((6000, 5000, 1.0), (2.0, 8.0)),
            ((6000, 5000, 1.5), (2.0, 8.0)),
        ),
    ),
    "mnist_learned": Problem(
        stand_ins.BroadDigits,
        {"inside": 0.7, "beside": 0.4, "prior": 1.0, "cosines": 1024, "networks": 2},
        {
            "networks": (1, 4),
            "inside": (0.0, 0.35, 1.4),
            "beside": (0.2, 0.7, 1.0),
            "prior": (0.0, 0.5, 2.0),
        },
        sets=((20_000, 10_000, 1.1), (20_000, 10_000, 1.5)),
        budgets=(0.15, 1.5, 8.0),
        last=(
            ((20_000, 10_000, 1.1), (0.03, 0.15, 1.5, 8.0)),
            ((20_000, 10_000, 1.5), (0.03, 0.15, 1.5, 8.0)),
            ((60_000, 10_000, 1.1), (0.05, 0.5, 2.93)),
        ),
        near=(TRAVELS[1:4], CLIPS[:1]),
        wide=(TRAVELS[1:4], CLIPS[:1]),
        gain=0.001,
    ),
    "cifar_best": Problem(
        stand_ins.Colours,
        {
            "opponent": False,
            "mirrored": False,
            "groups": 27,
            "floor": 1e-5,
            "width": 0.2,
            "cosines": 512,
            "parts": 2,
            "steps": 100,
        },
        {
            "opponent": (True,),
            "mirrored": (True,),
            "floor width": ((1e-5, 0.14), (1e-3, 0.2), (1e-3, 0.14), (1e-3, 0.1), (1e-2, 0.14)),
            "parts cosines": ((1, 2048), (4, 256), (2, 1024)),
            "groups": (81,),
            "steps": (300,),
        },
        sets=((0, 10, 20_000, 5000),),
        budgets=(2.0, 8.0),
        last=(
            ((0, 10, 50_000, 5000), (0.5, 1.0, 2.0, 4.0)),
            ((0, 2, 10_000, 1000), (2.0, 8.0)),
        ),
        wide=(TRAVELS / 2, 9 * CLIPS),
    ),
    "cifar_transfer": Problem(
        stand_ins.Pretrained,
        {"taps": 4, "steps": 100},
        {"taps": (3, 2, 1), "steps": (300,), "share": (0.01, 0.1)},
        sets=((0, 10, 12_500, 5000),),
        budgets=(8.0,),
        last=(
            ((0, 10, 50_000, 5000), (2.0, 4.0, 8.0)),
            # to 5,000 images the noise is what it is to 50,000 at about epsilon 2
            ((0, 1, 5000, 500), (30.0,)),
            ((1, 2, 5000, 500), (30.0,)),
            ((2, 3, 5000, 500), (30.0,)),
        ),
        near=(TRAVELS[:3], 3 * CLIPS[1:2]),
        wide=(TRAVELS / 2, 3 * CLIPS[:4]),
    ),
}


def smoothed(accuracies):
    """Each accuracy's mean with its neighbours in travel and clip norm."""
    return uniform_filter(np.asarray(accuracies, float), (1, 3, 3), mode="nearest")


def rules(tried, travels, clips):
    """The mean regret over the problems of every decay, travel and clip norm, best first."""
    tables = np.array([smoothed(one["accuracies"]) for one in tried])
    regrets = tables.max(axis=(1, 2, 3), keepdims=True) - tables
    found = []
    for decay, travel, clip in np.ndindex(regrets.shape[1:]):
        regret = regrets[:, decay, travel, clip]
        found.append(
            {
                "travel": float(travels[travel]),
                "clip": float(f"{clips[clip]:.3g}"),
                "decay": DECAYS[decay],
                "regret": float(regret.mean()),
                "worst": float(regret.max()),
            }
        )
    return sorted(found, key=itemgetter("regret"))


def improved(problem, few, score):
    """The problem's first setting, with every alternative in its place that gains enough."""
    best = RULE | problem.first
    top = score(best)
    for names, values in problem.alternatives.items():
        changed = [
            best | dict(zip(names.split(), value if " " in names else (value,)))
            for value in values[:few]
        ]
        scores = [score(setting) for setting in changed]
        if max(scores) > top + problem.gain:
            top = max(scores)
            best = changed[scores.index(top)]
    return best


def _about(name, args, stand_in):
    """How the search was made."""
    return {
        "command": command_of(f"settings.py {name}", args, ("public_data", "pretrained")),
        "machine": f"{platform.machine()}, CPU",
        "cpu_seconds": round(time.process_time()),
        "dataset": stand_in.name,
        "seed": SEED,
        "delta": DELTA,
        **stand_in.about,
        "accuracies by decay, travel and clip": DECAYS,
    }


def search(name, args):
    """Try everything, print it, write the JSON; returns the choice."""
    problem, started, tried = PROBLEMS[name], time.time(), []
    stand_in = problem.stand_in(args)
    load = lru_cache(2)(stand_in.load)
    few = 1 if args.smoke else None

    @lru_cache(1)
    def features(where, form):
        form = dict(form)
        x, y, tested, wanted = load(*where)

        def rows(images):
            parts = stand_in.features(images, Backend.numpy(), form)
            # as features are kept
            return np.concatenate([part.astype("f2") for part in parts])

        return rows(x), y, rows(tested), wanted, stand_in.first(form)

    def best_of(where, epsilon, setting, travels, clips):
        """The best smoothed accuracy over travels and clip norms."""
        if args.smoke:
            where = stand_in.tiny
            setting = setting | {name: SMOKE[name] for name in SMOKE if name in setting}
        form = tuple((name, value) for name, value in setting.items() if name not in RULE)
        data = features(where, form)
        accuracies, sigma = descend(*data, epsilon, DELTA, setting, travels, clips, DECAYS, SEED)
        about = dict(zip(stand_in.told_apart, where), epsilon=epsilon, **setting)
        tried.append(
            {
                **about,
                "travels": travels.tolist(),
                "clips": clips.tolist(),
                "noise_multiplier": sigma,
                "accuracies": np.round(accuracies, 4).tolist(),
            }
        )
        best = smoothed(accuracies).max()
        print(f"{time.time() - started:5.0f} s  {about}: {best:.4f}", file=sys.stderr, flush=True)
        return best

    def score(setting):
        return np.mean(
            [
                best_of(where, epsilon, setting, *problem.near)
                for where in problem.sets[:few]
                for epsilon in problem.budgets[:few]
            ]
        )

    best = improved(problem, few, score)
    among = len(tried)
    for where, epsilons in problem.last[:few]:
        for epsilon in epsilons[:few]:
            best_of(where, epsilon, best, *problem.wide)
    table = rules(tried[among:], *problem.wide)
    rule = {name: best[name] for name in RULE} | {name: table[0][name] for name in CHOSEN}
    choice = {"form": {name: best[name] for name in best if name not in RULE}, "rule": rule}
    print(json.dumps(choice))
    found = {"rules": table[:20], "choice": choice, "tried": tried}
    if args.json:
        with atomic_write(args.json) as out:
            json.dump(_about(name, args, stand_in) | found, out)
    return choice


def command(name, args):
    """Search the settings of an experiment; returns the exit status."""
    search(name, args)
    return 0


main = main_of(
    "settings.py", __doc__, {name: (Config, partial(command, name)) for name in PROBLEMS}
)

if __name__ == "__main__":
    sys.exit(main())
