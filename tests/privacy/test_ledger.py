"""The ledger: append-only, run-length, canonical JSON, damaged files refused."""
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.errors import DataError, ParameterError
from minidp.privacy import Gaussian, Ledger, MomentsAccountant, NeighbouringRelation, PoissonSampled
from tests.privacy.test_events import events


def example():
    ledger = Ledger()
    ledger.append(Gaussian(7.0))
    ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 3)
    return ledger


def test_equal_neighbours_merge_and_order_is_kept():
    ledger = example()
    ledger.append(PoissonSampled(0.01, Gaussian(4)), 2)
    ledger.append(Gaussian(7.0), 0)
    ledger.append(Gaussian(7.0))
    assert ledger.items() == [(Gaussian(7.0), 1), (PoissonSampled(0.01, Gaussian(4.0)), 5), (Gaussian(7.0), 1)]


def test_entries_of_another_purpose_stay_apart_and_are_counted():
    ledger = Ledger()
    for count, purpose in ((2, "setup"), (1, "setup"), (4, "step"), (5, "setup")):
        ledger.append(Gaussian(7.0), count, purpose)
    assert ledger.entries() == [(Gaussian(7.0), 3, "setup"), (Gaussian(7.0), 4, "step"), (Gaussian(7.0), 5, "setup")]
    assert (ledger.count_of("setup"), ledger.count_of("step"), ledger.count_of("search")) == (8, 4, 0)
    assert ledger.items() == [(Gaussian(7.0), count) for count in (3, 4, 5)]


# written by minidp before ledgers had purposes
FORMAT_1 = ('{"entries":[{"count":1,"event":{"event":"Gaussian","noise_multiplier":7.0}},{"count":3,"event":{"event":'
            '"PoissonSampled","inner":{"event":"Gaussian","noise_multiplier":4.0},"sampling_probability":0.01}}],'
            '"format":1,"relation":"add_remove"}')


def test_a_ledger_without_purposes_loads_costs_the_same_and_keeps_its_hash():
    old = Ledger.from_json(json.loads(FORMAT_1))
    assert old.items() == example().items() and old.canonical() == FORMAT_1
    assert {purpose for _, _, purpose in old.entries()} == {"unknown"}
    assert MomentsAccountant().epsilon(old, 1e-5) == MomentsAccountant().epsilon(example(), 1e-5)
    old.append(Gaussian(7.0))
    again = Ledger.from_json(json.loads(old.canonical()))
    assert again == old and again.to_json()["format"] == 2 and len(again.items()) == 3


def test_items_and_copy_are_independent():
    ledger = example()
    ledger.items().clear()
    other = ledger.copy()
    assert other == ledger
    other.append(Gaussian(7.0))
    assert other != ledger and len(ledger.items()) == 2


@given(st.lists(st.tuples(events, st.integers(0, 10 ** 12), st.sampled_from(["setup", "step", "unknown"])), max_size=5),
       st.sampled_from(NeighbouringRelation))
@settings(max_examples=60, deadline=None)
def test_json_round_trip(entries, relation):
    ledger = Ledger(relation)
    for entry in entries:
        ledger.append(*entry)
    again = Ledger.from_json(json.loads(ledger.canonical()))
    assert again == ledger and again.canonical() == ledger.canonical() and again.sha256() == ledger.sha256()


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


@pytest.mark.parametrize("change", [
    {"format": 3}, {"format": 1}, {"format": 2.0}, {"format": True}, {"relation": "neighbours"}, {"relation": None},
    {"entries": None}, {"more": 1}, {"entries": [{"event": {"event": "NonPrivate"}}]},
    {"entries": [{"count": 0, "event": {"event": "NonPrivate"}, "purpose": "step"}]},
    {"entries": [{"count": 1, "event": {"event": "NonPrivate"}, "purpose": ""}]},
    {"entries": [{"count": 1, "event": {"event": "NonPrivate"}, "purpose": 1}]},
    {"entries": [{"count": 1.0, "event": {"event": "NonPrivate"}, "purpose": "step"}]}, {"entries": [7]},
    {"entries": [{"count": True, "event": {"event": "NonPrivate"}, "purpose": "step"}]}])
def test_wrong_json_is_refused(change):
    with pytest.raises(DataError):
        Ledger.from_json({**example().to_json(), **change})


@pytest.mark.parametrize("event, count", [("Gaussian", 1), (Gaussian(1.0), -1), (Gaussian(1.0), 1.5)])
def test_wrong_appends_change_nothing(event, count):
    ledger = example()
    with pytest.raises(ParameterError):
        ledger.append(event, count)
    assert ledger == example()
