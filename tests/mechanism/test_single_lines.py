"""Single lines of the privacy guarantee that no equation's check sees."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from minidp.errors import BudgetExceededError
from minidp.fitting import column_look as columns
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, pca
from minidp.mechanism import noise as module
from minidp.mpi import exchange
from minidp.privacy import Gaussian, Ledger
from minidp.privacy.accountants import all_bounds, make
from minidp.privacy.bound import Bound
from minidp.privacy.group_privacy import GroupAccountant
from minidp.privacy.moment_kernels import RELATIVE_ERROR, TAIL, log_moments
from minidp.streams import Streams
from tests.attacks.test_step import Rank
from tests.support.guarded import guarded_backend


@pytest.mark.parametrize("rows, parts", [(0, [0]), (5, [2, 2, 1])])
def test_predictions_come_in_batches_and_of_no_rows_there_are_none(rows, parts, rng, monkeypatch):
    network, seen = nn.Sequential([nn.Dense(3, 2, rng=rng)], (3,)), []
    forward = network.forward
    monkeypatch.setattr(network, "forward", lambda x: seen.append(len(x)) or forward(x))
    assert network.predict(np.zeros((rows, 3), np.float32), 2).shape == (rows, 2)
    assert seen == parts


def test_principal_directions_are_float32():
    assert pca.principal_directions(np.diag([3.0, 2.0, 1.0]), 2).dtype == np.float32


@pytest.mark.parametrize("budget, fits", [(2.0, True), (np.nextafter(2.0, 0), False)])
def test_a_lot_that_costs_just_the_budget_fits(budget, fits):
    plan = Plan(PoissonSampler(0.01), Sanitizer(flat_group([("a", "W")], 1.0, 1.0)), 1, 600)
    accountant = SimpleNamespace(epsilon=lambda ledger, delta: SimpleNamespace(upper=2.0))
    if fits:
        plan.check_budget(accountant, Ledger(), budget, 1e-5)
    else:
        with pytest.raises(BudgetExceededError, match="not one lot fits"):
            plan.check_budget(accountant, Ledger(), budget, 1e-5)


@pytest.mark.parametrize("noise_std", [0.0, 2.0])
def test_ranks_that_exchange_slices_release_what_one_process_does(noise_std):
    ranks = 3
    raw = {("a", "W"): np.arange(5.0), ("b", "W"): np.arange(6.0).reshape(2, 3)}
    stds = dict.fromkeys(raw, noise_std)
    board, barrier = [None] * ranks, threading.Barrier(ranks, timeout=60)

    def of_rank(rank):
        draws = Streams(7).noise(0)
        ours = {key: each if rank == 1 else np.zeros_like(each) for key, each in raw.items()}
        me = Rank(rank, board, barrier)
        return exchange.release_over_ranks(me, [ours], stds, draws, 0.5, "float64")

    with ThreadPoolExecutor(ranks) as pool:
        found = list(pool.map(of_rank, range(ranks)))
    alone = module.released(list(raw.values()), list(stds.values()), Streams(7).noise(0), (), 0.5)
    for each in found:
        for got, expected in zip(each.values(), alone):
            np.testing.assert_array_equal(got, expected)


def test_a_sum_whose_noise_is_drawn_on_its_device_is_scaled(monkeypatch):
    def add_normals(state, begin, noise_std, grid, total):
        total += 1

    monkeypatch.setattr(module, "kernel", lambda name, *arrays: add_normals)
    raw = guarded_backend().asarray(np.arange(3.0))
    found = module.released([raw], [2.0], Streams(7).noise(0), (), 0.5, "float64")[0]
    np.testing.assert_array_equal(to_host(found), [0.5, 1.0, 1.5])


def test_cells_without_clear_counts_are_no_part_of_a_narrowed_column():
    edges = columns.equal(np.zeros(1), np.full(1, 4.0), 4)
    counts = np.array([[0.0, 0.0, 500.0, 500.0, 0.0, 0.0]])
    low, high = columns.narrowed(counts, edges, 1.0, 1000)
    assert (low.item(), high.item()) == (1.0, 3.0)


def test_where_no_delta_suffices_delta_is_1():
    basic = make("basic", Ledger().relation)
    assert basic.delta_of([(Gaussian(0.01), 1000)], 1e-3) == Bound(None, 1.0, 1.0)


@pytest.mark.parametrize("group_size", [1, 2])
def test_each_accountant_is_asked_for_epsilon_at_delta_and_for_delta_at_epsilon(group_size):
    ledger = Ledger(entries=[(Gaussian(4.0),)])
    accountant = make("basic", ledger.relation)
    asked = accountant if group_size == 1 else GroupAccountant(accountant, group_size)
    at_delta = all_bounds(ledger, ["basic"], delta=1e-5, group_size=group_size)["basic"][0]
    at_epsilon = all_bounds(ledger, ["basic"], epsilon=3.0, group_size=group_size)["basic"][0]
    assert at_delta == asked.epsilon(ledger, 1e-5)
    assert at_epsilon == asked.delta(ledger, 3.0)


def test_moments_allow_for_the_rounding_of_exponents_in_both_tails():
    q, sigma, n = 0.01, 2.0, np.array([8.0])
    value, error = log_moments(q, sigma, n)
    reach = n / sigma + TAIL
    least = (RELATIVE_ERROR + 2e-15 * reach**2) * -np.expm1(-value)
    assert (error >= least).all()
