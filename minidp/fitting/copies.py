"""Rows that are equal bit for bit: what they may mean for the guarantee is said to their owner, on
the screen, and is in no file.
"""

from collections import Counter

import numpy as np

from ..backend import to_host
from ..data.arrays import ASIDE
from ..privacy import Ledger, RenyiAccountant
from ..privacy.group_privacy import GroupAccountant
from ..util.notices import say
from ..util.text import upper_text
from .rows import Data

MANY = 0.3  # a share of the rows; of Adult, whose columns are coarse, it is a sixth
MOST_ROWS = 2**20  # more are not looked at
BLOCK = 2**12


def remark_copies(data: Data, ledger: Ledger, delta: float) -> None:
    """Say so if many training rows are equal, with what the ledger costs the largest group of them,
    or if most of the public rows are training rows.
    """
    if not isinstance(data.inputs.source, np.ndarray) or data.inputs.shape[0] > MOST_ROWS:
        return
    held = _counted(data.inputs, data.targets)
    alike = [count for count in held.values() if count > 1]
    if data.person is None and data.units.name == "row" and sum(alike) > MANY * held.total():
        most = max(alike)
        group = GroupAccountant(RenyiAccountant(ledger.relation), most)
        spent = upper_text(group.epsilon(ledger, delta).upper)
        say(
            f"NOTICE: {sum(alike)} of {held.total()} rows are equal to others, up to {most} to "
            "each other. If they are copies of one row (oversampling, bagging) or of one person, "
            f"the epsilon of a row does not hold for it: {most} rows together have {spent}. Drop "
            f"copies, or give person= and rows_per_person=. {ASIDE}"
        )
    if data.measured is None or not isinstance(data.measured[0].source, np.ndarray):
        return
    public = _counted(*data.measured)
    if (public & held).total() > public.total() / 2:
        both = (public & held).total()
        say(
            f"NOTICE: {both} of {public.total()} rows of test are training rows: what is measured "
            f"on them would not be private, and says nothing about new rows. {ASIDE}"
        )


def _counted(inputs, targets):
    """{hash of a row with its target: how often}."""
    found = Counter()
    for start in range(0, inputs.shape[0], BLOCK):
        span = slice(start, start + BLOCK)
        x, y = np.asarray(inputs.source[span]), np.asarray(to_host(targets[span]))
        x, y = (np.asarray(each, np.float64).reshape(len(each), -1) for each in (x, y))
        found.update(hash(row.tobytes()) for row in np.hstack([x, y]))
    return found
