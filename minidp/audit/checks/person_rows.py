"""Checks for persons: the rows that are used, means over them, and releases of them."""

import numpy as np

from ...backend import to_host
from ...data.arrays import Inputs
from ...data.persons import Means, Persons
from ...examples import LabelledExamples
from ...units import Rows, shared
from ..equation import Case
from . import holds, in_words, measures, states, worst
from .before_training import COUNTS, LOOK, MOST, PCA, PCA_SUMS

PERSONS = "data.persons.Persons"


def _of_persons(rng, rows=23, persons=6):
    """(name of each row's person, {person: numbers of their used rows})."""
    names = np.array(["eve", "al", "ida", "bo", "cy", "di"])[rng.integers(0, persons, rows)]
    used = {name: [] for name in sorted(set(names.tolist()))}
    for row, name in enumerate(names.tolist()):
        if len(used[name]) < MOST:
            used[name].append(row)
    return names, used


@measures(PERSONS, "F2", "lists by name, row by row", 0.0)
def each_person_has_her_first_rows(bench):
    names, used = _of_persons(bench.rng)
    lot = bench.rng.permutation(len(used))
    for number, rows in zip(lot, Persons(names, MOST).slots(lot)[0]):
        mine = used[sorted(used)[number]]
        yield holds(rows.tolist() == mine + [mine[0]] * (MOST - len(mine)))


@states(PERSONS, "F1 F3", 0.0)
def rows_and_their_shares(bench):
    names, _ = _of_persons(bench.rng)
    persons = Persons(names, MOST)
    n, lot = np.unique(names, return_counts=True)[1], bench.rng.permutation(len(persons))
    share = persons.slots(lot)[1]
    yield Case({"n": n[lot], "k": MOST, "m": persons.used[lot], "share": share})


in_words(PERSONS, "F2", "names places")


@states("units.Rows", "F1", 0.0)
def views_share_their_row(bench):
    for views in (1, 2, 3):
        shares = Rows(7, views).slots(bench.rng.permutation(7)[:5])[1]
        yield from (Case({"K": views, "share": share}) for share in shares.ravel())


@states("data.examples.LabelledExamples", "F1", 0.0)
def weights_are_of_units(bench):
    """For persons with one, two and three used rows, for rows and for views of rows."""
    names, _ = _of_persons(bench.rng)
    x, labels = bench.rng.standard_normal((len(names), 2)), np.arange(len(names))
    persons = [Persons(names, most) for most in (1, 2, 3)]
    for units in (*persons, Rows(len(names)), Rows(len(names), views=2)):
        v, lot = bench.rng.uniform(0, 1, len(units)), bench.rng.permutation(len(units))
        arrays = map(bench.asarray, (x, labels))
        examples = LabelledExamples(*arrays, units, bench.asarray(v))
        parts = [to_host(batch.weight) for batch in examples.batches(lot, 4)]
        yield Case({"v": v, "lot": lot, "weight": np.concatenate(parts)})


@states("data.persons.shared", "F1", 0.0)
def empty_places_become_zero_whatever_they_hold(bench):
    x, share = bench.rng.standard_normal((6, 2)), np.array([0.5, 0, 1, 0, 0.25, 0])
    x[1], x[3] = np.inf, np.nan
    y = to_host(shared(bench.asarray(x), bench.asarray(share)))
    yield Case({"x": x, "share": share, "y": y})


@states("data.persons.Means", "F1")
def persons_means_are_of_rows_that_are_used(bench):
    names, _ = _of_persons(bench.rng)
    x, persons = bench.rng.standard_normal((len(names), 2, 2)), Persons(names, MOST)
    inputs = Inputs(x, bench.backend, dtype="float64")
    means = Means(inputs, persons, np.arange(len(persons)))
    for span in (slice(None), slice(1, 3)):
        rows, share = persons.slots(np.arange(len(persons))[span])
        held = x[rows].reshape((*rows.shape, 4))
        yield Case({"x": held, "share": share, "unit": to_host(means[span])})


@measures(PCA, "F1 F2", "means of what each row adds by itself", 2.0**-13, case=(PCA_SUMS, True))
@measures(LOOK, "F1", "means of what each row adds by itself", 2.0**-26, case=(COUNTS, False))
def sums_over_persons(bench, case):
    """For second moments, a person with a row that is not finite contributes nothing."""
    names, used = _of_persons(bench.rng)
    x, (sums, left_out) = bench.rng.uniform(-9, 9, (len(names), 3)), case
    if left_out:
        x[used.pop(min(used))[-1], 0] = np.inf
    for raw, _ in sums:
        rows = [[raw(bench.asarray(x[at : at + 1])) for at in places] for places in used.values()]
        means = [sum(each) / len(each) for each in rows]
        yield worst(raw(bench.asarray(x), units=Persons(names, MOST)), sum(means))
