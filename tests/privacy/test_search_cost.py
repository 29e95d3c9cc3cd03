"""The price of a search against dp_accounting and mpmath, and its two sides."""

import json
import math
from pathlib import Path

import mpmath
import pytest

from minidp.errors import UnsupportedEventError
from minidp.privacy import (
    Composed,
    Gaussian,
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


def searched(accountant, runs, score=None, **named):
    return spent(accountant, (tuning_event(ADD_REMOVE, runs, score, **named), 1))


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("row", PEERS, ids=lambda row: f"{row['mean']:g}")
def test_a_random_number_of_runs_against_dp_accounting(row, law):
    run = Repeated(PoissonSampled(row["q"], Gaussian(row["sigma"])), row["steps"])
    event = tuning_event(ADD_REMOVE, [run], mean=row["mean"], law=law)
    # without the distance of a Poisson number's draw from its law
    found = spent(RENYI, (without_variation(event), 1), delta=row["delta"]).upper
    # its divergences of sampled noise at fractional orders are a series that is cut
    assert found == pytest.approx(row[law], rel=1e-8 if row["q"] == 1 else 1e-5)


@pytest.mark.parametrize("law", ["geometric", "poisson"])
def test_a_random_number_of_gaussian_runs_against_mpmath(law):
    """D_a = a/(2 s^2), and delta by the sharper conversion: the whole bound in 30 digits."""
    sigma, mean, target = mpmath.mpf(9), mpmath.mpf(12), mpmath.mpf("1e-5")
    with mpmath.workdps(30):
        orders = [mpmath.mpf(a) for a in RENYI.orders]

        def once(a):
            return a / (2 * sigma**2)

        def delta_at(e):
            flat = mpmath.sqrt(1 - mpmath.exp(-min(map(once, orders))))
            tails = ((a - 1) * (once(a) - e + mpmath.log1p(-1 / a)) - mpmath.log(a) for a in orders)
            return min(flat, min(map(mpmath.exp, tails)))

        choice = min((1 - 1 / b) * once(b) + mpmath.log(mean) / b for b in orders)
        drawn = {
            "geometric": lambda a: 2 * choice,
            "poisson": lambda a: mean * delta_at(mpmath.log1p(1 / (a - 1))),
        }[law]
        truth = min(
            once(a)
            + drawn(a)
            + mpmath.log(mean) / (a - 1)
            + mpmath.log1p(-1 / a)
            - (mpmath.log(target) + mpmath.log(a)) / (a - 1)
            for a in orders
        )
    event = without_variation(tuning_event(ADD_REMOVE, [Gaussian(9.0)], mean=12, law=law))
    found = spent(RENYI, (event, 1)).upper
    assert truth <= found <= truth * (1 + 1e-9)


def test_every_candidate_once_costs_their_sum_and_scores_apart_cost_no_more():
    runs = [Gaussian(9.0), Gaussian(12.0)]
    both = spent(TIGHT, (runs[0], 1), (runs[1], 1)).upper
    assert searched(TIGHT, runs).upper == searched(TIGHT, runs, Gaussian(13.0)).upper == both
    scores, found = spent(TIGHT, (Gaussian(5.0), 2)).upper, searched(TIGHT, runs, Gaussian(5.0))
    assert found.upper == scores > both and found.lower is None


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("costly", [0, 1, 2])
def test_a_random_search_pays_for_its_costliest_candidate_or_score(law, costly):
    sigmas = [9.0, 9.5, 10.0]
    sigmas[costly] = 4.0
    *runs, score = map(Gaussian, sigmas)
    named = {"mean": 5, "law": law}
    assert searched(RENYI, runs, score, **named) == searched(RENYI, [Gaussian(4.0)], **named)
    with pytest.raises(UnsupportedEventError):
        searched(TIGHT, runs, score, **named)


def test_two_searches_that_share_a_ledger_cost_the_worst_of_all_combinations():
    one, other = OneOf((Gaussian(3.0), Gaussian(4.0))), OneOf((Gaussian(5.0), Gaussian(6.0)))
    worst = spent(TIGHT, (Gaussian(3.0), 1), (Gaussian(5.0), 1)).upper
    assert spent(TIGHT, (one, 1), (Composed((other,)), 1)).upper == worst
    with pytest.raises(UnsupportedEventError):
        spent(TIGHT, (one, 2))
    assert spent(RENYI, (one, 2)).upper >= spent(TIGHT, (Gaussian(3.0), 2)).upper


def test_exact_arithmetics_distance_and_that_of_a_poisson_draw_stand_beside_the_search():
    run = Repeated(Composed((Gaussian(9.0), TotalVariation(2.0**-40, 10))), 3)
    event = tuning_event(ADD_REMOVE, [run], run, mean=40, law="poisson")
    varied = (2 + 40 * 2 * 30) * 2.0**-40
    assert total_variation(ledger_of((event, 1))) == pytest.approx(varied, rel=1e-12)
    assert spent(RENYI, (event, 1)).upper < math.inf


def test_the_parameter_of_a_geometric_law_is_what_uniform_numbers_can_meet():
    for mean in (1, 1.5, 3, 7, 1e6):
        gamma = geometric_gamma(mean)
        assert gamma * 2**53 == int(gamma * 2**53) and 0 <= gamma * mean - 1 < 1e-9
