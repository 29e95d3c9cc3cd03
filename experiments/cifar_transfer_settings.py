#!/usr/bin/env python3
"""Which settings `cifar_transfer.py head` should take: tried on public images only, no image of
CIFAR-10 is opened.

    python experiments/cifar_transfer.py pretrain --public-data DIR --even --out EVEN
           --network deep --epochs 8 --batch-size 64 --learning-rate 0.03 --dropout 0.3
    python experiments/cifar_transfer_settings.py --public-data DIR --pretrained EVEN/pretrained.npz --json FILE

A network learns from the even classes; ten groups of odd ones stand in for CIFAR-10
(common/stand_in.py). One entry at a time is changed on a part of them, and stays changed if that
gains GAIN; then travel, clip norm and how it follows mu are compared at every budget, on all of
them and on ten single classes at a time, which are easier to tell apart, by the smoothed accuracies
of mnist_best_settings.py.
"""

from dataclasses import dataclass
from functools import lru_cache

from cifar_transfer import SIDE, load_pretrained, taps
from common.config import option, parse
from common.linear import NORM
from common.stand_in import GROUPS, stand_in
from common.views import BATCH
from features.random_features import RandomFeatures
from mnist_best_settings import SEED, Search
import numpy as np

from minidp.cli import user_errors
from minidp.data import centre_crop, load_public, standardise_images
from minidp.errors import ParameterError

EPSILONS, TRAVELS, CLIPS = (2.0, 4.0, 8.0), 2.0 ** np.arange(-1, 4), 0.0045 * 3.0 ** np.arange(4)
ALL = 4  # taps
FIRST = {
    "taps": ALL,
    "cosines": None,
    "steps": 100,
    "sigma": 3.0,
    "share": 0.03,
}  # taps: the last so many
ALONE = {"taps": (3, 2, 1), "cosines": (2048,), "steps": (300,), "share": (0.01, 0.1)}
# Problems of one class of each group; epsilon there: to 5,000 images the noise is what it is to
# 50,000 at about 2
SINGLE, MORE = 3, 30.0


@dataclass(frozen=True)
class Config:
    """The flags."""

    public_data: str | None = option(None, "folder with train.bin and test.bin of the public set")
    pretrained: str | None = option(None, "file that `pretrain --even` wrote")
    json: str | None = option(
        None, "file to write: every setting tried with its accuracies, and the choice"
    )
    smoke: bool = option(False, "few images and steps, seconds")


def made(args):
    """{problem: (x, y, tested, wanted)} in features of all taps: the stand-in, and single classes
    of its groups.
    """
    (private, public), whole = stand_in(args.public_data), load_public(args.public_data)
    layers, about = load_pretrained(args.pretrained, np.random.default_rng(0))
    if about["classes"] != public.classes:
        raise ParameterError(
            f"{args.pretrained}: learned {about['classes']} classes, expected the {public.classes} "
            "even ones of `pretrain --even`: the others stand in for private data"
        )
    network = taps(layers, ALL)
    order = np.random.default_rng(SEED).permutation(len(private.x_train))[
        : 600 if args.smoke else None
    ]

    def rows(images):
        parts = np.array_split(images, -(-len(images) // BATCH))
        return np.concatenate(
            [network(standardise_images(centre_crop(part, SIDE))).astype("f2") for part in parts]
        )

    pairs = [
        (
            rows(private.x_train[order]),
            private.y_train[order],
            whole.y_train[whole.y_train % 2 == 1][order],
        ),
        (rows(private.x_test), private.y_test, whole.y_test[whole.y_test % 2 == 1]),
    ]
    kept = lambda few: tuple(
        each[np.isin(classes, few)] for x, y, classes in pairs for each in (x, y)
    )
    return (
        about,
        network.widths,
        {
            "groups": kept(sum(GROUPS, ())),
            **{f"single classes {i}": kept([group[i] for group in GROUPS]) for i in range(SINGLE)},
        },
    )


def search(args):
    """Try everything, print it, write the JSON; returns the choice."""
    if args.public_data is None or args.pretrained is None:
        raise ParameterError("--public-data DIR and --pretrained FILE are needed")
    search, (about, widths, problems) = Search("cifar_transfer_settings.py", args), made(args)

    @lru_cache(1)
    def form(problem, size, last, number):
        x, y, tested, wanted = problems[problem]
        weight = np.float16((len(widths) / last) ** 0.5)  # the norm stays
        x, tested = (each[:, sum(widths[:-last]) :] * weight for each in (x[:size], tested))
        if number is not None:
            one = RandomFeatures(x.shape[1], number, NORM)
            take = lambda part: (one(part.astype("f4")) * np.float32(NORM)).astype("f2")
            x, tested = (
                np.concatenate([*map(take, np.array_split(each, -(-len(each) // BATCH)))])
                for each in (x, tested)
            )
        return x, y[:size], tested, wanted

    def run(problem, setting, epsilon, travels=TRAVELS, clips=CLIPS, size=None):
        data = form(problem, size, setting["taps"], setting["cosines"])
        named = {"problem": problem, "training images": len(data[0]), "tested": len(data[2])}
        return search.run(data, named, setting, epsilon, travels, clips)

    best, size = (
        dict(FIRST, **({"steps": 5} if args.smoke else {})),
        len(problems["groups"][0]) // 4,
    )
    score = lambda setting: run("groups", setting, 8.0, TRAVELS[1:4], CLIPS[1:2], size)
    best = search.improved(best, ALONE, score)
    among = len(search.tried)
    for problem in problems:
        for epsilon in (MORE,) if problem != "groups" else EPSILONS[:1] if args.smoke else EPSILONS:
            run(problem, best, epsilon)
    return search.choose(
        best,
        among,
        dict,
        "public images",
        TRAVELS,
        CLIPS,
        pretrained={
            name: about[name]
            for name in ("classes", "images", "config", "test_accuracy", "seconds")
        },
    )


if __name__ == "__main__":
    with user_errors():
        search(
            parse(Config, prog="cifar_transfer_settings.py", description=__doc__.splitlines()[0])
        )
