"""Features learned from drawn digits, and a private head on them."""
import numpy as np
import strokes_features

from minidp import load_model
from minidp.data import strokes


def test_smoke_trains_a_network_on_drawn_digits(run_script, tmp_path):
    done = run_script("strokes_features.py", "--smoke", "--out", "made.npz", check=0)
    model = load_model(tmp_path / "made.npz")
    assert "1,000 drawn digits" in done.stdout and model.about["accuracy on drawn digits"] > 0.3
    assert model.about["command"] == "python experiments/strokes_features.py --out made.npz --smoke"
    images, labels = strokes_features.draw(1, 4)
    found = model.network.predict(strokes_features.to_float(images)).argmax(axis=1)
    assert np.mean(found == labels) == model.about["accuracy on drawn digits"]


def test_ways_of_writing_can_be_held_out():
    whole, (images, labels) = strokes.draw(2, 0), strokes.draw(2, 0, held_out=1)
    same = (images == whole[0]).all(axis=(1, 2))
    np.testing.assert_array_equal(labels, whole[1])
    assert 0.2 < same.mean() < 0.6  # two ways become one, three become two
    np.testing.assert_array_equal(strokes.draw(2, 0, held_out=9)[0], strokes.draw(2, 0, held_out=2)[0])
