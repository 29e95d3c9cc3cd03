#!/usr/bin/env python3
"""Which settings cifar_best.py should take: tried on public images only, no image of CIFAR-10 is
opened.

    python experiments/cifar_best_settings.py --public-data DIR --json experiments/results/cifar_best_settings.json

As mnist_best_settings.py does it, on `common/stand_in.py`: ten groups of the public set's odd
classes, as many images as CIFAR-10 has. Form and rule change in one entry at a time on a part of
it, with budgets that are to those images what smaller ones are to all. Then travel, clip norm and
how it follows mu are compared at every budget, on all of it and on fewer classes, which are easier
to tell apart.
"""

from dataclasses import dataclass
from functools import lru_cache

from cifar_best import FORM, RULE, features, scattered, views
from common.config import option, parse
from common.stand_in import stand_in
from mnist_best import ROWS
from mnist_best_settings import CLIPS, FEWER, TRAVELS, Search, form_and_rule
import numpy as np

from minidp.backend import Backend
from minidp.cli import user_errors
from minidp.errors import ParameterError

EPSILONS = (0.5, 1.0, 2.0, 4.0)
LOWER, HIGHER = TRAVELS / 2, 9 * CLIPS  # of the last comparison
FIRST = {
    "opponent": False,
    "mirrored": False,
    "groups": 27,
    "floor": 1e-5,
    "width": 0.2,
    "cosines": 512,
    "parts": 2,
    "steps": 100,
    "sigma": 3.0,
    "share": 0.03,
}
ALONE = {
    "opponent": (True,),
    "mirrored": (True,),
    "floor width": (  # these two depend on each other
        (1e-5, 0.14),
        (1e-3, 0.2),
        (1e-3, 0.14),
        (1e-3, 0.1),
        (1e-2, 0.14),
    ),
    "parts cosines": ((1, 2048), (4, 256), (2, 1024)),
    "groups": (81,),
    "steps": (300,),
}
# classes of a group, images to train and to test on: a part, all, and fewer classes, which are
# easier to tell apart
SMALL, LARGE, FEW = (10, 20_000, 5000), (10, 50_000, 5000), (2, 10_000, 1000)


@dataclass(frozen=True)
class Config:
    """The flags."""

    public_data: str | None = option(None, "folder with train.bin and test.bin of the public set")
    json: str | None = option(
        None, "file to write: every setting tried with its accuracies, and the choice"
    )
    smoke: bool = option(False, "small sets and few steps, seconds")


def search(args):
    """Try everything, print it, write the JSON; returns the choice."""
    if args.public_data is None:
        raise ParameterError("--public-data DIR is needed")
    search, backend = Search("cifar_best_settings.py", args), Backend.numpy()
    small, large, few = (
        ((10, 200, 100),) * 2 + ((2, 40, 20),) if args.smoke else (SMALL, LARGE, FEW)
    )
    each = lambda take, rows: np.concatenate(
        [take(rows[i : i + ROWS]).astype("f2") for i in range(0, len(rows), ROWS)]
    )

    whole = lru_cache(1)(lambda members: stand_in(args.public_data, members)[0])

    @lru_cache(1)
    def coefficients(members, train, tested, opponent):
        images = whole(members).x_train[:train], whole(members).x_test[:tested]
        return [each(lambda part: scattered(part, opponent), those) for those in images]

    @lru_cache(1)
    def formed(members, train, tested, values):
        form = dict(zip(FORM, values))
        take = features(form)
        x, other = (
            each(lambda part: take(views(part.astype("f4"), form, backend)), rows)
            for rows in coefficients(members, train, tested, form["opponent"])
        )
        return x, whole(members).y_train[:train], other, whole(members).y_test[:tested]

    def run(problem, setting, epsilon, travels=LOWER, clips=HIGHER):
        data = formed(*problem, tuple(setting[name] for name in FORM))
        about = zip(("classes of a group", "training images", "tested"), problem)
        return search.run(data, dict(about), setting, epsilon, travels, clips)

    best = FIRST | ({"steps": 5, "cosines": 16} if args.smoke else {})
    score = lambda setting: np.mean(
        [run(small, setting, epsilon, TRAVELS[FEWER], CLIPS[FEWER]) for epsilon in (2.0, 8.0)]
    )
    best = search.improved(best, ALONE, score)
    among = len(search.tried)
    for problem, epsilons in ((large, EPSILONS), (few, (2.0, 8.0))):
        for epsilon in epsilons[:1] if args.smoke else epsilons:
            run(problem, best, epsilon)
    return search.choose(best, among, form_and_rule(FORM, RULE), whole(10).name, LOWER, HIGHER)


if __name__ == "__main__":
    with user_errors():
        search(parse(Config, prog="cifar_best_settings.py", description=__doc__.splitlines()[0]))
