"""Events and the ledger: the joint rule, append-only, run-length, JSON both ways, damaged files
refused.
"""

import json
import math

import numpy as np
import pytest

from minidp.errors import DataError, ParameterError
from minidp.privacy import (
    ApproximateDP,
    Composed,
    Gaussian,
    JointGaussian,
    Laplace,
    Ledger,
    NeighbouringRelation,
    NonPrivate,
    PoissonSampled,
    PureDP,
    Repeated,
    Unknown,
)
from minidp.privacy.event_json import EVENTS, event_to_json

STEP = PoissonSampled(0.01, JointGaussian((4.0, math.inf)))
EVERY = [
    Gaussian(math.inf),
    Laplace(0.3),
    STEP.event,
    PureDP(1e-6),
    ApproximateDP(0.5, 1e-9),
    NonPrivate(),
    Unknown(),
    STEP,
    Composed((STEP, Composed(()))),
    Repeated(STEP, 0),
]


def test_equal_events_have_equal_json():
    forms = [Gaussian(4), Gaussian(4.0), Gaussian(np.float64(4)), Gaussian(np.int64(4))]
    assert len({json.dumps(event_to_json(event)) for event in forms}) == 1
    assert Repeated(forms[0], np.int64(10)) == Repeated(forms[1], 10)


@pytest.mark.parametrize(
    "multipliers, expected",
    [
        ((3.0, 6.0), 1 / math.sqrt(1 / 9 + 1 / 36)),
        ((3.0, math.inf), 3.0),
        ((math.inf,), math.inf),
        ((1e-200, 1e-200), 1e-200 / math.sqrt(2)),
        ((0.0, math.inf), 0.0),
    ],
)
def test_effective_noise_multiplier(multipliers, expected):
    assert JointGaussian(multipliers).effective_noise_multiplier == pytest.approx(
        expected, rel=1e-15
    )


def example():
    return Ledger(entries=[(Gaussian(7.0),), (PoissonSampled(0.01, Gaussian(4.0)), 3)])


def test_the_unit_is_in_the_file_and_under_the_hash_and_an_older_file_keeps_its_own():
    entries = example().entries()
    row, person = (Ledger(entries=entries, unit=unit) for unit in ("row", "person of up to 3 rows"))
    assert len({each.sha256() for each in (example(), row, person)}) == 3
    assert Ledger.from_json(row.to_json()).unit == row.copy().unit == "row"
    assert example().to_json()["format"] == 2 and "unit" not in example().to_json()
    with pytest.raises(ParameterError, match="different units have no sum"):
        row.protect(person.unit)
    example().protect("row")


A, B = (f"{digit * 32}-{digit * 16}" for digit in "ab")


def with_ids(unit="row"):
    """The events of `example`, of two fits and of one without an id."""
    ledger, step = Ledger(unit=unit), PoissonSampled(0.01, Gaussian(4.0))
    ledger.append(Gaussian(7.0), fit=A)
    for fit in (None, A, B):
        ledger.append(step, fit=fit)
    return ledger


@pytest.mark.parametrize("unit", ["row", "unknown"])
def test_ids_of_fits_are_in_the_file_and_not_under_the_hash(tmp_path, unit):
    ledger, plain = with_ids(unit), Ledger(entries=example().entries(), unit=unit)
    assert ledger.sha256() == plain.sha256() and ledger.entries() == plain.entries()
    assert ledger.to_json()["format"] == 4 and plain.to_json()["format"] == (2, 3)[unit == "row"]
    ledger.save(tmp_path / "ledger.json")
    loaded = Ledger.load(tmp_path / "ledger.json")
    assert loaded == ledger.copy() == ledger and loaded.sha256() == plain.sha256()
    assert loaded.counted() == plain.counted() and loaded.items() == plain.items()
    assert [fit for *_, fit in loaded.entries_of_fits()] == [A, None, A, B]


def test_the_hash_of_a_ledger_is_what_it_was():
    ledgers = example(), Ledger(entries=example().entries(), unit="row")
    assert [each.sha256()[:16] for each in ledgers] == ["bd21b904c0ef8f8b", "e48ea139a26a4fad"]


def test_equal_neighbours_of_one_purpose_merge_and_order_is_kept():
    charged = [(Gaussian(7), *of) for of in ((2, "setup"), (4, "step"), (5, "setup"))]
    ledger = Ledger(entries=[(Gaussian(7.0), 1, "setup"), (Laplace(3.0), 0), *charged])
    assert ledger.entries() == [(Gaussian(7.0), 3, "setup"), *charged[1:]]
    assert [ledger.count_of(purpose) for purpose in ("setup", "step", "search")] == [8, 4, 0]
    assert ledger.items() == [(Gaussian(7.0), count) for count in (3, 4, 5)]


def test_a_ledger_without_purposes_loads():
    data = {**example().to_json(), "format": 1}
    for entry in data["entries"]:
        del entry["purpose"]
    old = Ledger.from_json(data)
    assert old.items() == example().items()
    assert {purpose for _, _, purpose in old.entries()} == {"unknown"}


@pytest.mark.parametrize("relation", NeighbouringRelation)
def test_json_round_trip(relation):
    assert {type(event).__name__ for event in EVERY} == set(EVENTS)
    ledger = Ledger(relation, [(event, 10**12, "search") for event in EVERY])
    again = Ledger.from_json(json.loads(ledger.canonical()))
    assert again == ledger and again.sha256() == ledger.sha256()


def test_a_whole_file_is_loaded_and_a_truncated_one_refused(tmp_path):
    path = tmp_path / "ledger.json"
    example().save(path)
    assert Ledger.load(path) == example() and list(tmp_path.iterdir()) == [path]
    whole = path.read_text()
    for length in range(0, len(whole) - 1, 7):
        path.write_text(whole[:length])
        with pytest.raises(DataError, match="ledger.json"):
            Ledger.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError):
        Ledger.load(path)
    with pytest.raises(DataError, match="absent"):
        Ledger.load(tmp_path / "absent.json")


WRONG_EVENTS = [
    None,
    {"event": "Teleport"},
    {"event": "OneOf", "events": []},
    {"event": ["Gaussian"]},
    {"event": "Gaussian"},
    {"event": "Gaussian", "noise_multiplier": 1, "note": 2},
    {"event": "Gaussian", "noise_multiplier": 10**400},
    {"event": "PoissonSampled", "sampling_probability": 0.1, "inner": 3},
    {"event": "Composed", "events": 7},
]


@pytest.mark.parametrize(
    "change",
    [
        *({"entries": [{"event": event, "count": 1, "purpose": "step"}]} for event in WRONG_EVENTS),
        {"format": 3},
        {"format": 3, "unit": "person"},
        {"format": 3, "unit": ["row"]},
        {"format": 2, "unit": "row"},
        {"format": 4, "unit": "row"},
        {"format": 5, "unit": "row"},
        *(
            {"format": number, "unit": "row", "entries": [entry | {"fit": fit}]}
            for entry in example().to_json()["entries"][:1]
            for number, fit in ((3, A), (3, None), (4, A[:-1]), (4, A.upper()), (4, A[:32]), (4, 1))
        ),
        {"format": 1},
        {"format": True},
        {"relation": "neighbours"},
        {"entries": None},
        {"more": 1},
        {"entries": [7]},
        *(
            {"entries": [{"event": {"event": "NonPrivate"}, **rest}]}
            for rest in (
                {},
                {"count": 0, "purpose": "step"},
                {"count": 1, "purpose": ""},
                {"count": 1, "purpose": 1},
            )
        ),
    ],
)
def test_wrong_json_is_refused(change):
    with pytest.raises(DataError):
        Ledger.from_json({**example().to_json(), **change})
