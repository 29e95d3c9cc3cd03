"""The price of a search against dp_accounting and mpmath, and its two sides."""

import json
import math
from pathlib import Path

import pytest

from minidp.errors import UnsupportedEventError
from minidp.privacy import (
    Composed,
    Gaussian,
    Ledger,
    LossDistributionAccountant,
    OneOf,
    PoissonSampled,
    RenyiAccountant,
    Repeated,
    TotalVariation,
    total_variation,
    tuning_event,
)
from minidp.privacy.events import NeighbouringRelation
from minidp.privacy.search_cost import geometric_gamma, without_variation

from ..support.accountants import ledger_of, spent

PEERS = json.loads((Path(__file__).parent / "repeat_and_select.json").read_text())["rows"]
ADD_REMOVE = NeighbouringRelation.ADD_REMOVE
TIGHT, RENYI = LossDistributionAccountant(), RenyiAccountant()


def searched(runs, score=None, **named):
    return Ledger(entries=[(tuning_event(ADD_REMOVE, runs, score, **named),)])


def as_drawn(run, **named):
    """Without the distance of a Poisson number's draw from its law."""
    event = without_variation(tuning_event(ADD_REMOVE, [run], **named))
    return Ledger(entries=[(event,)])


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("row", PEERS, ids=lambda row: f"{row['mean']:g}")
def test_a_random_number_of_runs_against_dp_accounting(row, law):
    run = Repeated(PoissonSampled(row["q"], Gaussian(row["sigma"])), row["steps"])
    found = RENYI.epsilon(as_drawn(run, mean=row["mean"], law=law), row["delta"]).upper
    # its divergences of sampled noise at fractional orders are a series that is cut
    assert found == pytest.approx(row[law], rel=1e-8 if row["q"] == 1 else 1e-5)


def test_every_candidate_once_costs_their_sum_and_scores_apart_cost_no_more():
    runs = [Gaussian(9.0), Gaussian(12.0)]
    both = spent(TIGHT, (runs[0], 1), (runs[1], 1)).upper
    assert TIGHT.epsilon(searched(runs), 1e-5).upper == both
    assert TIGHT.epsilon(searched(runs, Gaussian(13.0)), 1e-5).upper == both
    scores = spent(TIGHT, (Gaussian(5.0), 2)).upper
    assert TIGHT.epsilon(searched(runs, Gaussian(5.0)), 1e-5).upper == scores > both
    assert TIGHT.epsilon(searched(runs, Gaussian(5.0)), 1e-5).lower is None


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("costly", [0, 1, 2])
def test_a_random_search_pays_for_its_costliest_candidate_or_score(law, costly):
    sigmas = [9.0, 9.5, 10.0]
    sigmas[costly] = 4.0
    *runs, score = map(Gaussian, sigmas)
    found = RENYI.epsilon(searched(runs, score, mean=5, law=law), 1e-5)
    assert found == RENYI.epsilon(searched([Gaussian(4.0)], mean=5, law=law), 1e-5)
    with pytest.raises(UnsupportedEventError):
        TIGHT.epsilon(searched(runs, score, mean=5, law=law), 1e-5)


def test_two_searches_that_share_a_ledger_cost_the_worst_of_all_combinations():
    one, other = OneOf((Gaussian(3.0), Gaussian(4.0))), OneOf((Gaussian(5.0), Gaussian(6.0)))
    worst = spent(TIGHT, (Gaussian(3.0), 1), (Gaussian(5.0), 1)).upper
    assert spent(TIGHT, (one, 1), (Composed((other,)), 1)).upper == worst
    twice = ledger_of((one, 2))
    with pytest.raises(UnsupportedEventError):
        TIGHT.epsilon(twice, 1e-5)
    assert RENYI.epsilon(twice, 1e-5).upper >= spent(TIGHT, (Gaussian(3.0), 2)).upper


def test_exact_arithmetics_distance_leaves_the_search_and_counts_every_run():
    run = Repeated(Composed((Gaussian(9.0), TotalVariation(2.0**-40, 10))), 3)
    score = Composed((Gaussian(9.0), TotalVariation(2.0**-40, 1)))
    for mean, runs in ((None, 2), (7.5, 8)):
        ledger = searched([run, run], score, mean=mean)
        assert total_variation(ledger) == pytest.approx(runs * 31 * 2.0**-40, rel=1e-12)
        assert RENYI.epsilon(ledger, 1e-5).upper < math.inf
    drawn = searched([Gaussian(9.0)], mean=40, law="poisson")
    assert total_variation(drawn) == pytest.approx(2 * 2.0**-40, rel=1e-12)


def test_the_parameter_of_a_geometric_law_is_what_uniform_numbers_can_meet():
    for mean in (1, 1.5, 3, 7, 1e6):
        gamma = geometric_gamma(mean)
        assert gamma * 2**53 == int(gamma * 2**53) and 0 <= gamma * mean - 1 < 1e-9
