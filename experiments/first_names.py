"""Sex from a first name, by `minidp.fit` with an LSTM as the network.

    python experiments/first_names.py --data-dir DIR --json experiments/results/first_names.json

DIR holds dist.female.first and dist.male.first of the US census of 1990 (public domain), as in the
package `names` 0.3.0. The unit is one first name, which is not a person; a name in both lists has
the label of its larger frequency. Letters are ids, and names end at the last of 15 positions. Five
splits, with a fifth of the names held out; the split's number seeds the fit. All settings are the
defaults of `minidp.fit`; nothing was tuned on these names. Beside it: the default model of
`minidp.fit`, linear in the same letters as 0 and 1, and the share of the larger class.
"""

import math
import statistics

import common

common.start(__name__)

from common.tables import digest, facts_of, find, held_out, main_of_table

import numpy as np

import minidp
from minidp import nn
from minidp.commands.flags import number
from minidp.errors import DataError

FILES = {"female": "dist.female.first", "male": "dist.male.first"}
DELTA, POSITIONS, LETTERS = 1e-5, 15, 26
WIDTH, HIDDEN = 16, 32
GET = (
    "dist.female.first and dist.male.first are neither in --data-dir nor in $MINIDP_DATA/names nor "
    "in the package `names`; pip install names, or pass --data-dir DIR"
)


def load(data_dir=None):
    """(names, labels, {file: SHA-256})."""
    found, digests = {}, {}
    for label, file in FILES.items():
        path = find(file, "names", data_dir)
        if path is None:
            raise DataError(GET)
        digests[file] = digest(path)
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                name, frequency = line.split()[:2]
                found.setdefault(name.lower(), []).append((float(frequency), label))
    return list(found), np.array([max(each)[1] for each in found.values()]), digests


def encode(names):
    """(N, 15) ids of letters, -1 before the first."""
    found = np.full((len(names), POSITIONS), -1)
    for row, name in zip(found, names):
        letters = [ord(letter) - ord("a") for letter in name[-POSITIONS:]]
        row[POSITIONS - len(letters) :] = letters
    return found


def network(rng):
    """An LSTM that reads a name and gives two logits."""
    layers = [nn.Embedding(LETTERS, WIDTH, rng=rng)]
    layers += [nn.LSTM(WIDTH, HIDDEN, rng=rng, states="last"), nn.Dense(HIDDEN, 2, rng=rng)]
    return nn.Sequential(layers, (POSITIONS,))


def measure(x, y, epsilon, split):
    """Accuracies of both models on one split."""
    held, rest = held_out(split, len(y))
    ways = {
        "lstm": (x, {"network": network(np.random.default_rng(split))}),
        "linear": ((x[:, :, None] == np.arange(LETTERS)).astype("float32"), {}),
    }
    found = {"epsilon": epsilon, "seed": split}
    found["larger_class"] = max(np.unique(y[held], return_counts=True)[1].tolist()) / len(held)
    for way, (rows, given) in ways.items():
        model = minidp.fit(
            rows[rest],
            y[rest],
            epsilon=epsilon,
            delta=DELTA,
            classes=list(FILES),
            dataset_size=len(rest),
            seed=split,
            quiet=True,
            **given,
        )
        found[way] = {"accuracy": model.score(rows[held], y[held]), **facts_of(model)}
    return found


def figures(args):
    """Measure and print; returns what is written."""
    names, y, digests = load(args.data_dir)
    x = encode(names)
    if args.smoke:
        some = np.random.default_rng(0).permutation(len(y))[:400]
        x, y = x[some], y[some]
    runs = []
    for epsilon in args.target_epsilon:
        of = [measure(x, y, epsilon, split) for split in range(args.splits)]
        runs += of
        lstm, linear = (
            statistics.mean(run[way]["accuracy"] for run in of) for way in ("lstm", "linear")
        )
        larger = statistics.mean(run["larger_class"] for run in of)
        print(
            f"epsilon {epsilon:g}: LSTM {lstm:.2%}, linear {linear:.2%}, larger class {larger:.2%}",
            flush=True,
        )
    return {
        "delta": DELTA,
        "unit": "one first name, which is not a person",
        "names": len(y),
        "sha256": digests,
        "runs": runs,
    }


main = main_of_table(
    "first_names.py",
    __doc__,
    "the two lists",
    "a few hundred names, one split",
    figures,
    {"--target-epsilon": {"type": number, "nargs": "+", "default": [1.0, 8.0, math.inf]}},
)

if __name__ == "__main__":
    main()
