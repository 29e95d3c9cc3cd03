"""A user's own arrays: what is taken, what is refused and why, and that nothing large is converted
at once.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from minidp.backend import Backend
from minidp.data.arrays import Inputs, refuse_bad_rows, rows_not_finite
from minidp.data.labels import as_target_bounds, bounded_targets, class_labels
from minidp.errors import DataError, DtypeError, ParameterError, ShapeError


class Stored:
    """Rows on disk as HDF5 gives them: indexing in rising order only, no `take`."""

    dtype = np.dtype("uint8")

    def __init__(self, array):
        self.array, self.shape, self.most = array, array.shape, 0

    def __getitem__(self, rows):
        found = self.array[rows]
        self.most = max(self.most, len(found))
        return found


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.ndarray.tolist,
        Stored,
        lambda x: SimpleNamespace(to_numpy=lambda: x),
        lambda x: x.astype("O"),
    ],
    ids=["array", "list", "HDF5", "frame", "objects"],
)
def test_rows_of_any_source_come_converted(make):
    x = np.arange(60, dtype="uint8").reshape(20, 3)
    inputs = Inputs(make(x), Backend.numpy(), head=lambda rows: rows / 2)
    assert inputs.shape == (20, 3) and inputs.ndim == 2
    for got, rows in (
        (inputs.take(np.array([1, 5, 19])), [1, 5, 19]),
        (inputs[4:9], slice(4, 9)),
        (inputs.take(np.array([], int)), []),
    ):
        assert got.dtype == np.float32 and (got == x[rows].astype("float32") / 2).all()


@pytest.mark.parametrize(
    "x, error, words",
    [
        ((row for row in [[1.0]]), ParameterError, "drawn at random from all rows"),
        ([1.0, 2.0], ShapeError, r"x.reshape\(-1, 1\)"),
        ([[1.0], [2.0, 3.0]], ShapeError, "rows of one length"),
        (np.array([["a"]]), DtypeError, "real numbers"),
        (np.array([[1j]]), ParameterError, "Complex data not supported"),
        (np.array([[object()]]), DtypeError, "real numbers"),
        (np.ma.masked_array([[1.0]], [[True]]), DtypeError, "x.filled"),
        (7, ParameterError, "got int"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_with_the_reason(x, error, words):
    with pytest.raises(error, match=words):
        Inputs(x, Backend.numpy())


@pytest.mark.parametrize(
    "y, classes",
    [
        ([3, 1, 3, 7], [1, 3, 7]),
        (["b", "a", "b", "c"], ["a", "b", "c"]),
        (np.array(["b", "a", "b", "c"], "O"), ["a", "b", "c"]),
        ([[3], [1], [3], [7]], [1, 3, 7]),
        ([True, False, True, True], [False, True]),
    ],
)
def test_labels_of_any_kind_become_places_among_the_classes(y, classes):
    labels, found = class_labels(y)
    assert found.tolist() == classes and labels.dtype == np.int64
    assert found[labels].tolist() == np.ravel(y).tolist()
    assert class_labels(y, classes[::-1])[0].tolist() == labels.tolist()
    assert class_labels([1.0, 0.0, 7.0], [0, 1])[0].tolist() == [1, 0, -1]


def test_a_label_that_is_missing_is_minus_one_and_no_class():
    assert class_labels([1, 2, 9, 0], [1, 2])[0].tolist() == [0, 1, -1, -1]
    for y, classes in (
        (np.array(["a", None, "b"], "O"), ["a", "b"]),
        (np.array(["a", np.nan, "b"], "O"), ["a", "b"]),
        (np.array([1, None, 2], "O"), [1, 2]),
        (np.array([1.0, np.nan, 2.0]), [1, 2]),
    ):
        labels, found = class_labels(y)
        assert labels.tolist() == [0, -1, 1] and found.tolist() == classes


@pytest.mark.parametrize(
    "y, classes, words",
    [
        ([0.0, 1.5, np.nan], None, "continuous.*1 of 3 rows have no label.*target_bounds="),
        ([0.0, 1.0, np.inf], None, "continuous"),
        (np.arange(11.0), None, "continuous"),
        (np.array([1, 1, None], "O"), None, "got 1 class .1 of 3 rows have no label"),
        ([1, 1], None, "from 2 to"),
        ([1, 2], ["a", "b"], "like the classes"),
        (np.zeros((3, 2)), None, "one label or target for each row"),
        (np.array([1, "a"], "O"), None, "of one kind"),
    ],
)
def test_labels_that_are_none_are_refused(y, classes, words):
    with pytest.raises((ParameterError, ShapeError, DtypeError), match=words):
        class_labels(y, classes)


def test_targets_are_clipped_to_public_bounds_and_mapped_to_one():
    assert bounded_targets([0, 5, 10, 99, -1], (0, 10))[:, 0].tolist() == [-1, 0, 1, 1, -1]
    for bounds in ((1, 1), (0, np.inf), (np.nan, 1), 3):
        with pytest.raises(ParameterError, match="target_bounds"):
            as_target_bounds(bounds)
    with pytest.raises(DataError, match="y: 1 of 2 targets"):
        refuse_bad_rows(np.ones((2, 2)), np.array([[1.0], [np.nan]]), 1)


def test_rows_that_are_not_finite_are_counted_in_blocks(monkeypatch):
    monkeypatch.setattr("minidp.data.arrays.BLOCK_BYTES", 64)
    x = np.ones((9, 2, 2))
    x[1, 0, 0], x[1, 1, 1], x[8, 1, 0], x[3, 0, 1] = np.nan, np.inf, -np.inf, 1e300
    assert rows_not_finite(x) == 2 and rows_not_finite(x[:0]) == 0
    assert rows_not_finite(Inputs(x, Backend.numpy())) == 3  # 1e300 is no float32
    stored = Stored(np.ones((9, 2), "uint8"))
    # integers need no look
    assert rows_not_finite(Inputs(stored, Backend.numpy())) == 0 and stored.most == 0
