"""Canaries: examples whose clipped gradient is one coordinate, in training with the library's own classes.

A network of one linear layer learns targets that are far away, by steps too small to get there: canary number c has the
input e_i and a target along e_o, hence the gradient 10 e_i e_o^T at every step, clipped to norm 1, and nothing else is in its
coordinate. So each canary is a trial by itself. The attacker sees every release (Nasr et al. 2021, arXiv:2101.04535), or the
last iterate alone.
"""
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from minidp import nn
from minidp.audit import empirical
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.privacy import Gaussian, JointGaussian, Ledger, LossDistributionAccountant, PoissonSampled
from minidp.privacy.catalogue import make
from minidp.privacy.gaussian import gaussian_epsilon
from minidp.ranks import SOLO, Solo
from minidp.streams import Streams
from minidp.train import SGD, Trainer

CLIP, SIZE, RATE, SIDE = 1.0, 10.0, 2.0**-20, 75  # canaries have ten times the norm that clipping allows
DELTA, ERROR, ALARM = 1e-5, 0.05, 1e-6  # a bound is wrong in at most ERROR of all audits; ALARM accuses right training


class Made(NamedTuple):
    """The parts of training under attack; the library's own by default."""

    sanitizer: type = Sanitizer
    sampler: type = PoissonSampler
    trainer: type = Trainer


class Recorder(SGD):
    """Descent that keeps what it is given: every released gradient, all parameters in a row."""

    def __init__(self):
        super().__init__(RATE)
        self.released = []

    def update(self, params, grads, step, noise_std={}):
        self.released.append(np.concatenate([grads[key].ravel() for key in params]))
        super().update(params, grads, step, noise_std)


class Rank(Solo):
    """One of several ranks, each a thread of this process."""

    def __init__(self, rank, board, barrier):
        self.rank, self.size, self._board, self._barrier = rank, len(board), board, barrier

    def collect(self, value):
        self._board[self.rank] = value
        self._barrier.wait()
        found = list(self._board)
        self._barrier.wait()
        return found

    def any(self, flag):
        return any(self.collect(flag))

    def scatter_sum(self, flat):
        return np.split(sum(self.collect(flat)), self.size)[self.rank]

    def gather(self, part):
        return np.concatenate(self.collect(part))


@dataclass(frozen=True)
class Seen:
    """What the attacker has, one column a canary: scores (steps, canaries), whether it was in the lot, and its last score.

    A score is <released sum, direction of the canary's gradient>; `last` is its sum over the steps, from the last iterate.
    """

    scores: np.ndarray
    present: np.ndarray
    last: np.ndarray
    plan: Plan

    def apart(self):
        """(scores of canaries in a lot, of canaries not in it)."""
        return self.scores[self.present], self.scores[~self.present]


def watch(made, sigma, q, steps, seed, inputs=SIDE, outputs=SIDE, *, bias=False, included=None, ranks=1, batches=1,
          groups=per_layer_groups):
    """Train on canaries, one for each weight, and return what was Seen.

    bias      with inputs=1: canary c moves W_0c and b_c alike
    included  which canaries are in the data, (inputs x outputs,); all by default
    batches   that a lot is computed in
    """
    numbers = np.flatnonzero(np.ones(inputs * outputs) if included is None else included)
    x = np.eye(inputs, dtype="float32")[numbers // outputs]
    y = -SIZE * np.eye(outputs, dtype="float32")[numbers % outputs]
    lot = q * len(numbers)

    def train(rank):
        network = nn.Sequential([nn.Dense(inputs, outputs, bias=bias, init=nn.init.zeros)], (inputs,))
        plan = Plan(made.sampler(q), made.sanitizer(groups(network.params, CLIP, sigma)), steps, lot)
        recorder = Recorder()
        made.trainer(network, nn.SquaredError(), recorder, plan, batch_size=math.ceil(lot / batches), ranks=rank).run(
            x, y, Streams(seed))
        last = np.concatenate([array.ravel() for array in network.params.values()])
        return plan, np.array(recorder.released), -last / RATE

    if ranks == 1:
        plan, released, last = train(SOLO)
    else:
        board, barrier = [None] * ranks, threading.Barrier(ranks)
        with ThreadPoolExecutor(ranks) as pool:
            plan, released, last = list(pool.map(train, [Rank(rank, board, barrier) for rank in range(ranks)]))[0]
    present = np.zeros((steps, inputs * outputs), dtype=bool)
    for step, members in enumerate(plan.sampler.lots(len(numbers), steps, Streams(seed).sampling)):
        present[step, numbers[members]] = True
    scored = lambda sums: lot * ((sums[..., :outputs] + sums[..., outputs:]) / math.sqrt(2) if bias else sums)
    return Seen(scored(released), present, scored(last), plan)


def every_step(scores, q, mu):
    """(canaries,) the logarithm of the likelihood ratio of each canary's scores, those of a Gaussian of `mu` sampled with q."""
    scores = scores.astype(np.float64) * mu**2  # in units of the shift: (1 - q) N(0, 1/mu^2) + q N(1, 1/mu^2)
    return np.log1p(q * np.expm1(scores - mu**2 / 2)).sum(axis=0)


def bound(inside, outside, q, steps):
    """{"lower": epsilon at 95%, "beyond_doubt": at 1 - ALARM, "trials"}; a quarter of the scores chooses the threshold."""
    (first_in, rest_in), (first_out, rest_out) = (np.split(scores, [len(scores) // 4]) for scores in (inside, outside))
    found = empirical.counted(rest_in, rest_out, empirical.threshold_of(first_in, first_out))
    lower, beyond = (empirical.epsilon_refuted(lambda claim: found.refute(claim, error), q, steps, DELTA)
                     for error in (ERROR, ALARM))
    return {"lower": lower, "beyond_doubt": beyond, "trials": len(inside) + len(outside)}


def gaussian_bound(inside, outside, q, steps):
    """The same by a fit of Gaussians to scores of single releases, whose composition is known."""
    lower, beyond = (empirical.composed_epsilon(empirical.mu_lower(inside, outside, 1 - error), q, steps, DELTA)
                     for error in (ERROR, ALARM))
    return {"lower": lower, "beyond_doubt": beyond, "trials": len(inside) + len(outside)}


def one_run(scores, included, q, steps):
    """{"steinke": .., "f_dp": ..}: both bounds from the same guesses of one run."""
    right, m = empirical.guesses(scores, included), len(scores)
    errors = (ERROR, ALARM)
    steinke = [empirical.one_run_epsilon(right, m, DELTA, error) for error in errors]
    f_dp = [empirical.epsilon_refuted(lambda claim: empirical.one_run_refutes(claim, right, m, error), q, steps, DELTA)
            for error in errors]
    return {name: {"lower": lower, "beyond_doubt": beyond, "trials": m}
            for name, (lower, beyond) in (("one run, Steinke", steinke), ("one run, f-DP", f_dp))}


def power(certified, mu_step, q, steps, reach=0.8):
    """(scores of single releases, trials of whole runs in each world) that the attacks need, by calculation.

    Single releases: 96% of the certified epsilon is to be reached but in one audit of a hundred. With N scores the fit loses
    (z_0.975 + z_0.99) (2 / mu + 1 / sqrt 2) / sqrt N of mu, by the standard errors of shift and spread. Whole runs are taken
    to be as hard as one Gaussian of the same epsilon, of which `reach` of mu is to be reached but in one audit of twenty.
    """
    lost = next(lost for lost in (0.035, 0.03, 0.025, 0.02, 0.015, 0.01, 0.005)
                if empirical.composed_epsilon((1 - lost) * mu_step, q, steps, DELTA) >= 0.96 * certified or lost == 0.005)
    fit = math.ceil(((1.96 + 2.33) * (2 / mu_step + 0.5**0.5) / lost) ** 2)
    mu = _gaussian_mu(certified)
    claim = empirical.Claim(empirical.ledger_of(1 / (reach * mu), 1.0, 1))
    tpr, fpr = (float(empirical.special.ndtr(sign * mu / 2)) for sign in (1, -1))
    return fit, empirical.trials_needed(tpr, fpr, lambda counts: counts.refute(claim, ERROR), 0.05)


def _gaussian_mu(epsilon):
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_epsilon(middle, DELTA) < epsilon else (low, middle)
    return low


def whole_runs(q, mu, steps, whole, seed, score, sigma, inputs, outputs, **how):
    """[(every-step scores, last scores, included)] of as many runs as `whole` tested trials in each world take, and the plan."""
    found, canaries = [], inputs * outputs
    for run in range(max(2, -(-8 * whole // (3 * canaries)))):  # a quarter chooses the threshold
        included = Streams(seed + 2 * run).init.random(canaries) < 0.5
        seen = watch(Made(), sigma, q, steps, seed + 2 * run + 1, inputs, outputs, included=included, **how)
        found.append((every_step(score * seen.scores, q, mu), seen.last, included))
    return found, seen.plan


def worlds(runs, place):
    """(inside, outside) scores of several runs."""
    return (np.concatenate([run[place][run[2] == world] for run in runs]) for world in (True, False))


def attack(epsilon, q, steps, seed, side=SIDE):
    """All attacks on training that is certified at (epsilon, DELTA): {"certified": interval, "bounds": {attack: bound}, ...}."""
    accountant, canaries = LossDistributionAccountant(), side * side
    plan = Plan(PoissonSampler(q), Sanitizer(per_layer_groups([("dense1", "W")], CLIP, 1.0)), steps, q * canaries / 2)
    sigma = plan.calibrated(accountant, epsilon, DELTA).sanitizer.groups[0].noise_multiplier
    fit, whole = power(epsilon, 1 / sigma, q, steps)
    single = watch(Made(), sigma, 0.5, max(2, -(-fit // canaries)), seed, side, side)
    bounds = {"every step, Gaussian fit": gaussian_bound(*single.apart(), q, steps)}
    runs, plan = whole_runs(q, 1 / sigma, steps, whole, seed + 1, 1.0, sigma, side, side)
    bounds["every step, counted"] = bound(*worlds(runs, 0), q, steps)
    bounds["last iterate, counted"] = bound(*worlds(runs, 1), q, steps)
    bounds |= one_run(runs[0][0], runs[0][2], q, steps)
    certified = accountant.epsilon(plan.ledger(), DELTA)
    return {"q": q, "steps": steps, "noise_multiplier": sigma, "certified": [certified.lower, certified.upper],
            "trials_needed": {"scores of single releases": fit, "whole runs in each world": whole}, "bounds": bounds}


def per_tensor(params, clip_norm, sigma):
    """Each tensor clipped and noised by itself, as the code of 2016 did."""
    return [replace(flat_group([key], clip_norm, sigma)[0], name=".".join(key)) for key in params]


def attack_2016(seed, lots=(100, 200, 300, 500, 700, 1000), outputs=500, reach=0.95):
    """The code of 2016 at sigma 1, sigma_pca 4, q 0.01: its ledger charges each of two tensors as if of a lot of its own.

    A canary moves both tensors by C, hence by sqrt 2 C against noise of C. The ledger's figures hold the release of PCA,
    which is not attacked: without it they would be lower still.
    """
    sigma, q, both = 1.0, 0.01, math.sqrt(2)
    pca, step = (Gaussian(4.0), 1), PoissonSampled(q, JointGaussian((sigma, sigma)))
    theirs, joint, moments = make("ledger_2016"), LossDistributionAccountant(), make("moments")
    rows = {n: Ledger(entries=[pca, (step, n)]) for n in lots}
    certified = {n: joint.epsilon(ledger, DELTA) for n, ledger in rows.items()}
    fit, whole = power(empirical.composed_epsilon(both / sigma, q, lots[-1], DELTA), both / sigma, q, lots[-1], reach)
    how = {"bias": True, "groups": per_tensor}
    scores = watch(Made(), sigma, 0.5, max(2, -(-fit // outputs)), seed, 1, outputs, **how).apart()
    mu = empirical.mu_lower(*scores, 1 - ERROR)
    runs, _ = whole_runs(q, both / sigma, lots[-1], whole, seed + 1, 1 / both, sigma, 1, outputs, **how)
    return {"delta": DELTA, "noise_multiplier": sigma, "pca_noise_multiplier": 4.0, "q": q, "tensors": 2, "lots": list(lots),
            "printed": [theirs.epsilon(ledger, DELTA).upper for ledger in rows.values()],
            "certified": [[found.lower, found.upper] for found in certified.values()],
            "joint_moments": [moments.epsilon(ledger, DELTA).upper for ledger in rows.values()],
            "mu_lower": mu, "lower": [empirical.composed_epsilon(mu, q, n, DELTA) for n in lots],
            "trials_needed": {"scores of single releases": fit, "whole runs in each world": whole},
            "bounds": {"every step, Gaussian fit": gaussian_bound(*scores, q, lots[-1]),
                       "every step, counted": bound(*worlds(runs, 0), q, lots[-1])}}
