"""Canaries: examples whose clipped gradient is one coordinate, in training with the library's own
classes.

A network of one linear layer learns targets that are far away, by steps too small to get there:
canary c has the input e_i and a target along e_o, hence the gradient 10 e_i e_o^T at every step,
clipped to norm 1, and nothing else is in its coordinate. So each canary is a trial by itself. The
attacker sees every release (Nasr et al. 2021, arXiv:2101.04535) or the last iterate alone.
"""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from minidp import nn
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    PoissonSampled,
)
from minidp.privacy.catalogue import make
from minidp.privacy.gaussian import gaussian_epsilon
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tools.attacks import empirical

# canaries have ten times the norm that clipping allows
CLIP, SIZE, RATE, SIDE = 1.0, 10.0, 2.0**-20, 75
# a bound is wrong in at most ERROR of all audits; ALARM accuses right training
DELTA, ERROR, ALARM = 1e-5, 0.05, 1e-6


class Recorder(SGD):
    """Descent that keeps what it is given: every released gradient, all parameters in a row."""

    def __init__(self):
        super().__init__(RATE)
        self.released = []

    def update(self, params, grads, step, noise_std={}):
        self.released.append(np.concatenate([grads[key].ravel() for key in params]))
        super().update(params, grads, step, noise_std)


class Seen(NamedTuple):
    """What the attacker has, a column for each canary: scores (steps, canaries), whether it was in
    the lot, and last.

    A score is <released sum, the canary's direction>; `last` is its sum over the steps, from the
    last iterate.
    """

    scores: np.ndarray
    present: np.ndarray
    last: np.ndarray
    plan: Plan

    def apart(self):
        """(scores of canaries in a lot, of canaries not in it)."""
        return self.scores[self.present], self.scores[~self.present]


def watch(
    sigma, q, steps, seed, inputs, outputs, *, bias=False, included=None, groups=per_layer_groups
):
    """Train on canaries, one for each weight, and return what was Seen.

    bias: with inputs=1, canary c moves W_0c and b_c alike. included: which canaries are in the
    data, by default all.
    """
    numbers = np.flatnonzero(np.ones(inputs * outputs) if included is None else included)
    x = np.eye(inputs, dtype="float32")[numbers // outputs]
    y = -SIZE * np.eye(outputs, dtype="float32")[numbers % outputs]
    lot, recorder = q * len(numbers), Recorder()
    network = nn.Sequential([nn.Dense(inputs, outputs, bias=bias, init=nn.init.zeros)], (inputs,))
    plan = Plan(PoissonSampler(q), Sanitizer(groups(network.params, CLIP, sigma)), steps, lot)
    Trainer(network, nn.SquaredError(), recorder, plan).run(x, y, Streams(seed))
    released = np.array(recorder.released)
    last = -np.concatenate([array.ravel() for array in network.params.values()]) / RATE
    present = np.zeros((steps, inputs * outputs), dtype=bool)
    for step, members in enumerate(plan.sampler.lots(len(numbers), steps, Streams(seed).sampling)):
        present[step, numbers[members]] = True

    def scored(sums):
        return lot * ((sums[..., :outputs] + sums[..., outputs:]) / math.sqrt(2) if bias else sums)

    return Seen(scored(released), present, scored(last), plan)


def every_step(scores, q, mu):
    """(canaries,) the log likelihood ratio of scores: Gaussians of variance 1/mu^2, moved by 1 with
    chance q.
    """
    return np.log1p(q * np.expm1(mu**2 * (scores.astype(np.float64) - 0.5))).sum(axis=0)


def figures(epsilon, trials):
    """A lower bound, epsilon(error): {"lower": at 95% confidence, "beyond_doubt": at 1 - ALARM,
    "trials"}.
    """
    return {"lower": epsilon(ERROR), "beyond_doubt": epsilon(ALARM), "trials": trials}


def refuting(refuted, trials, q, steps, single=False):
    """The figures of the weakest claim that refuted(claim, error) refutes."""

    def epsilon(error):
        return empirical.epsilon_refuted(partial(refuted, error=error), q, steps, DELTA, single)

    return figures(epsilon, trials)


def counted(inside, outside, q, steps, single=False):
    """The bound of scores, of whole runs or single releases; a quarter chooses the threshold to
    count the others.
    """
    (first_in, rest_in), (first_out, rest_out) = (
        np.split(scores, [len(scores) // 4]) for scores in (inside, outside)
    )
    found = empirical.counted(rest_in, rest_out, empirical.threshold_of(first_in, first_out))
    return refuting(found.refute, len(inside) + len(outside), q, steps, single)


def one_run(scores, included, q, steps):
    """Both bounds from the same guesses of one run."""
    right, m = empirical.guesses(scores, included), len(scores)
    steinke = partial(empirical.one_run_epsilon, right, m, DELTA)
    f_dp = partial(empirical.one_run_refutes, right=right, canaries=m)
    return {
        "one run, Steinke": figures(steinke, m),
        "one run, f-DP": refuting(f_dp, m, q, steps),
    }


def power(mu_step, q, steps, reach=0.8):
    """{what: how many in each world} the attacks need, by calculation, to fall short in one audit
    of fifty.

    Single releases are to show 96% of epsilon. Whole runs are taken to be as hard as one Gaussian
    of the same epsilon, and are to show `reach` of its mu. A third more choose the threshold.
    """
    epsilon = empirical.composed_epsilon(mu_step, q, steps, DELTA)
    share = next(
        share
        for share in (0.965, 0.97, 0.975, 0.98, 0.985, 0.99, 0.995)
        if empirical.composed_epsilon(share * mu_step, q, steps, DELTA) >= 0.96 * epsilon
    )
    mu, needs = optimize.brentq(lambda mu: gaussian_epsilon(mu, DELTA) - epsilon, 1e-3, 100), {}
    for what, mu, share in (("single releases", mu_step, share), ("whole runs", mu, reach)):
        claim = empirical.Claim(empirical.ledger_of(1 / (share * mu), 1.0, 1))
        refuted = partial(empirical.Counts.refute, claim=claim, error=ERROR)
        rates = special.ndtr([mu / 2, -mu / 2])
        needs[what] = math.ceil(empirical.trials_needed(*rates, refuted, 0.02) * 4 / 3)
    return needs


def lots_for(needed, canaries):
    """Lots, or runs, of so many canaries that give the scores needed in each world."""
    return max(2, -(-2 * needed // canaries))


def whole_runs(q, mu, steps, needed, seed, sigma, inputs, outputs, shift=1.0, **how):
    """(every-step scores, last scores, whether included), (runs, canaries) each, and the plan.

    Of as many runs as `needed` scores in each world take.
    """
    found, canaries = [], inputs * outputs
    for run in range(lots_for(needed, canaries)):
        included = Streams(seed + 2 * run).init.random(canaries) < 0.5
        seen = watch(sigma, q, steps, seed + 2 * run + 1, inputs, outputs, included=included, **how)
        found.append((every_step(seen.scores / shift, q, mu), seen.last, included))
    return *map(np.array, zip(*found)), seen.plan


def attack(epsilon, q, steps, seed, side=SIDE):
    """All attacks on training that is certified at (epsilon, DELTA), with the certified
    interval.
    """
    accountant, canaries = LossDistributionAccountant(), side * side
    sanitizer = Sanitizer(flat_group([("dense1", "W")], CLIP, 1.0))
    plan = Plan(PoissonSampler(q), sanitizer, steps, q * canaries / 2)
    sigma = plan.calibrated(accountant, epsilon, DELTA).sanitizer.groups[0].noise_multiplier
    releases, needed = (needs := power(1 / sigma, q, steps)).values()
    single = watch(sigma, 0.5, lots_for(releases, canaries), seed, side, side)
    every, last, inside, plan = whole_runs(q, 1 / sigma, steps, needed, seed + 1, sigma, side, side)
    certified = accountant.epsilon(plan.ledger(), DELTA)
    return {
        "q": q,
        "steps": steps,
        "noise_multiplier": sigma,
        "certified": [certified.lower, certified.upper],
        "trials_needed": needs,
        "bounds": {
            "every step, releases composed": counted(*single.apart(), q, steps, single=True),
            "every step, whole runs": counted(every[inside], every[~inside], q, steps),
            "last iterate, whole runs": counted(last[inside], last[~inside], q, steps),
            **one_run(every[0], inside[0], q, steps),
        },
    }


def per_tensor(params, clip_norm, sigma):
    """Each tensor clipped and noised by itself, as the code of 2016 did."""
    return [replace(flat_group([key], clip_norm, sigma)[0], name=".".join(key)) for key in params]


def attack_2016(seed, lots=(100, 200, 300, 500, 700, 1000), outputs=500, reach=0.95):
    """The code of 2016 at sigma 1, sigma_pca 4, q 0.01: it charges each of two tensors as if from a
    lot of its own.

    A canary moves both by C, hence by sqrt 2 C against noise of C. PCA's release is charged and not
    attacked.
    """
    sigma, q, both, most = 1.0, 0.01, math.sqrt(2), lots[-1]
    step = PoissonSampled(q, JointGaussian((sigma, sigma)))
    ledgers = [Ledger(entries=[(Gaussian(4.0), 1), (step, n)]) for n in lots]
    printed, certified, moments = (
        [make(name).epsilon(ledger, DELTA) for ledger in ledgers]
        for name in ("ledger_2016", "loss_distribution", "moments")
    )
    releases, needed = (needs := power(both / sigma, q, most, reach)).values()
    how = {"bias": True, "groups": per_tensor}
    single = watch(sigma, 0.5, lots_for(releases, outputs), seed, 1, outputs, **how)
    scores = [found / both for found in single.apart()]
    whole = q, both / sigma, most, needed, seed + 1, sigma, 1, outputs, both
    every, _, inside, _ = whole_runs(*whole, **how)
    bounds = [counted(*scores, q, n, single=True) for n in lots]
    return {
        "delta": DELTA,
        "noise_multiplier": sigma,
        "pca_noise_multiplier": 4.0,
        "q": q,
        "tensors": 2,
        "lots": list(lots),
        "printed": [found.upper for found in printed],
        "certified": [[found.lower, found.upper] for found in certified],
        "joint_moments": [found.upper for found in moments],
        "lower": [found["lower"] for found in bounds],
        "trials_needed": needs,
        "bounds": {
            "every step, releases composed": bounds[-1],
            "every step, whole runs": counted(every[inside], every[~inside], q, most),
        },
    }
