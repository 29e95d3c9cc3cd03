"""A record is read as it was written, whatever other versions put beside its keys."""

import json
import math

import pytest

from minidp.errors import DataError
from minidp.run.record import Record


@pytest.fixture
def result(finished):
    return json.loads((finished / "result.json").read_text())


def test_a_record_is_the_result_again(result):
    assert Record.from_json(result).to_json() == result


def test_infinity_is_a_number_in_the_record_and_text_in_the_file(result):
    record = Record.from_json(result)
    assert record.settings.target_epsilon == math.inf
    assert record.to_json()["settings"]["target_epsilon"] == "inf"


def test_keys_of_other_versions_are_kept_and_missing_ones_are_named(result):
    result["attack"] = result["settings"]["attack"] = None
    assert Record.from_json(result).to_json() == result
    del result["settings"]["optimizer"]
    with pytest.raises(DataError, match="expected a key 'optimizer' in the Setting of a run"):
        Record.from_json(result)
