"""Files of arrays: nothing damaged or crafted is taken, and nothing is unpickled."""

import pickle
import zipfile
from copy import copy

import numpy as np
import pytest

from minidp.errors import CheckpointError, DivergedError
from minidp.run.checkpoint import load_arrays, save_arrays
from tests.support.refused import refused


def test_what_could_not_be_read_again_is_not_written_and_the_file_stays(tmp_path):
    path = tmp_path / "checkpoint.npz"
    save_arrays(path, {"a": np.ones(2)}, {"kind": "checkpoint"})
    before = path.read_bytes()
    for bad in (np.nan, np.inf):
        with pytest.raises(DivergedError, match="expected finite numbers in b"):
            save_arrays(path, {"a": np.ones(2), "b": np.array([0, bad])}, {"kind": "checkpoint"})
    assert path.read_bytes() == before


def huge(file, shape):
    """Write an array file that claims this shape."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    np.savez(file, header='{"format": 1}')
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("W.npy", content)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def listed_twice(file, name):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.npy", bytes(800))
        archive.filelist.append(copy(archive.filelist[-1]))
        archive.filelist[-1].filename = name


HEADER = '{"format": 1}'
REFUSED = {
    # a small file could fill the memory
    "header.npy is compressed": lambda file: np.savez_compressed(file, header=HEADER, W=[0] * 9),
    "arrays larger than the file": lambda file: listed_twice(file, "W.npy"),
    "the same name": lambda file: listed_twice(file, "header.npy"),
    "another kind (": lambda file: huge(file, f"({10**12},)"),
    "damaged, or a file": lambda file: huge(file, f"({10**30},)"),
    "damaged": lambda file: huge(file, "(" * 60),
    "Object arrays cannot be loaded": lambda file: np.savez(
        file, header=HEADER, W=np.array([Harmful()])
    ),
    "expected a .npz file": lambda file: pickle.dump(Harmful(), file),
    "another kind ('header')": lambda file: np.savez(file, W=np.ones(3)),
    "expected format 1, got [1, 2]": lambda file: np.savez(file, header="[1, 2]"),
}


@pytest.mark.parametrize("words, write", REFUSED.items(), ids=REFUSED)
def test_other_files_are_refused_and_nothing_is_unpickled(words, write, tmp_path):
    with open(tmp_path / "c.npz", "wb") as file:
        write(file)
    with refused(CheckpointError, "c.npz", words):
        load_arrays(tmp_path / "c.npz")
