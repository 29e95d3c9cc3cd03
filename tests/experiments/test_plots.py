import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from common.plots import save_curves

ROOT = Path(__file__).resolve().parents[2]

CURVES = {
    "all": dict(epochs=[1, 2, 3], test_accuracy=[0.8, 0.9, 0.92], train_accuracy=[0.79, 0.9, 0.91],
                delta=[0.0, 1e-9, 1e-6], epsilon=2.0, title="MNIST"),
    "without privacy": dict(epochs=[1, 2], test_accuracy=[0.8, 0.9]),
    "delta 0 throughout": dict(epochs=[1, 2], test_accuracy=[0.8, 0.9], delta=[0.0, 0.0], epsilon=2.0),
    "unknown delta": dict(epochs=[1, 2], test_accuracy=[0.8, 0.9], delta=[None, float("inf")], epsilon=2.0),
    "one point": dict(epochs=[1], test_accuracy=[0.8], delta=[1e-5], epsilon=0.5),
    "nothing yet": dict(epochs=[], test_accuracy=[], train_accuracy=[], delta=[], epsilon=0.5),
}


@pytest.mark.parametrize("curves", CURVES.values(), ids=CURVES.keys())
def test_a_png_is_written(tmp_path, curves):
    path = tmp_path / "curves.png"
    save_curves(path, **curves)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (768, 504)  # 6.4 x 4.2 inches at 120 dpi
    assert os.listdir(tmp_path) == ["curves.png"]


def test_failure_keeps_the_old_picture(tmp_path):
    path = tmp_path / "curves.png"
    path.write_bytes(b"old")
    with pytest.raises(ValueError):
        save_curves(path, [1, 2], [0.5])
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["curves.png"]


def test_matplotlib_loads_when_a_picture_is_drawn():
    script = "import sys; import common.plots; print('matplotlib' in sys.modules)"
    path = os.pathsep.join([str(ROOT), str(ROOT / "experiments")])
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr
