"""Persons: which names are taken, what is refused, and how lots of persons become batches."""

import numpy as np
import pytest

from minidp.data import LabelledExamples, Persons
from minidp.data.persons import units_of
from minidp.errors import DtypeError, ParameterError, RowsError, ShapeError


@pytest.mark.parametrize(
    "names, error, words",
    [
        ([1.0, np.nan, 2.0], RowsError, "1 of 3 rows have no person"),
        (["ann", " ", "NA"], RowsError, "2 of 3 rows"),
        (np.array(["ann", None, np.nan], object), RowsError, "2 of 3 rows"),
        (np.array(["ann", 1, 2], object), DtypeError, "of one kind"),
        (["7", "8", "7.0"], RowsError, "1 of 3 names are a number that another name is too"),
        (["07", "7", " 7."], RowsError, "2 of 3 names"),
        ([0.5, 1.0, 2.0], DtypeError, "whole numbers below 2"),
        (np.array([2**63, -1, 0], object), DtypeError, "whole numbers below 2"),
        (np.zeros((3, 2)), ShapeError, "one label or target for each row"),
        ([1, 2], ShapeError, "the person of each of 3 rows, got 2"),
    ],
)
def test_names_that_do_not_tell_persons_apart_are_refused(names, error, words):
    with pytest.raises(error, match=words):
        units_of(names, 2, rows=3)


@pytest.mark.parametrize(
    "person, most, words",
    [([1, 2], None, "together, or neither"), (None, 2, "together"), ([1, 2], 0, "at least 1")],
)
def test_persons_and_their_rows_are_given_together(person, most, words):
    with pytest.raises(ParameterError, match=words):
        units_of(person, most, rows=2)


@pytest.mark.parametrize(
    "names", [[7, 2, 7], [7.0, 2.0, 7.0], ["b", "a", " b"], [True, False, True]]
)
def test_equal_names_are_one_person(names):
    persons = Persons(np.array(names), 4)
    assert len(persons) == 2 and persons.slots([1])[0].tolist() == [[0, 2, 0, 0]]


@pytest.mark.parametrize(
    "names, alike",
    [
        (["Ann", "ann", "Bob"], "1 of 3"),
        (["Ren\u00e9", "Rene\u0301", "RENE\u0301"], "2 of 3"),
        (["12345678901234567890", "12345678901234567891", "1e", "1000"], None),
        (["1e3", "1000", "2"], "1 of 3"),
        (["7e0", "7"], "1 of 2"),
        (["1,000", "1000", "1_000", "1'000"], "3 of 4"),
        (["7,0", "7"], "1 of 2"),
        (["0x7", "7"], "1 of 2"),
        (["an\u200bn", "ann", "\ufeffann"], "2 of 3"),
        (["Ann  Lee", "Ann Lee", "Ann-Lee", "Ann\u2011Lee"], "3 of 4"),
        (["A-1", "A-2", "A1", "1-2", "12"], None),
        ([1, 2, 3], None),
    ],
)
def test_names_that_differ_in_case_or_unicode_form_are_persons_with_a_notice(names, alike, capsys):
    assert len(Persons(names, 1)) == len(names)
    said = capsys.readouterr().err
    assert said.startswith(f"NOTICE: person: {alike} names differ") if alike else said == ""


def test_a_lot_is_of_whole_persons_on_any_rank_and_in_any_batch():
    names = np.repeat(np.arange(9), [1, 2, 3, 9, 1, 1, 4, 2, 5])
    examples = LabelledExamples(np.arange(28.0)[:, None], names, Persons(names, 3))
    lot = np.array([8, 3, 0, 2])
    for most in (1, 3, 4):
        seen, places = [], []
        for rank in range(3):
            for batch in examples.batches(np.array_split(lot, 3)[rank], most):
                whole = batch.y.reshape(-1, 3)
                assert (whole == whole[:, :1]).all() and len(whole) <= most
                assert np.allclose(batch.share.reshape(-1, 3).sum(axis=1), 1)
                seen += whole[:, 0].tolist()
                places += batch.rows.tolist()
        assert seen == lot.tolist()
        assert places == [3 * person + place for person in lot for place in range(3)]


def test_persons_have_no_views_and_one_weight_each():
    with pytest.raises(ParameterError, match="persons without augmented views"):
        units_of([0, 0, 1, 1], 2, rows=4, views=2)
    with pytest.raises(ShapeError, match="persons"):
        LabelledExamples(np.zeros((4, 2)), np.zeros(4, int), Persons([0, 0, 1, 1], 2), np.ones(4))
