"""What the statement says first: the guarantee, for whom it holds, and what it leaves out."""

import json
from pathlib import Path

import pytest

from minidp.mechanism import PoissonSampler
from minidp.privacy.accountants import all_bounds
from minidp.privacy.ledger import Ledger
from minidp.run.record import Record
from minidp.run.statement import render
from minidp.run.summary import summary
from minidp.run.verify import verify
from minidp.util.text import upper_text
from tests.support.running import LOT, SIZE, train
from tests.support.sealed import put


@pytest.fixture
def said(finished):
    """said({place: value}): the statement of the finished run with these values in its result."""

    def said(changes=None, write=render):
        result = json.loads((finished / "result.json").read_text())
        for place, value in (changes or {}).items():
            put(result, place, value)
        return write(Record.from_json(result))

    return said


def brief(text):
    """The first section."""
    return text.partition("## In short\n\n")[2].partition("\n\n## ")[0]


def test_the_first_sentence_is_the_guarantee_with_the_smallest_certified_epsilon(finished, said):
    ledger = Ledger.load(finished / "ledger.json")
    bounds = all_bounds(ledger, ("moments", "renyi", "loss_distribution"), delta=1e-5)
    least = upper_text(min(bound.upper for bound, _, _ in bounds.values()))
    first = f"**This model is ({least}, 1e-05)-differentially private for one row of the training"
    assert brief(said()).startswith(f"{first} data, added or removed.**")
    assert "there is no figure here" in brief(said())


RATES = "meaning true_positive_rates"
LEAST = "epsilon loss_distribution upper"
BOUNDS = ("moments", "renyi", "loss_distribution", "advanced", "basic")
INFINITE = {f"epsilon {name} upper": "inf" for name in BOUNDS}
LARGE = {f"epsilon {name} upper": 20.0 for name in BOUNDS}
PERSONS = {"unit": "person", "rows_per_person": 5, "config": {"person": "patient id"}}
NOT_BOUNDS = {f"epsilon {name} kind": "approximation" for name in BOUNDS}


TRIED = {"dtype": "float64", "rows": 96, "kernels": "Zen", "differ": []}


def test_the_statement_says_what_the_trial_of_rows_found(said):
    plain = "up to 20.5 clip norms."
    for bits in ({"dtype": "float32"}, {}):
        text = said({"row_bits": bits})
        assert "that were computed with it. For rows" in text and plain in text
        assert "in batches of" not in text
    text = said({"row_bits": TRIED})
    assert "in batches of 96 rows" in text and "(Zen kernels)" in text and plain not in text
    text = said({"row_bits": {**TRIED, "differ": ["tanh1", "dense2"]}})
    assert "as a trial on this machine found in tanh1, dense2. For rows" in text
    assert "in batches of" not in text


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {f"{RATES} 0.01": 0.01771},
            "a chance of at most 1.8% to recognise a row that was used;",
        ),
        ({f"{RATES} 0.01": 0.99999, **LARGE}, "does not keep them from it"),
        ({"meaning": None, LEAST: 0.5}, "a chance of at most 1.7% to recognise a row"),
        ({"group": {"size": 4, "epsilon": 3.21001}}, "epsilon for these rows together is 3.211,"),
        (
            {"target_epsilon": 2.0, "accountant": "gaussian_clt", LEAST: 0.81},
            "kept by gdp (CLT, an approximation), which guarantees nothing; the tightest "
            "certified bound proves 0.81.",
        ),
        (INFINITE, "**This model is not private: something was released without noise"),
        (NOT_BOUNDS, "**No guarantee can be stated: no certified bound on epsilon is known"),
        ({"delta": 0.02}, "0.02 is not below 1/60, so that publishing somebody's whole row"),
        (
            PERSONS,
            "in the column 'patient id' count as theirs; the run learned from the first 5 of them",
        ),
    ],
)
def test_what_is_said_in_short_follows_from_the_result(said, changes, words):
    assert words in brief(said(changes)) and words not in brief(said())


def test_a_run_without_a_guarantee_claims_none_and_passes_on_nothing(said):
    for text in (said(INFINITE), said(NOT_BOUNDS)):
        assert "differentially private" not in text and "What is covered" not in text
        assert "may be passed on" not in text and "any file of this run" in text


def test_a_test_set_is_listed_where_there_was_one(said):
    assert "- The test set." in said()
    assert "- The test set." not in said({"test_accuracy": None, "test_r2": None})


def test_preparation_before_the_run_is_covered_only_where_the_run_charged_it(said):
    words = "- Anything computed from the rows before this run, such as scalers, medians, categori"
    assert words in said() and "computed with noise of its own: mean." in said()
    text = said({"settings setup": []})
    assert words in text and "This run computed nothing of this kind itself." in text


def test_what_was_disclosed_or_taken_to_be_public_is_listed_as_not_covered(said):
    listed = said().partition("## What is not covered")[2].partition("\n\n## ")[0]
    assert "- Revealed exactly: the names." in listed
    assert "- Taken to be public: the number of rows." in listed


def test_the_lines_on_the_screen_hold_the_figure_to_quote_and_no_other_accountant(said):
    def lines(changes):
        return said(changes, lambda record: "\n".join(summary(record, Path("x"))))

    text = lines({"target_epsilon": 2.0, LEAST: 0.80311})
    assert "quote: epsilon 0.8032 at delta 1e-05 (pld, the tightest" in text
    assert "kept by the paper's accountant (moments); the tightest" in text
    assert "kept by" not in lines({"target_epsilon": 2.0, "accountant": "loss_distribution"})


@pytest.mark.parametrize("q", [0.199, 0.201])
def test_the_sampling_probability_of_a_run_is_the_samplers(tmp_path, q):
    record = train(tmp_path, sampler=PoissonSampler(q), dataset_size=SIZE)
    assert record["settings"]["sampling_probability"] == q != LOT / SIZE
    assert f"| sampling probability q = L/N | {q} |" in (tmp_path / "privacy.md").read_text()
    assert not verify(tmp_path).failed
