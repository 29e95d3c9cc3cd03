"""MNIST: 60,000 + 10,000 handwritten digits of 28 x 28 pixels (LeCun, Cortes, Burges), verified by
hash; and one call for digits, MNIST or synthetic ones if it is not available.
"""

import hashlib
import os
from collections.abc import Callable, Sequence

import numpy as np

from minidp.util import validate
from minidp.util.atomic import StrPath

from .dataset import Dataset
from .fetch import DataUnavailableError, RemoteFile, find
from .strokes import SIZES, load_strokes

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# sha256 of the decompressed published files, in the order in which Dataset.sha256 concatenates them
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
NOMINAL_SIZE = 60_000


def load(
    dataset: str = "mnist",
    data_dir: StrPath | None = None,
    on_notice: Callable[[str], object] = print,
    sizes: Sequence[int] | None = None,
    progress: bool = True,
) -> Dataset:
    """A Dataset of 28 x 28 digits.

    dataset    "mnist" (load_mnist, never anything else), "strokes" (synthetic digits), or "auto":
               MNIST, and synthetic digits only if no place has it. A damaged file is an error.
    data_dir   a folder with the MNIST files, or None
    on_notice  called with each line that the user must see
    sizes      None for everything, or the public numbers (training, test) of examples to take from
               the front; the first becomes nominal_size
    progress   whether downloading and drawing show a bar on a terminal

    Raises DataError, one line; ParameterError for another name or sizes that the data set does not
    have.

    >>> digits = load("strokes", sizes=(100, 20), on_notice=lambda line: None, progress=False)
    >>> digits.x_train.shape, digits.y_test.shape, digits.nominal_size
    ((100, 28, 28), (20,), 100)
    """
    validate.one_of(("auto", "mnist", "strokes"), dataset=dataset)
    sizes = SIZES if sizes is None else tuple(sizes)
    validate.in_range(1, SIZES[0], train_size=sizes[0])
    validate.in_range(1, SIZES[1], test_size=sizes[1])
    if dataset != "strokes":
        try:
            return load_mnist(data_dir, progress=progress).first(*sizes)
        except DataUnavailableError as error:
            if dataset == "mnist":
                raise DataUnavailableError(
                    f"{error}; or go on with synthetic digits: --dataset strokes"
                ) from error
            on_notice(
                "MNIST is not available: using the synthetic digits instead. Why, and what to do:"
            )
            for line in str(error).split("; "):
                on_notice(f"  {line}")
    found = load_strokes(sizes, on_notice=on_notice, progress=progress)
    on_notice(found.notice)
    return found


def load_mnist(data_dir: StrPath | None = None, progress: bool = True) -> Dataset:
    """MNIST as a Dataset, from the first place that has it.

    In order: data_dir, the folder $MINIDP_DATA, the cache, a download into the
    cache. A folder holds mnist/train-images-idx3-ubyte.gz and so on, or those files
    themselves, gzipped or not.

    Raises DataError, one line, if data_dir lacks a file, or if a file is damaged or has not the
    published contents; DataUnavailableError if no place has the files.
    """
    files = [
        RemoteFile(f"{name}.gz", "sha256", digest, gunzip=True) for name, digest in FILES.items()
    ]
    paths = find("mnist", _locate, files, MIRRORS, data_dir, progress)
    contents = [file.read(path) for file, path in zip(files, paths)]
    # IDX files: a magic number and the sizes of all axes, four bytes each, before the values
    x_train, x_test = (
        np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28) for raw in contents[::2]
    )
    y_train, y_test = (
        np.frombuffer(raw, np.uint8, offset=8).astype(np.int64) for raw in contents[1::2]
    )
    return Dataset(
        "mnist",
        x_train,
        y_train,
        x_test,
        y_test,
        classes=10,
        nominal_size=NOMINAL_SIZE,
        sha256=hashlib.sha256(b"".join(contents)).hexdigest(),
        published=True,
    )


def _locate(folder):
    """The paths of the four files, all in folder/mnist or all in folder; None if neither has
    them.
    """
    for place in (folder / "mnist", folder):
        forms = [(place / name, place / f"{name}.gz") for name in FILES]
        found = [next(filter(os.path.isfile, paths), None) for paths in forms]
        if None not in found:
            return found
    return None
