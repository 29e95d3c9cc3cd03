"""Files of arrays: nothing damaged or crafted is taken, and nothing is unpickled."""

import pickle
import zipfile
from copy import copy

import numpy as np
import pytest

from minidp.errors import CheckpointError, DivergedError
from minidp.run.checkpoint import load_arrays, save_arrays


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


def test_compressed_arrays_are_refused_so_that_a_small_file_cannot_fill_the_memory(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", header='{"format": 1}', bomb=np.zeros(9))
    with pytest.raises(CheckpointError, match="header.npy is compressed"):
        load_arrays(tmp_path / "c.npz")


@pytest.mark.parametrize(
    "name, why", [("W.npy", "arrays larger than the file"), ("header.npy", "the same name")]
)
def test_a_member_that_is_listed_twice_is_refused(name, why, tmp_path):
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("header.npy", bytes(800))
        archive.filelist.append(copy(archive.filelist[-1]))
        archive.filelist[-1].filename = name
    with pytest.raises(CheckpointError, match=rf"c.npz: .*{why}"):
        load_arrays(tmp_path / "c.npz")


@pytest.mark.parametrize(
    "write",
    [
        lambda file: huge(file, f"({10**12},)"),
        lambda file: huge(file, f"({10**30},)"),
        lambda file: huge(file, "(" * 60),
        lambda file: np.savez(file, header='{"format": 1}', W=np.array([Harmful()], dtype=object)),
        lambda file: pickle.dump(Harmful(), file),
        lambda file: np.savez(file, W=np.ones(3)),
        lambda file: np.savez(file, header="[1, 2]"),
    ],
    ids=range(7),
)
def test_other_files_are_refused_and_nothing_is_unpickled(write, tmp_path):
    path = tmp_path / "c.npz"
    with open(path, "wb") as file:
        write(file)
    with pytest.raises(CheckpointError, match="c.npz"):
        load_arrays(path)
