import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from datasets import cifar
from datasets.cifar import load_cifar10, load_public
from minidp.errors import DataError
from tests.support.refused import refused


def records(rng, n, classes, label_bytes):
    rows = rng.integers(0, 256, (n, label_bytes + 3072), dtype=np.uint8)
    rows[:, label_bytes - 1] = np.arange(n) % classes
    return rows


@pytest.fixture
def tiny10(monkeypatch, cache, rng):
    """CIFAR-10's files with four records each, by name, and the loader set to take their archive as
    published.
    """
    files = {name: records(rng, 4, 10, 1).tobytes() for name in cifar.FILES}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, raw in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))
    archive = buffer.getvalue()
    published = replace(cifar.ARCHIVE, digest=hashlib.md5(archive).hexdigest())
    monkeypatch.setattr(cifar, "ARCHIVE", published)
    monkeypatch.setattr(cifar, "RECORDS", 4)
    monkeypatch.setattr(cifar, "MIRRORS", ())
    return files, archive


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return folder


def check(found, files, verified):
    assert found.name == "cifar10" and found.classes == 10 and found.nominal_size == 20
    parts = [np.frombuffer(raw, np.uint8).reshape(4, 3073) for raw in files.values()]
    for images, labels, rows in (
        (found.x_train, found.y_train, np.concatenate(parts[:5])),
        (found.x_test, found.y_test, parts[5]),
    ):
        np.testing.assert_array_equal(labels, rows[:, 0])
        np.testing.assert_array_equal(
            images, rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        )
    assert found.sha256 == hashlib.sha256(b"".join(files.values())).hexdigest()
    assert found.published == verified
    assert found.notice == "" if verified else "unchecked origin" in found.notice


@pytest.mark.parametrize("inner", ["", "cifar-10-batches-bin"])
def test_folder(tmp_path, tiny10, inner):
    files, _ = tiny10
    write(tmp_path / "d" / inner, files)
    check(load_cifar10(tmp_path / "d"), files, verified=False)


@pytest.mark.parametrize("itself", [True, False])
def test_archive(tmp_path, tiny10, itself):
    files, archive = tiny10
    path = write(tmp_path / "d", {"cifar-10-binary.tar.gz": archive}) / "cifar-10-binary.tar.gz"
    check(load_cifar10(path if itself else path.parent), files, verified=True)
    assert list(path.parent.iterdir()) == [path]
    path.write_bytes(archive + b"\x00")
    with refused(DataError, f"expected {cifar.ARCHIVE.digest}; replace", start=f"{path}: "):
        load_cifar10(path)


@pytest.mark.parametrize(
    "name, change, words",
    [
        ("data_batch_3.bin", lambda raw: raw[:-1], "/data_batch_3.bin: expected 4 records"),
        ("data_batch_1.bin", lambda raw: b"\x0a" + raw[1:], "expected labels from 0 to 9"),
        ("test_batch.bin", None, "test_batch.bin: cannot be read"),
    ],
)
def test_damaged_files(tmp_path, tiny10, name, change, words):
    write(tmp_path, tiny10[0])
    (tmp_path / name).unlink()
    if change:
        write(tmp_path, {name: change(tiny10[0][name])})
    with pytest.raises(DataError, match=words):
        load_cifar10(tmp_path)


def test_the_same_records_in_two_files_are_refused(tmp_path, tiny10):
    write(tmp_path, {**tiny10[0], "test_batch.bin": tiny10[0]["data_batch_1.bin"]})
    with pytest.raises(DataError, match="data_batch_1.bin and test_batch.bin hold the same"):
        load_cifar10(tmp_path)


def test_public_set_of_256_classes(tmp_path, rng):
    train, test = records(rng, 300, 256, 2), records(rng, 20, 256, 2)
    found = load_public(write(tmp_path, {"train.bin": train.tobytes(), "test.bin": test.tobytes()}))
    assert (found.name, found.notice) == ("public", "")
    assert (found.classes, found.nominal_size) == (256, 300)
    np.testing.assert_array_equal(found.y_train, train[:, 1])
    np.testing.assert_array_equal(found.y_test, test[:, 1])
    with pytest.raises(DataError, match="train.bin: truncated: expected whole records of 3074"):
        load_public(write(tmp_path, {"train.bin": train.tobytes()[1:]}))
