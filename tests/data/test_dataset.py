from dataclasses import replace

import numpy as np
import pytest

from minidp.data import Dataset
from minidp.errors import DataError


@pytest.fixture
def dataset():
    return Dataset("toy", np.zeros((3, 2, 2), np.uint8), np.array([0, 1, 2]), np.zeros((1, 2, 2), np.uint8),
                   np.array([2]), classes=3, nominal_size=3)


@pytest.mark.parametrize("change, words", [
    ({"y_train": np.array([0, 1])}, "toy train: expected uint8 images and one int64 label for each"),
    ({"x_test": np.zeros((1, 2, 2))}, "toy test: expected uint8 images"),
    ({"y_test": np.array([-1])}, "toy test: expected labels from 0 to 2"),
    ({"x_test": np.zeros((1, 2, 3), np.uint8)}, "expected test images of shape .2, 2."),
])
def test_parts_that_do_not_fit(dataset, change, words):
    with pytest.raises(DataError, match=words):
        replace(dataset, **change)
