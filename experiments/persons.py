"""Persons against rows: any medical expenses in a year, RAND Health Insurance Experiment.

    python experiments/persons.py --data-dir DIR --json experiments/results/persons.json

DIR holds randhie.csv: 20,190 person-years of 5,912 persons. Both ways protect a person with five
rows at the same epsilon and delta, and train the same network: `persons` clips the mean of their
rows once; `rows` trains on rows, with noise for which the statement's epsilon for five rows of one
person (group_size=5) is the target. Five splits, with a fifth of the persons held out; the split's
number seeds the fits. All settings are the defaults of `minidp.fit`. The bounds of the features
follow from what they mean, not from the rows; nothing was tuned on these rows.
"""

from dataclasses import dataclass

import common

common.start(__name__)

from common.tables import (
    TableFlags,
    auroc,
    facts_of,
    held_out,
    log_loss,
    main_of_table,
    mean_and_error,
    read_table,
)

import numpy as np

import minidp
from minidp.certified.gaussian import gaussian_epsilon
from minidp.fitting.defaults import mu_of
from minidp.run.options import option

DELTA, YEARS = 1e-5, 5
PERSON, LABEL = "zper", "binexp"
FILE = (
    "randhie",
    "randhie.csv",
    "statsmodels==0.15.0",
    "statsmodels/datasets/randhie/randhie.csv",
)
# public ranges, from what each column means: years, shares, a score of 100, logarithms of dollars
BOUNDS = {
    "xage": (0, 66),
    "female": (0, 1),
    "black": (0, 1),
    "linc": (0, 11),
    "educdec": (0, 25),
    "lnum": (0, 3),
    "child": (0, 1),
    "fchild": (0, 1),
    "logc": (0, 4.7),
    "idp": (0, 1),
    "lpi": (0, 8),
    "fmde": (0, 9),
    "physlm": (0, 1),
    "disea": (0, 60),
    "hlthg": (0, 1),
    "hlthf": (0, 1),
    "hlthp": (0, 1),
    "mhi": (0, 100),
}


def load(data_dir=None):
    """(x (N, 18), labels (N,), persons (N,), SHA-256 of the file)."""
    table, digest = read_table(data_dir, *FILE)
    # a gap becomes the middle of the public range, which looks at no other row
    x = [
        [float(cell or sum(bounds) / 2) for cell in table[name]] for name, bounds in BOUNDS.items()
    ]
    label, person = (np.array(table[name], float).astype(int) for name in (LABEL, PERSON))
    return np.array(x).T, label, person, digest


def measure(x, label, person, epsilon, split):
    """Figures of both ways on one split."""
    held = np.isin(person, held_out(split, np.unique(person))[0])
    of_row = gaussian_epsilon(mu_of(epsilon, DELTA) / YEARS, DELTA)
    ways = {
        "persons": {"epsilon": epsilon, "person": person[~held], "rows_per_person": YEARS},
        "rows": {"epsilon": of_row, "group_size": YEARS},
    }
    found = {}
    for way, given in ways.items():
        model = minidp.fit(
            x[~held],
            label[~held],
            delta=DELTA,
            bounds=np.array(list(BOUNDS.values()), float).T,
            classes=[0, 1],
            seed=split,
            quiet=True,
            **given,
        )
        group = model.record.group
        score, positive = model.predict_proba(x[held])[:, 1], label[held] == 1
        found[way] = {
            "auroc": auroc(score, positive),
            "log_loss": log_loss(positive, score),
            "accuracy": model.score(x[held], label[held]),
            "epsilon_of_five_rows": group and group.epsilon,
            **facts_of(model),
        }
    return {"seed": split, "ways": found}


def figures(args):
    """Measure and print; returns what is written."""
    x, label, person, digest = load(args.data_dir)
    runs = [measure(x, label, person, args.target_epsilon, split) for split in range(args.splits)]
    scores = {way: [run["ways"][way]["auroc"] for run in runs] for way in runs[0]["ways"]}
    scores["gain"] = [one - other for one, other in zip(scores["persons"], scores["rows"])]
    found = {name: mean_and_error(each) for name, each in scores.items()}
    for name, row in found.items():
        error = row["standard_error"] or 0
        print(f"{name:8} AUROC {row['mean']:.4f}, standard error {error:.4f}")
    about = {"target_epsilon": args.target_epsilon, "delta": DELTA, "sha256": digest}
    return {**about, "auroc": found, "runs": runs}


@dataclass(frozen=True)
class Flags(TableFlags):
    """The flags."""

    target_epsilon: float = option(1.0, "of each person", also=("--epsilon",))


main = main_of_table("persons.py", __doc__, Flags, figures)

if __name__ == "__main__":
    main()
