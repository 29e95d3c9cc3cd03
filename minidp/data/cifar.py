"""CIFAR-10, and CIFAR-100 and other public sets of 32 x 32 colour images in their *binary* record
layout; never pickles.

A record is the label (CIFAR-100: a coarse, then a fine label), one byte each, and 3,072 bytes: the
red, the green and the blue plane, row by row. Source: Krizhevsky,
https://www.cs.toronto.edu/~kriz/cifar.html.
"""

import hashlib
import lzma
import tarfile
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..util.atomic import StrPath
from .arrays import Dataset
from .fetch import RemoteFile, find

MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE * CHANNELS


@dataclass(frozen=True)
class Layout:
    """How a set is published: files of records in order, and the archive (with its md5) that holds
    them.
    """

    name: str
    title: str
    train: tuple
    test: str
    label_bytes: int
    classes: int | None  # None: as many as the training labels show
    records: int | None  # in each training file; None: any number
    folder: str = ""
    archive: str = ""
    md5: str = ""


CIFAR10 = Layout(
    "cifar10",
    "CIFAR-10",
    tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    "test_batch.bin",
    1,
    10,
    10_000,
    "cifar-10-batches-bin",
    "cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
)
TEST_RECORDS = 10_000
JPEG_CIFAR10 = "f92f7dac137a6595509ca53c72ccc15c9e37ad618fca469e205b031cdb1cbb2b"
JPEG_IMAGENET = "00264b246f43f0432df419ee12cdca9adb2bbe66e881d10a31ddc79d555341bd"
# sha256 of all records in order, of known files that are not the published ones
COPIES = {
    JPEG_CIFAR10: "CIFAR-10 from a JPEG copy (quality 75): slightly lossy, not the published "
    "pixels",
    JPEG_IMAGENET: "public set: Tiny ImageNet's 200 classes at 32 x 32, from a JPEG copy, in place "
    "of CIFAR-100",
}


def load_cifar10(
    data_dir: StrPath | None = None, download: bool = True, progress: bool = True
) -> Dataset:
    """CIFAR-10 as a Dataset: x (N, 32, 32, 3) uint8, y in 0..9; 50,000 + 10,000 images.

    The places are data_dir, the folder $MINIDP_DATA, the cache, and a download into the cache. A
    folder holds cifar-10-binary.tar.gz, cifar-10-batches-bin/data_batch_1.bin and so on, or those
    .bin files themselves; data_dir may also be the archive. Archives must have the published md5.
    Loose files have no published md5: `notice` then says so, and what is known of the copy.
    `sha256` is of all records in both cases.

    Raises DataError, one line, if data_dir lacks the files or if any are damaged;
    DataUnavailableError if no place has them.
    """
    layout = CIFAR10
    remote = [RemoteFile(layout.archive, "md5", layout.md5)]
    advice = (
        f"put {layout.archive} (from {' or '.join(MIRRORS)}), or the folder {layout.folder} "
        "unpacked from it, into DIR and pass --data-dir DIR or set MINIDP_DATA=DIR"
    )
    place = find(
        layout.title,
        partial(_locate, layout),
        remote,
        MIRRORS,
        "cifar",
        advice,
        data_dir,
        download,
        progress,
    )
    return _read(place, layout)


def load_public(path: StrPath) -> Dataset:
    """A public set in CIFAR-100's record layout, as a Dataset.

    path: a folder, or a tar archive, that holds train.bin and test.bin. The largest fine label of
    the training records gives the number of classes; nominal_size is the number of those records,
    which is public for a public set. Raises DataError if a file is missing or damaged.
    """
    layout = Layout("public", "public", ("train.bin",), "test.bin", 2, None, None)
    path = Path(path)
    if not _holds(path, layout):
        raise DataError(f"{path}: expected a folder or archive that holds train.bin and test.bin")
    return _read(path, layout)


def _locate(layout, folder, partial=False):
    """The archive, or the folder of .bin files, to read; None if there is neither. Missing files
    are reported when they are read.
    """
    places = (folder / layout.folder, folder / layout.archive, folder)
    return next((place for place in places if _holds(place, layout)), None)


def _holds(place, layout):
    return place.is_file() or any((place / name).is_file() for name in (*layout.train, layout.test))


def _read(place, layout):
    archived, names = place.is_file(), (*layout.train, layout.test)
    if archived and layout.md5:
        _check_archive(place, layout)
    files = _unpack(place, names) if archived else _read_folder(place, names)
    _check_differ(place, files)
    parts, whole = [], hashlib.sha256()
    for name in names:
        part = _records(files[name], f"{place}/{name}", layout.label_bytes)
        expected = layout.records if name in layout.train else TEST_RECORDS
        if layout.records is not None and len(part) != expected:
            raise DataError(f"{place}/{name}: expected {expected} records, got {len(part)}")
        parts.append(part)
        whole.update(files[name])
    x_train, y_train = _images(parts[:-1], layout.label_bytes)
    x_test, y_test = _images(parts[-1:], layout.label_bytes)
    classes = layout.classes or max(2, int(y_train.max()) + 1)
    for labels in (y_train, y_test):
        if labels.max() >= classes:
            raise DataError(f"{place}: expected labels from 0 to {classes - 1}")
    verified = archived and layout.md5
    digest = whole.hexdigest()
    unchecked = f"{layout.title} files of unchecked origin: loose files carry no published hash"
    notice = "" if verified else COPIES.get(digest, unchecked if layout.md5 else "")
    return Dataset(
        layout.name,
        x_train,
        y_train,
        x_test,
        y_test,
        classes=classes,
        nominal_size=layout.records * len(layout.train) if layout.records else len(x_train),
        sha256=digest,
        published=bool(verified) or digest in COPIES,
        notice=notice,
    )


def _check_differ(place, files):
    """Raise DataError if two files have the same records: people would count twice, or training
    records would be used as tests.
    """
    seen = {}
    for name, content in files.items():
        other = seen.setdefault(hashlib.sha256(content).digest(), name)
        if other != name:
            raise DataError(
                f"{place}: {other} and {name} hold the same records; replace one by the right file"
            )


def _check_archive(path, layout):
    with open(path, "rb") as file:
        got = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if got != layout.md5:
        raise DataError(
            f"{path}: not the published {layout.archive}: md5 is {got}, expected {layout.md5}; "
            "replace the file, or delete it"
        )


def _read_folder(folder, names):
    try:
        return {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        raise DataError(
            f"{error.filename}: cannot be read ({error.strerror}); expected {', '.join(names)} in "
            "this folder"
        ) from error


def _unpack(archive, names):
    """The named members of a tar archive, in memory; nothing is extracted to the disk."""
    files = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = Path(member.name).name
                if member.isfile() and name in names:
                    files[name] = tar.extractfile(member).read()
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(
            f"{archive}: damaged archive ({' '.join(str(error).split())}); expected an intact tar "
            "archive, compressed or not"
        ) from error
    if missing := [name for name in names if name not in files]:
        raise DataError(
            f"{archive}: expected an archive that holds {', '.join(names)}; {', '.join(missing)} "
            "missing"
        )
    return files


def _records(raw, where, label_bytes):
    """The records of a file, (n, label_bytes + 3072) uint8."""
    size = label_bytes + PIXELS
    if not raw or len(raw) % size:
        raise DataError(
            f"{where}: truncated: expected whole records of {size} bytes, got {len(raw)} bytes"
        )
    return np.frombuffer(raw, np.uint8).reshape(len(raw) // size, size)


def _images(parts, label_bytes):
    """Images (N, 32, 32, 3) and labels (N,) of the records in order; the last label byte counts."""
    records = np.concatenate(parts)
    planes = records[:, label_bytes:].reshape((len(records), CHANNELS, SIDE, SIDE))
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, label_bytes - 1].astype(
        np.int64
    )
