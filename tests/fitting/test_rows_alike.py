"""Rows that hold the same numbers give the same model and predictions, whatever their layout."""

from datetime import UTC

import numpy as np
import pandas as pd
import pytest

import minidp
from minidp.errors import MinidpError

RNG = np.random.default_rng(0)
X = (RNG.integers(-64, 65, (240, 3)) / 16).astype("float32")  # exact in float16
Y = (X[:, 0] > 0).astype(int)
KNOWN = {"epsilon": 1.0, "delta": 1e-4, "steps": 4, "seed": 1, "quiet": True}
KNOWN |= {"classes": [0, 1], "dataset_size": 240}
LAYOUTS = {
    "big-endian": X.astype(">f4"),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "Fortran": np.asfortranarray(X),
    "longdouble": X.astype("longdouble"),
    "float16": X.astype("float16"),
    "list": X.tolist(),
}


@pytest.fixture(scope="module")
def expected():
    return minidp.fit(X, Y, bounds=(-4, 4), **KNOWN).predict_proba(X)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_numbers_of_any_layout_give_the_same_model(layout, expected):
    model = minidp.fit(LAYOUTS[layout], Y, bounds=(-4, 4), **KNOWN)
    assert np.abs(model.predict_proba(LAYOUTS[layout]) - expected).max() < 1e-6


def test_columns_are_taken_by_their_names():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = minidp.fit(table, Y, bounds=(-4, 4), **KNOWN)
    found = model.predict_proba(table)
    for other in (table[["c", "a", "b"]], table.assign(more=1.0)):
        assert (model.predict_proba(other) == found).all()
    for wrong in (table[["a", "b"]], table.rename(columns={"c": "C"})):
        with pytest.raises(MinidpError, match=r"\bc\b"):
            model.predict_proba(wrong)


def test_days_with_a_time_zone_are_the_days_without_it():
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 1000, 240), unit="D")
    schema = {"day": {"type": "date", "low": "2020-01-01", "high": "2022-12-31"}}
    answer = (days.year > 2020).astype(int)
    zoned = pd.DataFrame({"day": days.tz_localize(UTC)})
    model = minidp.fit(zoned, answer, schema=schema, **KNOWN)
    assert (model.predict_proba(zoned) == model.predict_proba({"day": days.to_numpy()})).all()
