"""From a risk to the noise: never on the unsafe side, never far from it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy import (
    Gaussian,
    GaussianAccountant,
    Ledger,
    LossDistributionAccountant,
    PoissonSampled,
    risk,
)
from minidp.privacy.calibrate import LEAST_NOISE
from minidp.privacy.meaning import meaning_of
from minidp.privacy.risk import Risk

ASKED = [
    Risk(fpr=0.01, tpr=0.05),
    Risk(fpr=0.5, tpr=0.6),
    Risk(advantage=0.1),
]


def run(q=0.01, steps=1000):
    def ledger_of(sigma):
        return Ledger(entries=[(PoissonSampled(q, Gaussian(sigma)), steps)])

    return ledger_of


def found_elsewhere(asked, ledger):
    """What is certified, by tangents on a fixed grid and the accountant with all its digits."""
    accountant = LossDistributionAccountant()
    deltas = {e: accountant.delta(ledger, e).upper for e in np.linspace(0, 2, 81)}
    if asked.advantage is not None:
        return deltas[0.0]
    steep = [math.exp(e) * asked.fpr + d for e, d in deltas.items()]
    flat = [1 - math.exp(-e) * (1 - asked.fpr - d) for e, d in deltas.items()]
    return min(*steep, *flat)


def is_right(asked, sigma, ledger_of):
    """Whether the noise certifies the risk, and 1% less does not."""
    enough = found_elsewhere(asked, ledger_of(sigma)) <= asked.target * (1 + 1e-4)
    return enough and found_elsewhere(asked, ledger_of(0.99 * sigma)) > asked.target


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_noise_certifies_the_risk_and_little_more(asked):
    sigma = asked.noise_multiplier(run())
    assert asked.reached(run()(sigma)) <= asked.target
    assert is_right(asked, sigma, run())


def test_mu_is_that_of_the_statement():
    ledger = run()(Risk(mu=0.5).noise_multiplier(run()))
    assert 0.98 * 0.5 < Risk(mu=0.5).reached(ledger) <= 0.5
    assert meaning_of(ledger, 1e-5)["mu"] == pytest.approx(0.5, rel=0.02)


def rounded_down(monkeypatch):
    made = Risk.noise_multiplier
    monkeypatch.setattr(Risk, "noise_multiplier", lambda *of: math.floor(20 * made(*of)) / 20)


def by_the_central_limit(monkeypatch):
    monkeypatch.setattr(risk, "upper_ends", lambda relation, _: GaussianAccountant(relation))


def exchanged(monkeypatch):
    def power(accountant, ledger, rate, e):  # the false positive rate that a true one needs
        return math.exp(-e) * (rate - accountant.delta(ledger, abs(e)).upper)

    monkeypatch.setattr(risk, "power", power)


@pytest.mark.parametrize("planted", [rounded_down, by_the_central_limit, exchanged])
def test_optimistic_conversions_are_noticed(planted, monkeypatch):
    asked, ledger_of = ASKED[0], run(0.1, 100)
    planted(monkeypatch)
    assert not is_right(asked, asked.noise_multiplier(ledger_of), ledger_of)


def test_sampling_alone_may_give_the_risk():
    asked, ledger_of = Risk(advantage=0.01), run(1e-4, 100)
    assert asked.by_sampling(ledger_of) and asked.noise_multiplier(ledger_of) == LEAST_NOISE
    assert not replace(asked, advantage=0.0099).by_sampling(ledger_of)


def test_a_group_reaches_more_than_one_example():
    asked = Risk(advantage=0.1)
    assert asked.reached(run()(2.0), 3) > 2 * asked.reached(run()(2.0))


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "got none of these"),
        ({"tpr": 0.1}, "got tpr"),
        ({"mu": 1, "advantage": 0.1}, "got advantage and mu"),
        ({"fpr": 0.05, "tpr": 0.01}, "tpr=0.01 to be above fpr=0.05"),
        ({"advantage": 1}, "expected advantage=1 in"),
        ({"mu": math.inf}, "expected mu=inf in"),
        (0.05, "expected attack to be"),
    ],
)
def test_what_is_no_risk_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        Risk.of(given)


def test_a_plan_takes_a_risk_in_place_of_epsilon():
    sanitizer = Sanitizer(flat_group([("dense1", "W")], 1.0, 1.0))
    plan = Plan(PoissonSampler(0.01), sanitizer, 1000, 600)
    found = plan.calibrated(attack={"advantage": 0.1})
    assert 0.0995 < Risk(advantage=0.1).reached(found.ledger()) <= 0.1
    with pytest.raises(ParameterError, match="or attack alone"):
        plan.calibrated("moments", 1.0, 1e-5, attack={"advantage": 0.1})
