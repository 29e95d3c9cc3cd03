import os

import pytest
from minidp.run.picture import save_curves

CURVES = {
    "all": dict(epochs=[1, 2, 3], test_accuracy=[0.8, 0.9, 0.92], train_accuracy=[0.79, 0.9, 0.91],
                delta=[0.0, 1e-9, 1e-6], epsilon=2.0, title="MNIST", notice="drawn digits, not MNIST " * 5),
    "without privacy": dict(epochs=[1, 2], test_accuracy=[0.8, 0.9]),
    "unknown delta": dict(epochs=[1, 2], test_accuracy=[0.8, 0.9], delta=[None, float("inf")], epsilon=2.0),
    "nothing yet": dict(epochs=[], test_accuracy=[], train_accuracy=[], delta=[], epsilon=0.5),
}


@pytest.mark.parametrize("curves", CURVES.values(), ids=CURVES.keys())
def test_a_png_is_written(tmp_path, drawn, curves):
    path = tmp_path / "curves.png"
    save_curves(path, **curves)
    assert path.read_bytes().startswith(b"\x89PNG") and os.listdir(tmp_path) == ["curves.png"]
    assert [len(figure.axes) for figure in drawn] == [1 if {0.0, None, float("inf")} >= set(curves.get("delta", [])) else 2]
