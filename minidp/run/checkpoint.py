"""The file from which training resumes: parameters, optimizer, ledger, progress; no pickle.

It does not hold the random streams: their numbers follow from the seed and the step, and a run
without a seed resumes with fresh entropy. Lots that a crash lost stay charged.
"""

import json
import os
import reprlib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import CheckpointError, DivergedError
from ..mechanism import Plan
from ..nn import Sequential
from ..privacy.ledger import STEP, Ledger
from ..train.progress import Progress
from ..util.atomic import StrPath, atomic_write
from ..util.files import check_path, damage_named, jsonable
from ..util.notices import say

FORMAT = 1
HASHED = 2**28  # bytes of an array that a resumed run compares
_SHORT = reprlib.Repr()  # whatever a crafted file holds, the error is one line
_SHORT.maxstring = 100
short = _SHORT.repr


def save_arrays(path: StrPath, arrays: Mapping[str, NDArray], header: Mapping[str, Any]) -> None:
    """Write {name: array} and a JSON header into one .npz file, atomically.

    Raises DivergedError, before anything is written, for numbers that `load_arrays` would refuse.
    """
    check_path(path=path)
    held: dict[str, Any] = {name: to_host(array) for name, array in arrays.items()}
    for name, array in held.items():
        if not np.isfinite(array).all():
            raise DivergedError(f"{path}: expected finite numbers in {name}")
    text = np.array(json.dumps(jsonable({"format": FORMAT, **header}), allow_nan=False))
    with atomic_write(path, "wb") as file:
        np.savez(file, header=text, **held)


def load_arrays(
    path: StrPath, kind: str | None = None
) -> tuple[dict[str, NDArray], dict[str, Any]]:
    """({name: array}, header) of a file of this kind that `save_arrays` wrote.

    Raises CheckpointError, which names the file.
    """
    with damage_named(path, CheckpointError), open_npz(path) as stored:
        _check_archive(path, stored.zip)
        arrays = dict(stored)
        header = json.loads(str(arrays.pop("header")))
        odd = [
            name
            for name, array in arrays.items()
            if array.dtype.kind != "f" or not np.isfinite(array).all()
        ]
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path}: expected format {FORMAT}, got {short(header):.80}")
    if kind is not None and header.get("kind") != kind:
        got = " ".join(str(header.get("kind")).split())
        raise CheckpointError(f"{path}: expected a {kind}, got a {got:.80}")
    if odd:
        name = " ".join(odd[0].split())
        raise CheckpointError(f"{path}: expected finite floating-point numbers in {name:.80}")
    return arrays, header


@contextmanager
def open_npz(path: StrPath) -> Iterator[Any]:
    """The arrays of a .npz file; nothing is unpickled. Raises ValueError for a file of another
    kind.
    """
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("expected a .npz file, as numpy.savez writes it")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            yield stored


def _check_archive(path, archive):
    """Raise ValueError for damaged members of a zip file, and for members larger than the file.

    `save_arrays` compresses nothing. A compressed member is refused, so that all members together
    hold no more bytes than the file: a small file cannot fill the memory.
    """
    infos = archive.infolist()
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("two arrays have the same name")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{info.filename} is compressed: minidp compresses nothing")
    if sum(info.file_size for info in infos) > os.path.getsize(path):
        raise ValueError("arrays larger than the file")
    if damaged := archive.testzip():
        raise ValueError(f"{damaged} is damaged")


def refuse_misfits(
    path: StrPath, stored: Mapping[str, NDArray], target: Mapping[str, NDArray]
) -> None:
    """Raise CheckpointError unless {name: array} `stored` has the names and shapes of `target`."""
    odd = [f"{name} is missing" for name in sorted({*target} - {*stored})] + [
        f"{name} is not expected" for name in sorted({*stored} - {*target})
    ]
    if odd:
        named = " ".join("; ".join(odd).split())  # one line, whatever the names are
        raise CheckpointError(f"{path}: {named:.1000}")
    for name, array in target.items():
        wanted, got = tuple(array.shape), tuple(stored[name].shape)
        if wanted != got:
            raise CheckpointError(f"{path}: expected {name} of shape {wanted}, got {got}")


def restore(path: StrPath, stored: Mapping[str, NDArray], target: Mapping[str, NDArray]) -> None:
    """Copy stored {name: array} into the arrays of `target`, after checking names, shapes and
    dtypes of all.

    Raises CheckpointError for an array that is missing or unexpected, or has another shape or more
    precision.
    """
    refuse_misfits(path, stored, target)
    for name, array in target.items():
        if not np.can_cast(stored[name].dtype, array.dtype):
            raise CheckpointError(
                f"{path}: expected {name} of dtype {array.dtype}, got {stored[name].dtype}"
            )
    for name, array in target.items():
        array[...] = namespace_of(array).asarray(stored[name].astype(array.dtype))


def refuse_differences(path: StrPath, before: object, now: object) -> None:
    """Raise CheckpointError if a run's configuration has changed. The message names the changed
    settings, or all settings if the change is unknown. A setting that this version lacks is
    accepted if it was not set, or has the only value that remains. A setting that an older version
    did not store may have any value.
    """
    unset = ("sampler", "poisson", None)
    unnamed = _unnamed(before, now)
    found = [
        each
        for each in differences(before, now)
        if each[1:] != ({}, None) and each != unset and each[0] not in unnamed
    ]
    if found:
        # requested settings come before derived ones: scaling, shapes, the noise of clip groups
        given = [each for each in found if not each[0].startswith(("settings.", "scale", "shapes"))]
        asked = [each for each in found if not each[0].startswith("settings.clip_groups")]
        goals = [each for each in asked if each[0] in ("settings.target_epsilon", "settings.delta")]
        named = ", ".join(
            f"{place} was {short(was)} and is {short(is_)}"
            for place, was, is_ in given or goals or asked or found
        )
        raise CheckpointError(
            f"{path}: this run has another configuration: {named}; choose another folder, or the "
            "settings that it had"
        )


def say_unnamed(path: StrPath, before: object, now: object) -> bool:
    """True if an older version wrote a configuration that lacks entries which this version
    compares; also prints a NOTICE.
    """
    if unnamed := _unnamed(before, now):
        say(
            f"NOTICE: {path}, of an older version, does not name {', '.join(unnamed)}: whether the "
            "run is resumed with the same ones is not known"
        )
    return bool(unnamed)


def _unnamed(before, now):
    """Places that only newer versions store: loss and layers, facts that the statement lists, and
    the numbers of schedules.
    """
    return [
        where
        for where, was, _ in differences(before, now)
        if was is None and (where in ("trained", "facts") or where.endswith(".runs"))
    ]


def differences(before: Any, now: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted place, value before, value now) of each difference between two JSON values; None for
    a missing value.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from differences(
                before.get(key), now.get(key), f"{where}.{key}" if where else key
            )
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, pair in enumerate(zip(before, now)):
            yield from differences(*pair, f"{where}[{i}]")
    elif before != now or isinstance(before, bool) is not isinstance(now, bool):
        yield where, before, now


def save_checkpoint(
    path: StrPath,
    network: Sequential,
    optimizer: Any,
    ledger: Ledger,
    progress: Progress,
    config: Mapping[str, Any],
    history: Any,
    extra: Any = None,
    releases: Mapping[str, NDArray] | None = None,
) -> None:
    """Write all that training needs to resume. config, history and extra (the caller's own) are
    JSON values.

    releases: {name: array} of the releases before the first step, which are stored as release/NAME.
    """
    arrays = {f"release/{name}": array for name, array in (releases or {}).items()}
    save_arrays(
        path,
        arrays | _arrays(network, optimizer),
        {
            "kind": "checkpoint",
            "config": config,
            "extra": extra,
            "history": history,
            "ledger": ledger.to_json(),
            "progress": [progress.step, progress.charged],
        },
    )


def load_checkpoint(
    path: StrPath, config: Mapping[str, Any]
) -> tuple[dict[str, NDArray], dict[str, Any]]:
    """(arrays, header with `ledger` and `progress` as objects); raises CheckpointError if `config`
    differs.
    """
    arrays, header = load_arrays(path, "checkpoint")
    with damage_named(path, CheckpointError):
        refuse_differences(path, header["config"], config)
        header["ledger"] = Ledger.from_json(header["ledger"])
        header["progress"] = Progress(*header["progress"])
    return arrays, header


def restore_training(
    path: StrPath,
    arrays: Mapping[str, NDArray],
    header: dict[str, Any],
    network: Sequential,
    optimizer: Any,
) -> None:
    """Put a loaded checkpoint into network and optimizer. Raises CheckpointError if it does not
    fit.
    """
    if header["progress"].step > 0:
        optimizer.allocate(network.params)
    own = {name: array for name, array in arrays.items() if not name.startswith("release/")}
    restore(path, own, _arrays(network, optimizer))


def _arrays(network, optimizer):
    """{name in the file: array} of all arrays that training changes, and of the constants."""
    return {f"network/{name}": array for name, array in network.state().items()} | {
        f"optimizer/{slot}/{layer}.{name}": array
        for slot, by_key in optimizer.slots.items()
        for (layer, name), array in by_key.items()
    }


def steps_lost(plan: Plan, ledger: Ledger, progress: Progress) -> int:
    """Steps of an unseeded run that a crash lost: charged in the ledger on disk, but not in the
    checkpoint.

    Their noise is unknown, so they are counted as released.
    """
    on_disk = ledger.count_of(STEP) * plan.sampler.period
    if progress.charged > on_disk:
        raise CheckpointError(
            f"the checkpoint claims {progress.charged} charged lots, the ledger holds {on_disk}"
        )
    return max(0, min(on_disk, plan.steps) - progress.charged)


def hashed_bytes(array: NDArray) -> Iterator[bytes | memoryview]:
    """Yield bytes with which a resumed run recognises an array: its blocks of rows. Of a very large
    array, which need not fit into memory, only evenly spread blocks are read.
    """
    yield repr((array.shape, array.dtype.str)).encode()
    if array.dtype.kind not in "OUS":
        for start in range(0, array.shape[0], 4096 * max(1, array.nbytes // HASHED)):
            yield np.ascontiguousarray(array[start : start + 4096]).data.cast("B")
