"""Find rows that are equal bit for bit, and tell their owner on the screen, and in no file, what
they may mean for the guarantee.
"""

import numpy as np

from ..backend import to_host
from ..data.arrays import ASIDE
from ..privacy import Ledger, RenyiAccountant
from ..privacy.group_privacy import GroupAccountant
from ..util.notices import say
from ..util.text import upper_text
from .rows import Data

MANY = 0.3  # a share of the rows; of Adult, whose columns are coarse, it is a sixth
FEW_VALUES, MOST_BY_CHANCE = 20, 0.1
MOST_ROWS = 2**20  # more are not looked at
BLOCK = 2**12


def remark_copies(data: Data, ledger: Ledger, delta: float) -> None:
    """Print a NOTICE if many training rows are equal, with the epsilon of the largest group of
    them, and one if most of the public rows are training rows.
    """
    if not isinstance(data.inputs.source, np.ndarray) or data.inputs.shape[0] > MOST_ROWS:
        return
    if _by_chance(data) > MOST_BY_CHANCE:
        return
    held = _keys(data.inputs, data.targets)
    _, rows, alike = np.unique(held, return_inverse=True, return_counts=True)
    repeated = int((alike[rows] > 1).sum())
    if data.units.name == "row" and repeated > MANY * len(held):
        most = int(alike.max())
        group = GroupAccountant(RenyiAccountant(ledger.relation), most)
        spent = upper_text(group.epsilon(ledger, delta).upper)
        say(
            f"NOTICE: {repeated} of {len(held)} rows are equal to others, up to {most} to "
            "each other, which is more than chance gives. If you know that they are copies of one "
            "row (oversampling, bagging), or of one person, the epsilon of a row does not hold for "
            f"it: {most} rows together have {spent}; person= and rows_per_person= protect persons. "
            f"Rows of different persons may stay. {ASIDE}"
        )
    if data.measured is None or not isinstance(data.measured[0].source, np.ndarray):
        return
    public = _keys(*data.measured)
    both = int(np.isin(public, held).sum())
    if both > len(public) / 2:
        say(
            f"NOTICE: {both} of {len(public)} rows of test are equal to training rows. If they "
            "are the same rows, what is measured on them is not private, and says nothing about "
            f"new rows. {ASIDE}"
        )


def _by_chance(data):
    """About how many other rows a row equals by chance, because columns with few values, which may
    depend on each other, do not distinguish rows.
    """
    first, expected = np.asarray(data.inputs.source[:BLOCK]), len(data.units)
    for column in first.reshape((len(first), -1)).T:
        counts = np.unique(column, return_counts=True)[1]
        if len(counts) > FEW_VALUES:
            expected *= ((counts / len(column)) ** 2).sum()
    return expected


def _keys(inputs, targets):
    """(N,) a number for each row with its target, the same for equal rows."""
    found = []
    for start in range(0, inputs.shape[0], BLOCK):
        span = slice(start, start + BLOCK)
        x, y = np.asarray(inputs.source[span]), np.asarray(to_host(targets[span]))
        x, y = (np.asarray(each, np.float64).reshape(len(each), -1) for each in (x, y))
        rows = np.hstack([x, y])
        found.append((rows * np.random.default_rng(0).normal(size=rows.shape[1])).sum(axis=1))
    return np.concatenate(found)
