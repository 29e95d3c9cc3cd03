"""Data larger than memory."""

import re
from pathlib import Path

import numpy as np
import pytest

import minidp
from tests.support.fitting import fitted


def resident():
    """Bytes of this process in memory that belong to no file."""
    (found,) = re.findall(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024 * int(found)


@pytest.mark.slow
def test_twenty_gigabytes_on_disk_train_in_one_of_memory(tmp_path, monkeypatch):
    """A sparse file of 20 GiB, its pages read as any others."""
    rows, seen = 20 * 2**30 // 3072, [resident()]
    images = np.memmap(tmp_path / "x.bin", "uint8", "w+", shape=(rows, 32, 32, 3))
    y = np.arange(rows, dtype="int8") % 3
    release = minidp.mechanism.Sanitizer.release

    def watched(*args):
        seen.append(resident())
        return release(*args)

    monkeypatch.setattr(minidp.mechanism.Sanitizer, "release", watched)
    more = {"classes": [0, 1, 2], "dataset_size": rows, "lot_size": 4000, "steps": 20}
    fitted(images, y, delta=1e-8, bounds=(0, 255), hidden=(256,), **more)
    assert len(seen) > 20 and max(seen) - seen[0] < 2**30
