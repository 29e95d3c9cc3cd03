"""Ten faults planted in private training, and the attacks that have to flag them, whichever it is.

Every attack counts scores in two worlds and holds the counts against what the implementation's own ledger claims. All are
run on each implementation, each at its share of the level (Bonferroni): right training is flagged in at most LEVEL of all
audits. Thresholds come from the noise-free shift, never from the scores; `trials` come from a power calculation.
"""
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from minidp import nn
from minidp.audit import empirical
from minidp.grads import Outer
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, ShuffleSampler, flat_group
from minidp.privacy import Ledger
from minidp.ranks import SOLO
from minidp.streams import Streams
from minidp.train import Trainer
from tools.attack_pictures import aligned, box_muller, on_lattice
from tools.attacks.canaries import CLIP, Made, Recorder, watch

LEVEL, SIGMA, RANKS, BATCHES, PAIRS, LOT, KEY = 0.05, 0.5, 4, 4, 100, 8192, ("layer", "W")
OTHERS = 10  # examples that share a direction, whose number leaks through the divisor


def with_noise(sanitizer, share):
    """A sanitizer that adds a share of the noise that this one charges."""
    return Sanitizer(tuple(replace(group, noise_multiplier=share * group.noise_multiplier) for group in sanitizer.groups))


class QuietSanitizer(Sanitizer):
    """Half of the noise that it charges."""

    def release(self, *arguments):
        return with_noise(self, 1 / 2).release(*arguments)


class UnclippedSanitizer(Sanitizer):
    """Norms are not looked at."""

    def _sq_norms(self, group, grads):
        return 0 * super()._sq_norms(group, grads)


class NoisyBatches(Sanitizer):
    """Noise in each batch, a quarter of it, as if four batches made up for it; none for the lot."""

    def add_clipped(self, *arguments, **named):
        total = super().add_clipped(*arguments, **named)
        total.update(with_noise(self, 1 / BATCHES).release(total, Streams().noise("batch")))
        return total

    def release(self, *arguments):
        return with_noise(self, 0).release(*arguments)


class SameSeed(Sanitizer):
    """The same numbers at every step."""

    def release(self, raw_sum, draws, *others):
        return super().release(raw_sum, Streams(0).noise(0), *others)


class ClaimedPoisson(PoissonSampler):
    """Shuffled lots under the Poisson sampler's name and event."""

    def lots(self, num_examples, *arguments):
        size = round(self.sampling_probability * num_examples)
        return ShuffleSampler(num_examples, size).lots(num_examples, *arguments)


class Float32Noise(Sanitizer):
    """Noise in float32 by the method of Box and Muller, added in float32."""

    def noisy(self, group, raw, draws, others=(), scale=1.0, dtype=None):
        rng, total = np.random.default_rng(draws.words(1)), sum(others, raw).astype(np.float32)
        noise = box_muller(rng, total.size + total.size % 2, group.noise_std)[: total.size]
        return ((total + noise.reshape(total.shape)) * np.float32(scale)).astype(dtype or raw.dtype)


class Float32Sums(Sanitizer):
    """Sums in float32, one gradient after the other, and nothing charged for their rounding."""

    def _add(self, grads, weights, total, rows):
        for key, grad in grads.items():
            each = grad.materialise()
            each = each * weights.astype(np.float32).reshape((-1,) + (1,) * (each.ndim - 1))
            total[key] = np.add.accumulate(np.concatenate([[total.get(key, 0 * each[0])], each]), dtype=np.float32)[-1]


class LeakyTrainer(Trainer):
    """Divides by the size of the lot at hand."""

    def step(self, examples, lot, *others):
        self.plan = replace(self.plan, expected_lot_size=max(1, len(lot)))
        super().step(examples, lot, *others)


class QuietRanks(Sanitizer):
    """Every rank adds its share of the noise to its own sum: independent shares add up to less than the whole."""

    def release(self, raw_sum, draws, others=(), scale=1.0, dtype="float64", ranks=SOLO):
        if ranks.size == 1:
            return super().release(raw_sum, draws, others, scale, dtype)
        mine = with_noise(self, 1 / ranks.size).release(raw_sum, Streams().noise("rank"), others, scale, dtype)
        return {key: sum(part) for key, part in zip(mine, zip(*(each.values() for each in ranks.collect(mine))))}


class PerTensor(Sanitizer):
    """Clips each tensor of a group to C, and charges C for the group."""

    def _add_group(self, group, grads, *others):
        for key, grad in grads.items():
            super()._add_group(replace(group, keys=(key,)), {key: grad}, *others)


FAULTS = {
    "noise halved": Made(QuietSanitizer),
    "clipping left out": Made(UnclippedSanitizer),
    "noise once a batch": Made(NoisyBatches),
    "seed reused": Made(SameSeed),
    "Poisson claimed, shuffling done": Made(sampler=ClaimedPoisson),
    "float32 noise": Made(Float32Noise),
    "float32 sums, rounding not charged": Made(Float32Sums),
    "divided by the lot's own size": Made(trainer=LeakyTrainer),
    "too little noise on each rank": Made(QuietRanks),
    "group of tensors clipped tensor by tensor": Made(PerTensor),
}


class Attack(NamedTuple):
    """One attack. watch(made, seed, trials) gives (scores inside, outside, the ledger's claim about the two worlds).

    rates  (true, false) positive rates under the fault that it was made for, from which its trials are calculated
    """

    question: str
    watch: Callable[[Made, int, int], Any]
    threshold: float
    rates: tuple[float, float]


def _released(plan):
    """The ledger of one release, which canaries in a lot and not in it are told apart by."""
    return Ledger(plan.relation, [(plan.release_event(), 1)])


def _canaries(made, seed, trials, **how):
    seen = watch(made, SIGMA, 0.5, 1, seed, -(-2 * trials // 40), 44, batches=BATCHES, **how)
    return *seen.apart(), _released(seen.plan)


def _two_steps(made, seed, trials):
    """What the first step's noise leaves when the second step's release is taken off; canaries in neither lot are the others."""
    seen = watch(made, 4.0, 0.5, 2, seed, -(-5 * trials // 40), 44)
    (first, second), difference = seen.present, seen.scores[0] - seen.scores[1]
    return difference[first & ~second], difference[~first & ~second], _released(seen.plan)


def _epoch(made, seed, trials):
    """The sum over two steps, of canaries in the data and not in it: of each as many, an even number."""
    rows = 2 * -(-trials // 40)
    included = Streams(seed + 1).init.permutation(44 * rows) < 22 * rows
    seen = watch(made, 0.2, 0.5, 2, seed, rows, 44, included=included)
    total = seen.scores.sum(axis=0)
    return total[included], total[~included], seen.plan.ledger()


def _lattice(made, seed, trials):
    """The share of pairs of numbers that float32 noise alone can be, where the raw sum is 0 and where it is C in all."""
    sanitizer, streams = made.sanitizer(flat_group([KEY], CLIP, 4.0)), Streams(seed)

    def share(raw, place):
        released = sanitizer.release({KEY: np.full(2 * PAIRS, raw)}, streams.noise(place), (), 1.0, np.float32)[KEY]
        return on_lattice(released[:PAIRS], released[PAIRS:], 4.0).mean()

    scores = [np.array([share(raw, 2 * i + w) for i in range(trials)]) for w, raw in enumerate((0.0, (2 * PAIRS) ** -0.5))]
    return *scores, Ledger(entries=[(sanitizer.event(PoissonSampler.relation), 1)])


def _worst_sums(made, seed, trials):
    """Releases of the sum of a lot whose roundings line up, and of the same lot without its first member."""
    v = aligned(LOT, 1 - 2**-10, 0, 1.01)
    plan = Plan(made.sampler(1.0), made.sanitizer(flat_group([KEY], CLIP, SIGMA)), 1, LOT)
    raw = [plan.sanitizer.add_clipped({KEY: Outer(np.ones((len(d), 1), "float32"), d[:, None])}, products=plan.products.for_lot(LOT))
           for d in (v, v[1:])]
    exact, streams = float(v[1:].astype(float).sum()), Streams(seed)
    scores = [np.array([plan.sanitizer.release(dict(raw[w]), streams.noise(2 * i + w))[KEY].item() for i in range(trials)])
              for w in (0, 1)]
    return *(each - exact for each in scores), _released(plan)


def _known_others(made, seed, trials):
    """Releases of OTHERS gradients of one direction, with and without one against them; all are in every lot."""
    scores = []
    for world in (0, 1):
        y = np.full((OTHERS + 1 - world, 1), -10.0, "float32")
        y[OTHERS:] = 10
        network, recorder = nn.Sequential([nn.Dense(1, 1, bias=False, init=nn.init.zeros)], (1,)), Recorder()
        plan = Plan(made.sampler(1.0), made.sanitizer(flat_group(network.params, CLIP, SIGMA)), trials, OTHERS)
        made.trainer(network, nn.SquaredError(), recorder, plan, ranks=SOLO).run(np.ones_like(y), y, Streams(seed + world))
        scores.append(OTHERS * (1 - np.concatenate(recorder.released)))
    return *scores, _released(plan)


def _tensors(made, seed, trials):
    seen = watch(made, SIGMA, 0.5, -(-9 * trials // 800), seed, 1, 200, bias=True)
    return *seen.apart(), _released(seen.plan)


def _normal(shift, threshold, std):
    """(true, false) positive rates of N(shift, std^2) and N(0, std^2) above a threshold."""
    return float(ndtr((shift - threshold) / std)), float(ndtr(-threshold / std))


SHRUNK = OTHERS / (OTHERS + 1)  # what a leaky divisor makes of the noise with the example; the shift becomes 2 SHRUNK
HALVED = _normal(1, 0.5, 0.6 * SIGMA)  # as lots of uneven batches have it
ATTACKS = {
    "canaries": Attack("is one more example in this lot?", _canaries, 0.5, HALVED),
    "two steps": Attack("does another step's noise cancel this one's?", _two_steps, 0.5, _normal(1, 0.5, 0.1)),
    "an epoch": Attack("is the example in the data, of which two lots take half each?", _epoch, 0.5, _normal(1, 0.5, 0.2 * 2**0.5)),
    "last bits": Attack("could float32 noise alone be this?", _lattice, 0.6, (0.99, 0.01)),
    "worst sums": Attack("do roundings move the sum further than is charged?", _worst_sums, 1.0, _normal(1.99, 1.0, SIGMA)),
    "known others": Attack("does the divisor tell the lot's size?", _known_others, 0.9,
                           (float(ndtr(0.9 / (SHRUNK * SIGMA))), float(ndtr(-0.9 / SIGMA)))),
    "ranks": Attack("is one more example in a lot that four ranks share?", partial(_canaries, ranks=RANKS), 0.5, HALVED),
    "both tensors": Attack("is an example in this lot that moves two tensors?", _tensors, 0.7, _normal(2**0.5, 0.7, SIGMA)),
}
_claims: dict[str, empirical.Claim] = {}


def claim_of(ledger):
    """The ledger's claim; equal ledgers are read once."""
    text = ledger.canonical()
    if text not in _claims:
        _claims[text] = empirical.Claim(ledger)
    return _claims[text]


def error_each():
    """Each attack's share of the level."""
    return LEVEL / len(ATTACKS)


@cache
def plan_trials():
    """{attack: trials in each world}, from the claims of right training, before anything is attacked: the power calculation.

    A fault is to be missed in one of a million audits by the attack that was made for it.
    """
    needed = {}
    for name, attack in ATTACKS.items():
        claim = claim_of(attack.watch(Made(), 0, 4)[-1])
        needed[name] = empirical.trials_needed(*attack.rates, lambda counts: counts.refute(claim, error_each()))
    return needed


def flagged_by(made, seed):
    """[attacks that flag this implementation]: one audit."""
    found = []
    for place, (name, trials) in enumerate(plan_trials().items()):
        attack = ATTACKS[name]
        inside, outside, ledger = attack.watch(made, seed + 2 * place, trials)
        if empirical.counted(inside, outside, attack.threshold).refute(claim_of(ledger), error_each()):
            found.append(name)
    return found
