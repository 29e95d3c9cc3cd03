import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from minidp.data import cifar, load_cifar10, load_public
from minidp.errors import DataError
from tests.support.refused import refused


def records(rng, n, classes, label_bytes):
    rows = rng.integers(0, 256, (n, label_bytes + 3072), dtype=np.uint8)
    rows[:, label_bytes - 1] = np.arange(n) % classes
    return rows


def tar_of(files, mode="w:gz", folder="some-folder/"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, raw in files.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))
    return buffer.getvalue()


@pytest.fixture
def tiny10(monkeypatch, cache, rng):
    """CIFAR-10's files with four records each, by name, and the loader set to take their archive as
    published.
    """
    names = (*cifar.CIFAR10.train, cifar.CIFAR10.test)
    files = {name: records(rng, 4, 10, 1).tobytes() for name in names}
    archive = tar_of({"readme.html": b"<p>", **files}, folder="cifar-10-batches-bin/")
    published = replace(cifar.CIFAR10, records=4, md5=hashlib.md5(archive).hexdigest())
    monkeypatch.setattr(cifar, "CIFAR10", published)
    monkeypatch.setattr(cifar, "TEST_RECORDS", 4)
    monkeypatch.setattr(cifar, "MIRRORS", ())
    return files, archive


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return folder


def check(found, files, verified):
    assert found.name == "cifar10" and found.classes == 10 and found.nominal_size == 20
    assert found.x_train.shape == (20, 32, 32, 3) and found.x_test.shape == (4, 32, 32, 3)
    parts = [np.frombuffer(raw, np.uint8).reshape(4, 3073) for raw in files.values()]
    for images, labels, rows in (
        (found.x_train, found.y_train, np.concatenate(parts[:5])),
        (found.x_test, found.y_test, parts[5]),
    ):
        assert images.dtype == np.uint8 and labels.dtype == np.int64
        np.testing.assert_array_equal(labels, rows[:, 0])
        np.testing.assert_array_equal(
            images, rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        )
    assert found.sha256 == hashlib.sha256(b"".join(files.values())).hexdigest()
    assert found.published == verified
    assert found.notice == "" if verified else "unchecked origin" in found.notice


def test_the_same_records_in_two_files_are_refused(tmp_path, tiny10, copied="test_batch.bin"):
    write(tmp_path, {**tiny10[0], copied: tiny10[0]["data_batch_1.bin"]})
    with pytest.raises(DataError, match=f"data_batch_1.bin and {copied} hold the same records"):
        load_cifar10(tmp_path)


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


def change(name, raw):
    return lambda files: {**files, name: raw(files[name])}


@pytest.mark.parametrize(
    "damage, words",
    [
        (
            change("data_batch_3.bin", lambda raw: raw[:-1]),
            "data_batch_3.bin: truncated: expected whole records of 3073",
        ),
        (
            change("data_batch_1.bin", lambda raw: raw * 2),
            "data_batch_1.bin: expected 4 records, got 8",
        ),
        (change("data_batch_1.bin", lambda raw: b"\x0a" + raw[1:]), "expected labels from 0 to 9"),
        (
            lambda files: {name: files[name] for name in list(files)[1:]},
            "data_batch_1.bin: cannot be read",
        ),
    ],
)
def test_damaged_files(tmp_path, tiny10, damage, words):
    with refused(DataError, words, start=str(tmp_path)):
        load_cifar10(write(tmp_path, damage(tiny10[0])))


def test_an_archive_with_another_hash(tmp_path, tiny10):
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(tiny10[1] + b"\x00")
    got = hashlib.md5(path.read_bytes()).hexdigest()
    with refused(DataError, f"md5 is {got}, expected {cifar.CIFAR10.md5}", start=f"{path}: "):
        load_cifar10(tmp_path)


@pytest.mark.parametrize("mode", ["folder", "w", "w:xz"])
def test_public_set_of_256_classes(tmp_path, rng, mode):
    train, test = records(rng, 300, 256, 2), records(rng, 20, 256, 2)
    files = {"train.bin": train.tobytes(), "test.bin": test.tobytes()}
    if mode == "folder":
        path = write(tmp_path / "p", files)
    else:
        path = tmp_path / "p.tar"
        path.write_bytes(tar_of(files, mode))
    found = load_public(path)
    assert (found.name, found.notice) == ("public", "")
    assert (found.classes, found.nominal_size) == (256, 300)
    np.testing.assert_array_equal(found.y_train, train[:, 1])
    np.testing.assert_array_equal(found.y_test, test[:, 1])


@pytest.mark.parametrize(
    "contents, words",
    [
        (b"no archive", "damaged archive"),
        (tar_of({"train.bin": bytes(3074 * 40)})[:-30], "damaged archive"),
        (tar_of({"train.bin": bytes(3074)}), "test.bin missing"),
    ],
    ids=["none", "cut", "half"],
)
def test_damaged_public_archive(tmp_path, contents, words):
    path = tmp_path / "p.tar"
    path.write_bytes(contents)
    with refused(DataError, words, start=f"{path}: "):
        load_public(path)


def test_links_and_pickles_in_an_archive_are_not_read(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("train.bin", "test.bin"):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(member)
    (tmp_path / "p.tar").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="train.bin, test.bin missing"):
        load_public(tmp_path / "p.tar")
