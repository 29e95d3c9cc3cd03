"""CIFAR-10, and CIFAR-100 and other public sets of 32 x 32 colour images in their *binary* record
layout; never pickles.

A record is the label (CIFAR-100: a coarse, then a fine label), one byte each, and 3,072 bytes: the
red, the green and the blue plane, row by row. Source: Krizhevsky,
https://www.cs.toronto.edu/~kriz/cifar.html.
"""

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np

from minidp.errors import DataError
from minidp.util.atomic import StrPath

from .dataset import Dataset
from .fetch import RemoteFile, find, read_bytes

MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE * CHANNELS
FOLDER = "cifar-10-batches-bin"
ARCHIVE = RemoteFile("cifar-10-binary.tar.gz", "md5", "c32a1d4ab5d03f1284b67883e8d87530")
FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
RECORDS = 10_000  # in each of these
UNCHECKED = "CIFAR-10 files of unchecked origin: loose files carry no published hash"
# sha256 of all records in order, of known files that are not the published ones
COPIES = {
    "f92f7dac137a6595509ca53c72ccc15c9e37ad618fca469e205b031cdb1cbb2b": "CIFAR-10 from a JPEG copy "
    "(quality 75): slightly lossy, not the published pixels",
    "00264b246f43f0432df419ee12cdca9adb2bbe66e881d10a31ddc79d555341bd": "public set: Tiny "
    "ImageNet's 200 classes at 32 x 32, from a JPEG copy, in place of CIFAR-100",
}


def load_cifar10(data_dir: StrPath | None = None, progress: bool = True) -> Dataset:
    """CIFAR-10 as a Dataset: x (N, 32, 32, 3) uint8, y in 0..9; 50,000 + 10,000 images.

    The places are data_dir, the folder $MINIDP_DATA, the cache, and a download into the cache. A
    folder holds cifar-10-binary.tar.gz, cifar-10-batches-bin/data_batch_1.bin and so on, or those
    .bin files themselves; data_dir may also be the archive. Archives must have the published md5.
    Loose files have no published md5: `notice` then says so, and what is known of the copy.
    `sha256` is of all records in both cases.

    Raises DataError, one line, if data_dir lacks the files or if any are damaged;
    DataUnavailableError if no place has them.
    """
    place = find("cifar", _locate, [ARCHIVE], MIRRORS, data_dir, progress)
    archived = place.is_file()
    files = _unpacked(ARCHIVE.read(place)) if archived else _files_of(place, FILES)
    for name, raw in files.items():
        if len(raw) != RECORDS * (1 + PIXELS):
            raise DataError(
                f"{place}/{name}: expected {RECORDS} records of {1 + PIXELS} bytes, got "
                f"{len(raw)} bytes"
            )
    return _dataset("cifar10", files, 1, 10, "" if archived else UNCHECKED, archived)


def load_public(path: StrPath) -> Dataset:
    """A public set in CIFAR-100's record layout, as a Dataset.

    path: a folder that holds train.bin and test.bin. The largest fine label of the training records
    gives the number of classes; nominal_size is the number of those records, which is public for a
    public set. Raises DataError if a file is missing or damaged.
    """
    files = _files_of(Path(path), ("train.bin", "test.bin"))
    for name, raw in files.items():
        if not raw or len(raw) % (2 + PIXELS):
            raise DataError(
                f"{path}/{name}: truncated: expected whole records of {2 + PIXELS} bytes, got "
                f"{len(raw)} bytes"
            )
    return _dataset("public", files, 2)


def _locate(folder):
    """The archive, or the folder of .bin files, to read; None if there is neither. Missing files
    are reported when they are read.
    """
    for place in (folder / FOLDER, folder / ARCHIVE.name, folder):
        if place.is_file() or any((place / name).is_file() for name in FILES):
            return place
    return None


def _unpacked(archive):
    """The records of the published archive; nothing is extracted to the disk."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {name: tar.extractfile(f"{FOLDER}/{name}").read() for name in FILES}


def _files_of(folder, names):
    """{name: bytes}. Raises DataError if two files have the same records: people would count twice,
    or training records would be used as tests.
    """
    files, seen = {}, {}
    for name in names:
        files[name] = read_bytes(folder / name)
        other = seen.setdefault(hashlib.sha256(files[name]).digest(), name)
        if other != name:
            raise DataError(
                f"{folder}: {other} and {name} hold the same records; replace one by the right file"
            )
    return files


def _dataset(name, files, label_bytes, classes=None, notice="", published=False):
    """The Dataset of records, the last file's for testing; the last byte of a label counts."""
    parts = [
        np.frombuffer(raw, np.uint8).reshape(-1, label_bytes + PIXELS) for raw in files.values()
    ]
    arrays = []
    for records in (np.concatenate(parts[:-1]), parts[-1]):
        planes = records[:, label_bytes:].reshape((len(records), CHANNELS, SIDE, SIDE))
        arrays.append(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)))
        arrays.append(records[:, label_bytes - 1].astype(np.int64))
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()
    return Dataset(
        name,
        *arrays,
        classes=classes or max(2, int(arrays[1].max()) + 1),
        nominal_size=len(arrays[0]),
        sha256=digest,
        published=published or digest in COPIES,
        notice=COPIES.get(digest, notice),
    )
