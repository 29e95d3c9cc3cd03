"""The stand-in for CIFAR-10, made of a tiny public set."""

import numpy as np
import pytest
from common.stand_in import CLASSES, GROUPS, stand_in

from minidp.errors import DataError


def test_odd_classes_are_grouped_and_even_ones_left_to_learn_from(public_set):
    assert sorted(sum(GROUPS, ())) == list(range(1, CLASSES, 2)) and {
        len(group) for group in GROUPS
    } == {10}
    private, public = stand_in(public_set(CLASSES))
    assert (private.classes, public.classes, private.nominal_size, public.nominal_size) == (
        10,
        100,
        200,
        200,
    )
    for x, y in ((private.x_train, private.y_train), (private.x_test, private.y_test)):
        assert x.shape[1:] == (32, 32, 3) and all(
            image[0, 0, 0] in GROUPS[label] for image, label in zip(x, y)
        )
    few, _ = stand_in(public_set(CLASSES), 2)
    np.testing.assert_array_equal(
        np.unique(few.x_train[:, 0, 0, 0]), sorted(sum((group[:2] for group in GROUPS), ()))
    )
    for x, y in ((public.x_train, public.y_train), (public.x_test, public.y_test)):
        np.testing.assert_array_equal(x[:, 0, 0, 0], 2 * y)
        np.testing.assert_array_equal(np.unique(y), range(100))


def test_another_set_is_refused(public_set):
    with pytest.raises(DataError, match="expected a public set of 200 classes, got 100"):
        stand_in(public_set(100))
