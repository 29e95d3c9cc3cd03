"""JSON of results: strict types, whole files."""
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from minidp.errors import CheckpointError, DataError
from minidp.files import jsonable, read_json


@dataclass
class Bound:
    lower: float
    upper: float


class Relation(Enum):
    ADD_REMOVE = "add_remove"


def test_everything_a_result_holds_has_a_json_form():
    value = {"a": np.float32(0.5), "b": np.arange(3), "c": Bound(None, float("inf")), "d": (1, [True, None]),
             "e": Path("x") / "y", "f": Relation.ADD_REMOVE, 7: np.int64(3), "g": -np.inf, "h": np.array([np.inf])}
    assert jsonable(value) == {
        "a": 0.5, "b": [0, 1, 2], "c": {"lower": None, "upper": "inf"}, "d": [1, [True, None]],
        "e": os.path.join("x", "y"), "f": "add_remove", "7": 3, "g": "-inf", "h": ["inf"],
    }


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.array([[np.nan]])])
def test_nan_is_refused_and_its_place_named(nan):
    with pytest.raises(ValueError, match=r"result\.curve\[1\]"):
        jsonable({"curve": [0.0, nan]})


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, "\xff", '{"a": NaN'], ids=range(6))
def test_what_is_not_a_json_object_is_refused_with_the_file_s_name(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match="config.json: damaged"):
        read_json(path, CheckpointError)
    with pytest.raises(DataError, match="absent.json: no such file"):
        read_json(tmp_path / "absent.json")
