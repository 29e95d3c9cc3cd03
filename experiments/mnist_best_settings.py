#!/usr/bin/env python3
"""Which settings mnist_best.py should take: tried on drawn digits only, no image of MNIST is
opened.

    python experiments/mnist_best_settings.py --json experiments/results/mnist_best_settings.json     # 7 minutes of one core

The digits stray from their skeletons as far as makes nearest neighbours err as often as they are
known to on MNIST. Form and rule change in one entry at a time on a small set, and an entry stays
changed if that gains GAIN; the number of features is compared at full size, then travel, clip norm
and how it follows mu at every budget. Accuracies are smoothed over their grid, so that the middle
of a plateau wins.
"""

import json
import math
import os
import platform
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

from common.config import command_of, option, parse
from common.linear import MOMENTUM, NORM, settings
from mnist_best import FORM, RULE, cosines, normalised
import numpy as np
from scipy.ndimage import map_coordinates, uniform_filter
from scipy.special import softmax

from minidp.backend import Backend
from minidp.cli import user_errors
from minidp.data import load_strokes
from minidp.defaults import mu_of
from minidp.errors import ParameterError
from minidp.files import atomic_write
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, mean_sanitizer, noisy_mean
from minidp.streams import Streams

STRAYS, NEIGHBOURS = (
    (1.0, 1.1, 1.2, 1.3, 1.5),
    0.0309,
)  # the error on MNIST: K. Wilder, in LeCun's table of results
DELTA, EPSILONS, SEED, GAIN = 1e-5, (0.5, 1.0, 2.0, 2.93, 8.0), 1, 0.002
TRAVELS, CLIPS, DECAYS = (
    2.0 ** np.arange(5),
    0.0015 * 3.0 ** np.arange(5),
    (0.9, 0.95, 0.98),
)  # tried at every setting
POWERS, FEWER = (0.0, 0.5, 1.0), slice(1, 4)  # of travels and clip norms, where one entry changes
FIRST = {
    "side": 24,
    "groups": 27,
    "width": 1.0,
    "cosines": 1024,
    "steps": 300,
    "sigma": 3.0,
    "share": 0.03,
}
ALONE = {
    "width": (0.5, 0.71, 1.41, None),
    "groups": (1, 81),
    "side": (28,),
    "steps": (100,),
    "sigma": (2.0,),
    "share": (0.01, 0.1),
}
LARGE = {
    "cosines": (2048,),
    "width": (None,),
}  # how many features pay depends on the number of images: the best at full size


def digits(size, tested, stray):
    """Images and labels to train and to test on."""
    drawn = load_strokes((size, tested), progress=False, stray=stray)
    return drawn.x_train, drawn.y_train, drawn.x_test, drawn.y_test


def neighbours_error(stray, size, tested):
    """Error of the nearest neighbour in Euclidean distance."""
    x, y, other, wanted = digits(size, tested, stray)
    x, other = (each.reshape(len(each), -1).astype("f4") for each in (x, other))
    squares = (x**2).sum(1) / 2
    nearest = [
        (part @ x.T - squares).argmax(1) for part in np.array_split(other, -(-tested // 250))
    ]
    return float((y[np.concatenate(nearest)] != wanted).mean())


@lru_cache(1)
def coefficients(problem, side, groups):
    """What cosines are taken of, and labels: x (N, D), y (N,), the same to test on."""
    x, y, tested, wanted = digits(*problem)
    take = lambda images: np.concatenate(
        [*normalised(images, Backend.numpy(), {"side": side, "groups": groups})]
    )
    return take(x), y, take(tested), wanted


@lru_cache(1)
def features(problem, side, groups, width, number):
    """The same in features, with float16's precision, as mnist_best.py keeps them."""
    x, y, tested, wanted = coefficients(problem, side, groups)
    one = cosines(x.shape[1], {"width": width, "cosines": number})
    take = lambda rows: np.concatenate(
        [one(part).astype("f2") for part in np.array_split(rows, -(-len(rows) // 1000))]
    )
    return take(x), y, take(tested), wanted


def descend(data, setting, epsilon, travels=TRAVELS, clips=CLIPS):
    """Accuracies (DECAYS, travels, clips) on the same lots and noise, and the noise multiplier;
    data as `features` gives it.
    """
    x, y, tested, wanted = data
    size, steps, rng = len(x), setting["steps"], np.random.default_rng(SEED)
    grid = [
        settings(epsilon, DELTA, size, setting | {"travel": travel, "clip": clip, "power": 0.0})
        for travel in travels
        for clip in clips
    ]
    sanitizer, expected = (
        mean_sanitizer(grid[0]["mean_noise_multiplier"], NORM),
        grid[0]["lot_size"],
    )
    plan = Plan(
        PoissonSampler(expected / size),
        Sanitizer(flat_group([("w", "W")], 1.0, 1.0)),
        steps,
        expected,
    )
    plan = plan.calibrated("loss_distribution", epsilon, DELTA, [sanitizer.event(plan.relation)])
    sigma = plan.sanitizer.groups[0].noise_multiplier
    mean = noisy_mean(x, sanitizer, size, Streams(SEED).noise("mean")).astype("f4")
    x, tested = (
        np.pad(each - mean, ((0, 0), (0, 1)), constant_values=1) for each in (x, tested)
    )  # ones for the biases
    bounds, rates = (
        np.array([one[name] for one in grid], "f4")[:, None]
        for name in ("clip_norm", "learning_rate")
    )
    w = np.zeros((x.shape[1], len(grid), int(y.max()) + 1), "f4")
    v, averages, lengths = (
        np.zeros_like(w),
        [np.zeros_like(w) for _ in DECAYS],
        np.linalg.norm(x, axis=1),
    )
    for step in range(steps):
        lot = np.flatnonzero(rng.random(size) < expected / size)
        rows = x[lot]
        z = softmax((rows @ w.reshape(len(w), -1)).reshape(len(lot), *w.shape[1:]), axis=2)
        z[np.arange(len(lot)), :, y[lot]] -= 1
        z *= (
            bounds
            / np.maximum(np.linalg.norm(z, axis=2) * lengths[lot, None], bounds[:, 0])[:, :, None]
        )
        noise = rng.standard_normal((len(w), 1, w.shape[2]), "f4") * (np.float32(sigma) * bounds)
        v = np.float32(MOMENTUM) * v + (
            (rows.T @ z.reshape(len(lot), w[0].size)).reshape(w.shape) + noise
        ) / np.float32(expected)
        w -= rates * v
        for decay, average in zip(DECAYS, averages):
            average += np.float32(1 - min(decay, step / (step + 9))) * (w - average)
    found = [
        (
            (tested @ each.reshape(len(w), -1)).reshape(len(tested), *w.shape[1:]).argmax(2)
            == wanted[:, None]
        ).mean(0)
        for each in averages
    ]
    return np.reshape(found, (len(DECAYS), len(travels), len(clips))), sigma


def smoothed(accuracies):
    """Each accuracy's mean with its neighbours in travel and clip norm."""
    return uniform_filter(np.asarray(accuracies, float), (1, 3, 3), mode="nearest")


def rules(tried, travels=TRAVELS, clips=CLIPS):
    """The mean regret over the problems of every decay, travel and law of the clip norm, best
    first.
    """
    tables = [smoothed(each["accuracies"]) for each in tried]
    mus = np.array([mu_of(each["epsilon"], DELTA) for each in tried])
    found = []
    for power, clip in product(POWERS, clips[0] * 3.0 ** np.arange(-2, 7, 0.5)):
        at = np.log(clip * mus**power / clips[0]) / math.log(3)
        if at.min() < 0 or at.max() > len(clips) - 1:
            continue
        for (i, decay), (j, travel) in product(
            enumerate(DECAYS), enumerate(np.asarray(travels).tolist())
        ):
            regret = [
                t.max() - map_coordinates(t[i, j], [[a]], order=1)[0] for t, a in zip(tables, at)
            ]
            found.append(
                {
                    "travel": travel,
                    "clip": float(f"{clip:.3g}"),
                    "power": power,
                    "decay": decay,
                    "regret": float(np.mean(regret)),
                    "worst": float(np.max(regret)),
                }
            )
    return sorted(found, key=lambda each: each["regret"])


def form_and_rule(form, rule):
    """A function from all entries to {"form": those of `form`, "rule": those of `rule`}."""
    return lambda named: {
        "form": {name: named[name] for name in form},
        "rule": {name: named[name] for name in rule},
    }


class Search:
    """Settings that were tried with what came out, and the choice among them."""

    def __init__(self, script, args):
        """script: its file's name, for the command; args: its flags, of which `smoke` and `json`
        are used here.

        Raises ParameterError where the JSON could not be written at the end.
        """
        if args.json and not os.access(Path(args.json).parent, os.W_OK):
            raise ParameterError(
                f"--json {args.json}: expected a file in a folder that is there and can be written "
                "to"
            )
        self.script, self.args, self.started, self.tried = script, args, time.time(), []

    def run(self, data, about, setting, epsilon, travels=TRAVELS, clips=CLIPS):
        """The best smoothed accuracy over travels and clip norms; about: entries that name the
        data.
        """
        accuracies, sigma = descend(data, setting, epsilon, travels, clips)
        self.tried.append(
            {
                **about,
                "epsilon": epsilon,
                **setting,
                "travels": travels.tolist(),
                "clips": clips.tolist(),
                "noise_multiplier": sigma,
                "accuracies": np.round(accuracies, 4).tolist(),
            }
        )
        best = smoothed(accuracies)
        at = np.unravel_index(best.argmax(), best.shape)
        print(
            f"{time.time() - self.started:5.0f} s  {about} epsilon {epsilon:g} {setting}: "
            f"{best.max():.4f} at "
            f"{[float(axis[i]) for axis, i in zip((DECAYS, travels, clips), at)]}",
            file=sys.stderr,
            flush=True,
        )
        return best.max()

    def improved(self, best, alone, score, gain=GAIN):
        """`best` with entries of `alone` changed, one after another, where that raises
        score(setting) by more than `gain`.

        An entry of several words changes as many names at once.
        """
        top = score(best)
        for names, values in alone.items():
            changed = {
                value: best | dict(zip(names.split(), value if " " in names else (value,)))
                for value in values
            }
            scores = {
                value: score(changed[value])
                for value in (values[:1] if self.args.smoke else values)
            }
            value = max(scores, key=scores.get)
            if scores[value] > top + gain:
                best, top = changed[value], scores[value]
        return best

    def choose(self, best, among, named, dataset, travels=TRAVELS, clips=CLIPS, **more):
        """What `named` makes of `best` with the best of the `rules` by what was tried from `among`
        on; writes the JSON.
        """
        table = rules(self.tried[among:], travels, clips)
        choice = named(
            {**best, **{name: table[0][name] for name in ("travel", "clip", "power", "decay")}}
        )
        return self.chosen(
            choice,
            dataset,
            **more,
            **{"accuracies by decay, travel and clip": DECAYS, "rules": table[:20]},
        )

    def chosen(self, choice, dataset, **more):
        """The choice, printed and, with what was tried and `more` entries, written as JSON."""
        print(json.dumps(choice))
        if self.args.json:
            with atomic_write(self.args.json) as out:
                json.dump(
                    {
                        "command": command_of(
                            self.script, self.args, ("public_data", "pretrained")
                        ),
                        "machine": f"{platform.machine()}, CPU",
                        "cpu_seconds": round(time.process_time()),
                        "dataset": dataset,
                        "seed": SEED,
                        "delta": DELTA,
                        **more,
                        "choice": choice,
                        "tried": self.tried,
                    },
                    out,
                )
        return choice


@dataclass(frozen=True)
class Config:
    """The flags."""

    json: str | None = option(
        None, "file to write: every setting tried with its accuracies, and the choice"
    )
    smoke: bool = option(False, "small sets and few steps, seconds")


def search(args):
    """Try everything, print it, write the JSON; returns the choice."""
    search, strays = Search("mnist_best_settings.py", args), STRAYS[:2] if args.smoke else STRAYS
    errors = {
        stray: neighbours_error(stray, *((500, 100) if args.smoke else (60_000, 2000)))
        for stray in strays
    }
    hard = min(errors, key=lambda stray: abs(errors[stray] - NEIGHBOURS))
    print(f"errors of nearest neighbours {errors}: stray {hard}", file=sys.stderr)

    def run(problem, setting, epsilon, part=slice(None)):
        data = features(problem, *(setting[name] for name in FORM))
        about = zip(("training images", "tested", "stray"), problem)
        return search.run(data, dict(about), setting, epsilon, TRAVELS[part], CLIPS[part])

    score = lambda problem, epsilons: (
        lambda setting: np.mean([run(problem, setting, one, FEWER) for one in epsilons])
    )
    large, small = (
        ((300, 100, hard),) * 2 if args.smoke else ((60_000, 10_000, hard), (6000, 5000, hard))
    )
    best = search.improved(
        FIRST | ({"steps": 5, "cosines": 64} if args.smoke else {}), ALONE, score(small, (2.0, 8.0))
    )
    best, among = (
        search.improved(best, {} if args.smoke else LARGE, score(large, (0.5, 2.93)), 0),
        len(search.tried),
    )
    for problem, epsilons in (
        (large, EPSILONS),
        ((*small[:2], 1.0), (2.0, 8.0)),
        ((*small[:2], 1.5), (2.0, 8.0)),
    ):
        for epsilon in epsilons[:1] if args.smoke else epsilons:
            run(problem, best, epsilon)
    return search.choose(
        best, among, form_and_rule(FORM, RULE), "strokes", **{"neighbours' errors by stray": errors}
    )


if __name__ == "__main__":
    with user_errors():
        search(parse(Config, prog="mnist_best_settings.py", description=__doc__.splitlines()[0]))
