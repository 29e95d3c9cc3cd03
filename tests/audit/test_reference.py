"""The slow truths that no check compares with a second derivation: those of layers meet the layers themselves."""
import numpy as np

from minidp.audit import reference
from minidp.mechanism import ClipGroup


def test_clipped_sum_by_hand():
    # per layer: a has norms 5 and 1, clipped to 2; b has norms 12 and 0, clipped to 3
    keys = [("a", "W"), ("b", "W")]
    grads = {keys[0]: np.array([[3.0, 4.0], [0.0, 1.0]]), keys[1]: np.array([[12.0], [0.0]])}
    layers = [ClipGroup("a", keys[:1], 2.0, 0.0), ClipGroup("b", keys[1:], 3.0, 0.0)]
    got, margin = reference.clipped_sum(grads, layers), 1 + 2.0**-20
    np.testing.assert_allclose(got[keys[0]], [1.2 / margin, 1.6 / margin + 1], rtol=1e-15)
    np.testing.assert_allclose(got[keys[1]], [3.0 / margin], rtol=1e-15)
    flat = reference.clipped_sum(grads, [ClipGroup("all", keys, 6.5, 0.0)])  # norms 13 and 1
    np.testing.assert_allclose(flat[keys[0]], [1.5 / margin, 2 / margin + 1], rtol=1e-15)
    np.testing.assert_allclose(flat[keys[1]], [6.0 / margin], rtol=1e-15)
