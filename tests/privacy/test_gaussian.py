"""Gaussian differential privacy and trade-off curves: golden figures, stable at the edges; pictures
and CSV files.
"""

import math

from common.curves import save_epsilon_curves, save_tradeoff

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.certified.gaussian import gaussian_delta, gaussian_epsilon
from minidp.privacy import (
    Bound,
    Gaussian,
    GaussianAccountant,
    PoissonSampled,
)
from tests.support.accountants import ledger_of


@pytest.mark.parametrize("epsilon, mu", [(0.0, 0.0), (1e5, 1.0), (5e8, 3e4), (0.0, math.inf)])
def test_delta_stays_in_range_at_the_edges(epsilon, mu):
    assert 0 <= gaussian_delta(epsilon, mu) <= 1


@given(st.floats(1e-3, 20.0), st.floats(-300.0, -0.01))
@settings(max_examples=60, deadline=None)
def test_epsilon_inverts_delta(mu, log10_delta):
    delta = 10**log10_delta
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(epsilon, mu) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-6) - 1e-9, mu) >= delta * (1 - 1e-9)


def test_noise_too_small_for_the_limit_is_infinite():
    ledger = ledger_of((PoissonSampled(0.1, Gaussian(0.03)), 1))
    assert GaussianAccountant().epsilon(ledger, 1e-5).upper == math.inf


def test_epsilon_curves(tmp_path, drawn):
    bounds = [Bound(0.1, 0.15, 0.2), Bound(None, 1.0, math.inf), Bound(None, None, None)]
    printed = [(3, 0.2, "printed")]
    save_epsilon_curves(tmp_path / "e", [1, 2, 3], {"a": bounds}, 1e-5, "title " * 30, {}, printed)
    rows = (tmp_path / "e.csv").read_text().split()
    assert rows == ["epochs,a_lower,a_estimate,a_upper", "1,0.1,0.15,0.2", "2,,1.0,inf", "3,,,"]
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("write", [save_epsilon_curves, save_tradeoff])
def test_what_is_no_bound_is_dashed(write, tmp_path, drawn):
    kinds = {"bounded": "bound", "limit": "approximation"}
    if write is save_tradeoff:
        write(tmp_path / "t.png", np.array([0, 1]), dict.fromkeys(kinds, [1, 0]), "title", kinds)
    else:
        curves = dict.fromkeys(kinds, [Bound(0.1, 0.15, 0.2)])
        write(tmp_path / "t", [1], curves, 1e-5, "title", kinds)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    styles = {line.get_label(): line.get_linestyle() for line in drawn[0].axes[0].lines}
    assert styles["bounded"] == "-" and styles["limit\n(no guarantee)"] == "--"


@pytest.mark.parametrize("sigma", [0.1, 1.0, 1e2, 1e4, 1e6, 1e7, 1e8, 1e9])
def test_the_interval_of_delta_holds_the_truth_where_its_two_terms_cancel(sigma):
    """The second term of [C1] in 60 digits."""
    accountant, ledger = GaussianAccountant(), ledger_of((Gaussian(sigma), 1))
    with mpmath.workdps(60):
        mu = 1 / mpmath.mpf(sigma)
        for epsilon in (0.0, 1e-9, 1e-8, 3e-8, 1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0):
            tail = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
            truth = mpmath.ncdf(mu / 2 - epsilon / mu) - tail
            known = accountant.delta(ledger, epsilon)
            assert known.lower <= truth <= known.upper, epsilon
