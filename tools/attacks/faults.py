"""Ten faults planted in private training, and the eight attacks that have to flag them, whichever it is.

Every attack counts scores in two worlds and holds the counts against what the implementation's own ledger claims. All run
on each implementation, each at its share of LEVEL (Bonferroni): right training is flagged in at most LEVEL of all audits.
Thresholds come from noise-free scores, trials from a power calculation, neither from the scores that are counted.
"""
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

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

LEVEL, SIGMA, BATCHES, PAIRS, LOT, KEY = 0.05, 0.5, 4, 100, 8192, ("layer", "W")
OTHERS = 10  # examples of one direction, whose number leaks through the divisor


def with_noise(sanitizer, share):
    """A sanitizer that adds a share of the noise that this one charges."""
    return Sanitizer([replace(group, noise_multiplier=share * group.noise_multiplier) for group in sanitizer.groups])


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


def _of_one_release(inside, outside, plan):
    """The scores, and the claim about a canary in one lot and not in it."""
    return inside, outside, Ledger(plan.relation, [(plan.release_event(), 1)])


def _canaries(made, seed, trials, **how):
    """Is one more example in this lot?"""
    seen = watch(made, SIGMA, 0.5, 1, seed, -(-2 * trials // 40), 44, batches=BATCHES, **how)
    return _of_one_release(*seen.apart(), seen.plan)


def _two_steps(made, seed, trials):
    """What noise is left when the second step's release is taken off the first's? Of canaries not in the second lot."""
    seen = watch(made, 4.0, 0.5, 2, seed, -(-5 * trials // 40), 44)
    (first, second), difference = seen.present, seen.scores[0] - seen.scores[1]
    return _of_one_release(difference[first & ~second], difference[~first & ~second], seen.plan)


def _epoch(made, seed, trials):
    """Is the example in the data, of which two lots take half each? As many canaries are in it as not, an even number."""
    rows = 2 * -(-trials // 40)
    included = Streams(seed + 1).init.permutation(44 * rows) < 22 * rows
    seen = watch(made, 0.2, 0.5, 2, seed, rows, 44, included=included)
    total = seen.scores.sum(axis=0)
    return total[included], total[~included], seen.plan.ledger()


def _lattice(made, seed, trials):
    """Could float32 noise alone be this? The share of such pairs where the raw sum is 0, and where its norm is C."""
    plan, streams = Plan(made.sampler(1.0), made.sanitizer(flat_group([KEY], CLIP, 4.0)), 1, 1), Streams(seed)

    def share(raw, place):
        raw = {KEY: np.full(2 * PAIRS, raw)}
        released = plan.sanitizer.release(raw, streams.noise(place), (), 1.0, np.float32)[KEY]
        return on_lattice(released[:PAIRS], released[PAIRS:], 4.0).mean()

    scores = [[share(raw, 2 * i + w) for i in range(trials)] for w, raw in enumerate((0.0, (2 * PAIRS) ** -0.5))]
    return _of_one_release(*np.array(scores), plan)


def _worst_sums(made, seed, trials):
    """Do roundings move a sum further than is charged? They line up in this lot, but not without its first member."""
    v, streams = aligned(LOT, 1 - 2**-10, 0, 1.01), Streams(seed)
    plan = Plan(made.sampler(1.0), made.sanitizer(flat_group([KEY], CLIP, SIGMA)), 1, LOT)
    scores = []
    for world, d in enumerate((v, v[1:])):
        grads = {KEY: Outer(np.ones((len(d), 1), "float32"), d[:, None])}
        raw = plan.sanitizer.add_clipped(grads, products=plan.products.for_lot(LOT))
        released = (plan.sanitizer.release(dict(raw), streams.noise(2 * i + world)) for i in range(trials))
        scores.append(np.array([found[KEY].item() for found in released]) - v[1:].astype(float).sum())
    return _of_one_release(*scores, plan)


def _known_others(made, seed, trials):
    """Does the divisor tell the lot's size? OTHERS gradients of one direction, with and without one against them."""
    scores = []
    for world in (0, 1):
        y = np.full((OTHERS + 1 - world, 1), -10.0, "float32")
        y[OTHERS:] = 10
        network, recorder = nn.Sequential([nn.Dense(1, 1, bias=False, init=nn.init.zeros)], (1,)), Recorder()
        plan = Plan(made.sampler(1.0), made.sanitizer(flat_group(network.params, CLIP, SIGMA)), trials, OTHERS)
        trainer = made.trainer(network, nn.SquaredError(), recorder, plan, ranks=SOLO)
        trainer.run(np.ones_like(y), y, Streams(seed + world))
        scores.append(OTHERS * (1 - np.concatenate(recorder.released)))
    return _of_one_release(*scores, plan)


def _tensors(made, seed, trials):
    """Is an example in this lot that moves two tensors of one group?"""
    seen = watch(made, SIGMA, 0.5, -(-9 * trials // 800), seed, 1, 200, bias=True)
    return _of_one_release(*seen.apart(), seen.plan)


def _normal(shift, threshold, std, std_outside=None):
    """(true, false) positive rates of normal scores with a mean of `shift` and of 0."""
    return float(ndtr((shift - threshold) / std)), float(ndtr(-threshold / (std_outside or std)))


class Attack(NamedTuple):
    """watch(made, seed, trials) gives the scores inside and outside, and the ledger that bounds them.

    rates: (true, false) positives under the fault that the attack was made for, from which its trials are calculated
    """

    watch: Callable
    threshold: float
    rates: tuple[float, float]


SHRUNK = OTHERS / (OTHERS + 1)  # what a leaky divisor makes of the noise with the example; the shift becomes 2 SHRUNK
HALVED = _normal(1, 0.5, 0.6 * SIGMA)  # as lots of uneven batches have it
ATTACKS = {
    "canaries": Attack(_canaries, 0.5, HALVED),
    "ranks": Attack(partial(_canaries, ranks=4), 0.5, HALVED),
    "two steps": Attack(_two_steps, 0.5, _normal(1, 0.5, 0.1)),
    "an epoch": Attack(_epoch, 0.5, _normal(1, 0.5, 0.2 * 2**0.5)),
    "last bits": Attack(_lattice, 0.6, (0.99, 0.01)),
    "worst sums": Attack(_worst_sums, 1.0, _normal(1.99, 1.0, SIGMA)),
    "known others": Attack(_known_others, 0.9, _normal(2 * SHRUNK, 0.9, SHRUNK * SIGMA, SIGMA)),
    "both tensors": Attack(_tensors, 0.7, _normal(2**0.5, 0.7, SIGMA)),
}
ERROR = LEVEL / len(ATTACKS)
_claims: dict[str, empirical.Claim] = {}


def claim_of(ledger):
    """The ledger's claim; equal ledgers are read once."""
    text = ledger.canonical()
    _claims[text] = _claims.get(text) or empirical.Claim(ledger)
    return _claims[text]


@cache
def needed():
    """{attack: trials in each world}, calculated before anything is attacked, from what right training claims.

    A fault is to be missed in one of a million audits by the attack that was made for it.
    """
    claims = {name: claim_of(attack.watch(Made(), 0, 4)[-1]) for name, attack in ATTACKS.items()}
    return {name: empirical.trials_needed(*ATTACKS[name].rates, partial(empirical.Counts.refute, claim=claim, error=ERROR))
            for name, claim in claims.items()}


def flagged_by(made, seed):
    """[attacks that flag this implementation]: one audit."""
    found = []
    for place, (name, (attack, threshold, _)) in enumerate(ATTACKS.items()):
        inside, outside, ledger = attack(made, seed + 2 * place, needed()[name])
        if empirical.counted(inside, outside, threshold).refute(claim_of(ledger), ERROR):
            found.append(name)
    return found
