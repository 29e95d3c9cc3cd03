"""Whether all ranks hold the same rows, and are as far as each other."""

from hashlib import sha256
from typing import Any

import numpy as np

from ..backend import namespace_of, to_host
from ..examples import LabelledExamples

COMPARED = 2**30  # bytes of rows that ranks compare: all rows, or evenly spread ones
AT_ONCE = 2**24  # bytes of rows that are taken at once to compare them


def check_rows(examples: LabelledExamples, ranks: Any) -> None:
    """Raise RanksError unless all ranks hold the same rows, weights and units."""
    held = examples.x, examples.y, examples.weight, getattr(examples.units, "number", None)
    arrays = [each for each in held if each is not None]
    units = examples.units.name, examples.units.rows_per_unit, len(examples.units)
    ranks.check_equal("the units, rows_per_person or views", units)
    ranks.check_equal("the shapes of the examples", [tuple(each.shape) for each in arrays])
    ranks.check_equal("the examples", [_digest(each) for each in arrays])


def check_run(trainer: Any, step: int, streams: Any) -> None:
    """Raise RanksError unless all ranks are as far as each other, hold the same parameters, and
    draw and clip alike.
    """
    plan, ranks = trainer.plan, trainer.ranks
    groups = plan.sanitizer.for_step(min(step, plan.steps - 1)).groups
    units = trainer.rows_per_person, trainer.augmentation_multiplicity
    settings = repr((groups, plan.sampler, plan.expected_lot_size, units))
    ranks.check_equal(
        "clip groups, sampler, lot size, rows per person, views or seed",
        (settings, streams.seed, streams.fingerprint),
    )
    held = sha256()
    for array in trainer.network.params.values():
        held.update(to_host(array).tobytes())
    ranks.check_equal(
        "parameters, charges or steps", (held.digest(), trainer.ledger.sha256(), step)
    )


def _digest(rows):
    """A hash of an array or `Examples`: of all rows, or above COMPARED bytes of evenly spread
    ones.
    """
    found = sha256()
    size = rows.shape[0]
    if size == 0:
        return found.digest()
    xp = namespace_of(rows)
    row_bytes = max(rows.take(xp.asarray([0]), axis=0).nbytes, 1)
    indices = np.linspace(0, size - 1, min(size, COMPARED // row_bytes + 1)).astype(int)
    step = max(1, AT_ONCE // row_bytes)
    for start in range(0, len(indices), step):
        some = rows.take(xp.asarray(indices[start : start + step]), axis=0)
        found.update(np.ascontiguousarray(to_host(some)))
    return found.digest()
