"""Checkpoints: going on equals never having stopped, and nothing damaged is taken."""

import json
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from minidp.errors import CheckpointError, DivergedError
from minidp.run import (
    load_checkpoint,
    restore_training,
    save_checkpoint,
)
from minidp.run.checkpoint import load_arrays, save_arrays
from minidp.streams import Streams
from minidp.train import OPTIMIZERS, Adam
from tests.support.scripts import ROOT
from tests.support.training import SAMPLERS, make_data, make_trainer, values
from tests.train.test_trainer import assert_same
from tests.train.test_trainer_stopping import after

CONFIG = {"lot_size": 8, "seed": 1}
STEPS = 14


def save(path, trainer, record, config=CONFIG):
    save_checkpoint(
        path,
        trainer.network,
        trainer.optimizer,
        record.ledger,
        record.progress,
        config,
        [{"epoch": 1}],
        {"seconds": 2.5},
    )


def resume(path, trainer, config=CONFIG):
    """The loaded progress, with everything else put in its place."""
    arrays, header = load_checkpoint(path, config)
    restore_training(path, arrays, header, trainer.network, trainer.optimizer)
    return header


def some_run(path, seed=1, optimizer=None):
    trainer = make_trainer(optimizer=optimizer or Adam(0.05))
    save(path, trainer, trainer.run(*make_data(), Streams(seed), should_stop=after(3)))
    return trainer


def edit(path, change):
    """Write the checkpoint again after change(arrays, header)."""
    arrays, header = load_arrays(path)
    change(arrays, header)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def test_what_could_not_be_read_again_is_not_written_and_the_file_stays(tmp_path):
    path = tmp_path / "checkpoint.npz"
    save_arrays(path, {"a": np.ones(2)}, {"kind": "checkpoint"})
    before = path.read_bytes()
    for bad in (np.nan, np.inf):
        with pytest.raises(DivergedError, match="expected finite numbers in b"):
            save_arrays(path, {"a": np.ones(2), "b": np.array([0, bad])}, {"kind": "checkpoint"})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "sampler, optimizer, block_steps, dtype",
    [
        (sampler, optimizer, (1, 5, 100)[(i + j) % 3], ("float64", "float32")[(i // 2 + j) % 2])
        for i, sampler in enumerate(SAMPLERS)
        for j, optimizer in enumerate(OPTIMIZERS)
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(
    sampler, optimizer, block_steps, dtype, tmp_path
):
    def make():
        return make_trainer(
            optimizer=OPTIMIZERS[optimizer](0.05), sampler=sampler, steps=STEPS, dtype=dtype
        )

    data, path = make_data(dtype=dtype), tmp_path / "checkpoint.npz"
    whole, part, again = make(), make(), make()
    expected = whole.run(*data, Streams(1), block_steps=block_steps)
    record = part.run(*data, Streams(1), block_steps=block_steps, should_stop=after(3))
    assert record.stopped == "interrupted" and (block_steps == 1) == (
        record.progress.charged == record.progress.step
    )
    save(path, part, record)
    header = resume(path, again)
    assert header["progress"] == record.progress and header["ledger"] == record.ledger
    again.ledger = header["ledger"]
    final = again.run(*data, Streams(1), progress=header["progress"], block_steps=block_steps)
    assert_same(values(whole.network), values(again.network))
    assert final.ledger == expected.ledger and final.progress == expected.progress
    assert whole.optimizer.slots.keys() == again.optimizer.slots.keys()
    for name, slot in whole.optimizer.slots.items():
        assert_same(slot, again.optimizer.slots[name])


@pytest.mark.parametrize("seed", [None, 1])
def test_a_checkpoint_holds_nothing_of_the_streams(seed, tmp_path):
    path, trainer, streams = tmp_path / "c.npz", make_trainer(), Streams(seed)
    save(path, trainer, trainer.run(*make_data(), streams))
    arrays, header = load_arrays(path)
    assert set(header) == {"format", "kind", "config", "extra", "history", "ledger", "progress"}
    assert not any(str(word) in json.dumps(header) for word in streams.noise._key.words().tolist())
    assert all(name.startswith(("network/", "optimizer/")) for name in arrays)
    assert resume(path, make_trainer())["progress"].step == 10


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, h: a.pop("network/dense1.W"), "network/dense1.W is missing"),
        (
            lambda a, h: a.update({"network/dense9.W": np.ones(2)}),
            "network/dense9.W is not expected",
        ),
        (
            lambda a, h: a.update({"optimizer/square/dense2.b": np.ones(1)}),
            r"expected optimizer/square/dense2.b of shape \(3,\), got \(1,\)",
        ),
        (
            lambda a, h: a["network/dense2.b"].fill(np.nan),
            "expected finite floating-point numbers in network/dense2.b",
        ),
        (lambda a, h: h.update(ledger={"format": 1}), "damaged"),
        (
            lambda a, h: h.update(progress=[5, 3]),
            "expected charged=3 to be an integer of at least 5",
        ),
        (lambda a, h: h.update(kind="model"), "expected a checkpoint, got a model"),
        (lambda a, h: h.update(format=2), "expected format 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(change, message, tmp_path):
    path = tmp_path / "c.npz"
    some_run(path)
    edit(path, change)
    again = make_trainer(optimizer=Adam(0.05))
    before = values(again.network)
    with pytest.raises(CheckpointError, match=message):
        resume(path, again)
    assert_same(before, values(again.network))  # checked before anything was changed


def test_a_checkpoint_of_more_precision_is_refused(tmp_path):
    some_run(tmp_path / "c.npz")
    with pytest.raises(
        CheckpointError, match="expected network/dense1.W of dtype float32, got float64"
    ):
        resume(tmp_path / "c.npz", make_trainer(optimizer=Adam(0.05), dtype="float32"))


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


BOMB = """
import resource, sys
from minidp.errors import CheckpointError
from minidp.run import load_arrays
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_arrays(sys.argv[1])
except CheckpointError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in KiB")
def test_a_small_compressed_file_cannot_fill_the_memory(tmp_path):
    path = tmp_path / "c.npz"
    np.savez_compressed(path, header='{"format": 1}', bomb=np.zeros(2**25))
    command = [sys.executable, "-c", BOMB, path]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout
    grown, line = found.split(" ", 1)
    assert int(grown) < 2**16 and ".npy is compressed" in line and line.count("\n") == 1  # KiB


def test_arrays_that_claim_more_than_the_file_holds_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("header.npy", bytes(800))
        archive.filelist.append(archive.filelist[-1])
    with pytest.raises(CheckpointError, match=r"c.npz: .*\(arrays larger than the file"):
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
        lambda file: np.savez(file, header="[" * 100_000),
    ],
    ids=range(8),
)
def test_other_files_are_refused_and_nothing_is_unpickled(write, tmp_path):
    path = tmp_path / "c.npz"
    with open(path, "wb") as file:
        write(file)
    with pytest.raises(CheckpointError, match="c.npz"):
        load_arrays(path)
