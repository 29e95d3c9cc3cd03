from dataclasses import replace

import numpy as np
import pytest

from datasets.dataset import Dataset
from minidp.errors import DataError, ShapeError

IMAGES = np.zeros((3, 2, 2), np.uint8)
TOY = Dataset("toy", IMAGES, np.arange(3), IMAGES[:1], np.array([2]), classes=3, nominal_size=3)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"y_train": np.array([0, 1])}, "toy train: expected the same number"),
        ({"y_test": np.array([-1])}, "toy test: expected labels from 0 to 2"),
    ],
)
def test_parts_that_do_not_fit(change, words):
    with pytest.raises((DataError, ShapeError), match=words):
        replace(TOY, **change)
