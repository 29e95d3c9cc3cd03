"""Runs in exact arithmetic on disk: what their files say, and that verify computes all of it
again.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from minidp.privacy import (
    Composed,
    Ledger,
    total_variation,
)
from minidp.run.verify import verify
from tests.support.running import train
from tests.support.sealed import failed, tell


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact") / "run"
    train(folder, arithmetic="exact", clip_norm=3.0)
    return folder


def result_of(run):
    return json.loads((run / "result.json").read_text())


def test_the_result_names_the_arithmetic_and_what_it_costs(finished):
    result = result_of(finished)
    assert not verify(finished).failed
    assert [
        (group["grid"], group["sensitivity_factor"], group["coordinates"])
        for group in result["settings"]["clip_groups"]
    ] == [(3 * 2.0**-32, 1, 25), (3 * 2.0**-32, 1, 18)]
    variation = total_variation(Ledger.load(finished / "ledger.json"))
    epsilon = result["epsilon"]["moments"]["upper"]
    assert (result["arithmetic"], result["generator"]) == ("exact", "chacha20")
    assert 0 < result["delta_added"] <= 1e-9
    assert result["delta_added"] == pytest.approx((1 + np.exp(epsilon)) * variation, rel=1e-9)


@pytest.mark.parametrize("factor, noticed", [(1 + 1e-13, False), (1 - 1e-11, True)])
def test_a_distance_may_differ_by_the_rounding_of_another_processor(run, factor, noticed):
    before = Ledger.load(run / "ledger.json")
    after = Ledger(before.relation)
    for event, count, purpose in before.entries():
        if isinstance(event, Composed):
            sampled, distance = event.events
            event = Composed((sampled, replace(distance, tau=distance.tau * factor)))
        after.append(event, count, purpose)
    after.save(run / "ledger.json")
    tell(run, {"ledger_sha256": after.sha256()})
    assert before != after
    assert ("not charged" in failed(run)) is noticed


def test_a_run_without_noise_claims_nothing_of_its_arithmetic(tmp_path):
    for arithmetic in ("ordinary", "exact"):
        assert (
            train(tmp_path / arithmetic, arithmetic=arithmetic, sigma=0.0, steps=2)["delta_added"]
            == 0
        )
        assert "The guarantee holds" not in (tmp_path / arithmetic / "privacy.md").read_text()
