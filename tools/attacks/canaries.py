"""Canaries: examples whose clipped gradient is one coordinate, in training with the library's own
classes.

A network of one linear layer learns targets that are far away, by steps too small to get there:
canary c has the input e_i and a target along e_o, hence the gradient 10 e_i e_o^T at every step,
clipped to norm 1, and nothing else is in its coordinate. So each canary is a trial by itself. The
attacker sees every release (Nasr et al. 2021, arXiv:2101.04535).
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from minidp import nn
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    PoissonSampled,
)
from minidp.privacy.accountants import make
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tools.attacks import empirical

# canaries have ten times the norm that clipping allows
CLIP, SIZE, RATE, SIDE = 1.0, 10.0, 2.0**-20, 75
# a bound is wrong in at most ERROR of all audits; ALARM accuses right training
DELTA, ERROR, ALARM = 1e-5, 0.05, 1e-6
EVERY_STEP, ONE_RUN = "every step, releases composed", "one run, f-DP"


class Recorder(SGD):
    """Descent that keeps what it is given: every released gradient, all parameters in a row."""

    def __init__(self):
        super().__init__(RATE)
        self.released = []

    def update(self, params, grads, step):
        self.released.append(np.concatenate([grads[key].ravel() for key in params]))
        super().update(params, grads, step)


def watch(
    sigma, q, steps, seed, inputs, outputs, *, bias=False, included=None, groups=per_layer_groups
):
    """Train on canaries, one for each weight; returns (scores, whether the canary was in the lot),
    (steps, canaries) each, and the plan. A score is <released sum, the canary's direction>.

    bias: with inputs=1, canary c moves W_0c and b_c alike. included: which canaries are in the
    data, by default all.
    """
    numbers = np.flatnonzero(np.ones(inputs * outputs) if included is None else included)
    x = np.eye(inputs, dtype="float32")[numbers // outputs]
    y = -SIZE * np.eye(outputs, dtype="float32")[numbers % outputs]
    lot, recorder = q * len(numbers), Recorder()
    network = nn.Sequential([nn.Dense(inputs, outputs, bias=bias, init=nn.init.zeros)], (inputs,))
    plan = Plan(PoissonSampler(q), Sanitizer(groups(network.params, CLIP, sigma)), steps, lot)
    Trainer(network, nn.SquaredError(), recorder, plan).train(x, y, Streams(seed))
    scores = lot * np.array(recorder.released)
    if bias:
        scores = (scores[:, :outputs] + scores[:, outputs:]) / math.sqrt(2)
    present = np.zeros((steps, inputs * outputs), dtype=bool)
    for step, members in enumerate(plan.sampler.lots(len(numbers), steps, Streams(seed).sampling)):
        present[step, numbers[members]] = True
    return scores, present, plan


def every_step(scores, q, mu):
    """(canaries,) the log likelihood ratio of scores: Gaussians of variance 1/mu^2, moved by 1 with
    chance q.
    """
    return np.log1p(q * np.expm1(mu**2 * (scores.astype(np.float64) - 0.5))).sum(axis=0)


def figures(refuted, trials, q, steps, single=False):
    """The lower bound on epsilon of the weakest claim that refuted(claim, error) refutes: {"lower":
    at 95% confidence, "beyond_doubt": at 1 - ALARM, "trials"}.
    """

    def epsilon(error):
        return empirical.epsilon_refuted(partial(refuted, error=error), q, steps, DELTA, single)

    return {"lower": epsilon(ERROR), "beyond_doubt": epsilon(ALARM), "trials": trials}


def composed(inside, outside, q, steps):
    """The figures of `steps` sampled releases, from scores of single ones; a quarter of them
    chooses the threshold to count the others.
    """
    (first_in, rest_in), (first_out, rest_out) = (
        np.split(scores, [len(scores) // 4]) for scores in (inside, outside)
    )
    found = empirical.counted(rest_in, rest_out, empirical.threshold_of(first_in, first_out))
    return figures(found.refute, len(inside) + len(outside), q, steps, single=True)


def releases_needed(mu, q, steps):
    """Releases with a canary, and as many without, in which an attack shows 96% of epsilon but in
    one audit of fifty, by calculation. A third more choose the threshold.
    """
    epsilon = empirical.composed_epsilon(mu, q, steps, DELTA)
    share = next(
        share
        for share in (0.965, 0.97, 0.975, 0.98, 0.985, 0.99, 0.995)
        if empirical.composed_epsilon(share * mu, q, steps, DELTA) >= 0.96 * epsilon
    )
    claim = empirical.Claim(empirical.ledger_of(1 / (share * mu), 1.0, 1))
    refuted = partial(empirical.Counts.refute, claim=claim, error=ERROR)
    rates = special.ndtr([mu / 2, -mu / 2])
    return math.ceil(empirical.trials_needed(*rates, refuted, 0.02) * 4 / 3)


def lots_for(needed, canaries):
    """Lots, each with half of so many canaries, that give the scores needed in each world."""
    return max(2, -(-2 * needed // canaries))


def attack(epsilon, q, steps, seed, side=SIDE):
    """Both attacks on training that is certified at (epsilon, DELTA): every step, and one run."""
    accountant, canaries = LossDistributionAccountant(), side * side
    sanitizer = Sanitizer(flat_group([("dense1", "W")], CLIP, 1.0))
    plan = Plan(PoissonSampler(q), sanitizer, steps, q * canaries / 2)
    sigma = plan.calibrated(accountant, epsilon, DELTA).sanitizer.groups[0].noise_multiplier
    needed = releases_needed(1 / sigma, q, steps)
    scores, present, _ = watch(sigma, 0.5, lots_for(needed, canaries), seed, side, side)
    included = Streams(seed + 1).init.random(canaries) < 0.5
    run, _, plan = watch(sigma, q, steps, seed + 2, side, side, included=included)
    right = empirical.guesses(every_step(run, q, 1 / sigma), included)
    f_dp = partial(empirical.one_run_refutes, right=right, canaries=canaries)
    certified = accountant.epsilon(plan.ledger(), DELTA)
    return {
        "q": q,
        "steps": steps,
        "noise_multiplier": sigma,
        "certified": [certified.lower, certified.upper],
        "trials_needed": {"single releases": needed},
        "bounds": {
            EVERY_STEP: composed(scores[present], scores[~present], q, steps),
            ONE_RUN: figures(f_dp, canaries, q, steps),
        },
    }


def per_tensor(params, clip_norm, sigma):
    """Each tensor clipped and noised by itself, as the code of 2016 did."""
    return [replace(flat_group([key], clip_norm, sigma)[0], name=".".join(key)) for key in params]


def attack_2016(seed, lots=(100, 200, 300, 500, 700, 1000), outputs=500):
    """The code of 2016 at sigma 1, sigma_pca 4, q 0.01: it charges each of two tensors as if from a
    lot of its own.

    A canary moves both by C, hence by sqrt 2 C against noise of C. PCA's release is charged and not
    attacked.
    """
    sigma, q, both = 1.0, 0.01, math.sqrt(2)
    step = PoissonSampled(q, JointGaussian((sigma, sigma)))
    ledgers = [Ledger(entries=[(Gaussian(4.0), 1), (step, n)]) for n in lots]
    printed, certified, moments = (
        [make(name).epsilon(ledger, DELTA) for ledger in ledgers]
        for name in ("ledger_2016", "loss_distribution", "moments")
    )
    needed = releases_needed(both / sigma, q, lots[-1])
    how = {"bias": True, "groups": per_tensor}
    scores, present, _ = watch(sigma, 0.5, lots_for(needed, outputs), seed, 1, outputs, **how)
    inside, outside = scores[present] / both, scores[~present] / both
    bounds = [composed(inside, outside, q, n) for n in lots]
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
        "trials_needed": {"single releases": needed},
        "bounds": {EVERY_STEP: bounds[-1]},
    }
