"""What a run does about interruptions: how it recognises its data, reads its checkpoint, counts the
lots that a crash took, and ends where the weights overflow.
"""

import math

import numpy as np

from ..errors import CheckpointError, DataError, DivergedError
from ..privacy.ledger import STEP
from ..util.text import upper_text
from .folder import CHECKPOINT, KEY, LEDGER

HASHED = 2**28  # bytes of an array that a resumed run recognises it by


def public_size(plan, data):
    """The public number of training examples: the data set's or the sampler's, otherwise L / q."""
    size = getattr(data, "nominal_size", getattr(plan.sampler, "dataset_size", None))
    if size is not None:
        return size
    size = plan.expected_lot_size / plan.sampler.sampling_probability
    return round(size) if math.isclose(size, round(size)) else size


def identity(run):
    """A keyed hash of the arrays that no data set vouches for; None where there are none.

    By this hash a resumed run notices other arrays.
    """
    if run.about.data is not None:
        return None
    person = getattr(run.persons, "number", None)
    given = (*run.examples, run.example_weight, person)
    arrays = [getattr(each, "source", each) for each in given]
    arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    parts = [part for array in arrays for part in _bytes(array)]
    return run.folder.digest(*parts) if arrays else None


def _bytes(array):
    """What a hash takes of an array: blocks of rows, of a very large one evenly spread ones, so
    that it need not fit into memory.
    """
    yield repr((array.shape, array.dtype.str)).encode()
    if array.dtype.kind not in "OUS":
        for start in range(0, array.shape[0], 4096 * max(1, array.nbytes // HASHED)):
            yield np.ascontiguousarray(array[start : start + 4096]).data.cast("B")


def resumed(run):
    """(progress, history, seconds spent before) of the checkpoint of a run."""
    path = run.folder.path / CHECKPOINT
    arrays, header = run.saved
    released = {name for name in arrays if name.startswith("release/")}
    if released != {f"release/{name}" for name in run.releases}:
        raise CheckpointError(
            f"{path}: the run released something else at first; make the same calls of "
            "release_first again"
        )
    if header["extra"]["examples"] and not (run.folder.path / KEY).is_file():
        raise CheckpointError(
            f"{run.folder.path / KEY} is missing, which tells whether x and y are the same as "
            "before; put it back, or choose another folder"
        )
    if header["extra"]["examples"] != identity(run):
        raise DataError(
            f"{path}: the run began with other examples; resume with the same x and y, or choose "
            "another folder"
        )
    return header["progress"], header["history"], header["extra"]["seconds"]


def steps_lost(run, progress):
    """Steps of an unseeded run that a crash took: charged on disk, but not in the checkpoint.

    Their noise is unknown, so they are counted as released.
    """
    on_disk = run.ledger.count_of(STEP) * run.plan.sampler.period
    if progress.charged > on_disk:
        raise CheckpointError(
            f"the checkpoint claims {progress.charged} charged lots, the ledger holds {on_disk}"
        )
    return max(0, min(on_disk, run.plan.steps) - progress.charged)


def diverged(run, step):
    """The error that ends a run whose weights overflowed: no model, and what was spent."""
    charged = run.ledger.count_of(STEP) * run.plan.sampler.period
    spent = run.budget.accountant.epsilon(run.ledger, run.budget.delta).upper
    return DivergedError(
        f"no model: after {step} lots the weights are too large for their dtype; {charged} "
        f"lots stay charged in {LEDGER}, epsilon {upper_text(spent)} at delta "
        f"{run.budget.delta:g} by {run.budget.accountant.name}; begin again in another "
        "folder with a smaller learning rate or clip norm"
    )
