"""Persons: which names are taken, what is refused, and how lots of persons become batches."""

from types import SimpleNamespace

import numpy as np
import pytest

from minidp.data import Block, LabelledExamples, Persons
from minidp.data.persons import persons_of
from minidp.errors import DtypeError, ParameterError, RowsError, ShapeError


@pytest.mark.parametrize(
    "names, error, words",
    [
        ([1.0, np.nan, 2.0], RowsError, "1 of 3 rows have no person"),
        (["ann", " ", "NA"], RowsError, "2 of 3 rows"),
        (np.array(["ann", None, np.nan], object), RowsError, "2 of 3 rows"),
        (np.array(["ann", 1, 2], object), DtypeError, "of one kind"),
        ([0.5, 1.0, 2.0], DtypeError, "whole numbers below 2"),
        (np.array([2**63, -1, 0], object), DtypeError, "whole numbers below 2"),
        (np.zeros((3, 2)), ShapeError, "one label or target for each row"),
        ([1, 2], ShapeError, "the person of each of 3 rows, got 2"),
    ],
)
def test_names_that_do_not_tell_persons_apart_are_refused(names, error, words):
    with pytest.raises(error, match=words):
        persons_of(names, 2, rows=3)


@pytest.mark.parametrize(
    "person, most, words",
    [([1, 2], None, "together, or neither"), (None, 2, "together"), ([1, 2], 0, "at least 1")],
)
def test_persons_and_their_rows_are_given_together(person, most, words):
    with pytest.raises(ParameterError, match=words):
        persons_of(person, most, rows=2)


@pytest.mark.parametrize(
    "names", [[7, 2, 7], [7.0, 2.0, 7.0], ["b", "a", " b"], [True, False, True]]
)
def test_equal_names_are_one_person(names):
    persons = Persons(np.array(names), 4)
    assert len(persons) == 2 and persons.slots([1])[0].tolist() == [[0, 2, 0, 0]]


def test_a_lot_is_of_whole_persons_on_any_rank_and_in_any_batch():
    names = np.repeat(np.arange(9), [1, 2, 3, 9, 1, 1, 4, 2, 5])
    examples = LabelledExamples(np.arange(28.0)[:, None], names, persons=Persons(names, 3))
    lot = np.array([8, 3, 0, 2])
    for most in (1, 3, 4):
        seen, places = [], []
        for rank in range(3):
            ranks = SimpleNamespace(rank=rank, size=3)
            for batch in examples.batches(examples.share(lot, ranks), most):
                whole = batch.y.reshape(-1, 3)
                assert (whole == whole[:, :1]).all() and len(whole) <= most
                assert np.allclose(batch.share.reshape(-1, 3).sum(axis=1), 1)
                seen += whole[:, 0].tolist()
                places += batch.rows.tolist()
        assert seen == lot.tolist()
        assert places == [3 * person + place for person in lot for place in range(3)]


def test_persons_go_with_neither_views_nor_blocks():
    x, y, persons = np.zeros((4, 2)), np.zeros(4, int), Persons([0, 0, 1, 1], 2)
    for given in ({"views": 2}, {"x": Block(x, 0, 4)}, {"y": Block(y, 0, 4)}):
        with pytest.raises(ParameterError, match="without augmented views and without data.Block"):
            LabelledExamples(**{"x": x, "y": y, "persons": persons} | given)
    with pytest.raises(ShapeError, match="persons"):
        LabelledExamples(x, y, weight=np.ones(4), persons=persons)
