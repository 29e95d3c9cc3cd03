"""Ten faults planted in private training, and the eight attacks that have to flag them, whichever
it is.

Every attack counts scores in two worlds and holds the counts against what the implementation's own
ledger claims. All run on each implementation, each at its share of LEVEL (Bonferroni): right
training is flagged in at most LEVEL of all audits. Thresholds come from noise-free scores, trials
from a power calculation, neither from the scores counted.
"""

import json
from dataclasses import replace
from functools import cache, partial

import numpy as np
from scipy.special import ndtr

from minidp import nn
from minidp.exact.laws import Normals
from minidp.grads import Outer
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, ShuffleSampler, flat_group
from minidp.mechanism.clip import clip_weights
from minidp.privacy import Ledger
from minidp.ranks import SOLO
from minidp.streams import Streams
from minidp.train import Trainer
from tools.attacks import empirical
from tools.attacks.arithmetic import KEY, LARGE, aligned, box_muller, on_lattice
from tools.attacks.canaries import CLIP, Made, Recorder, watch

LEVEL, SIGMA, BATCHES, PAIRS, LOT = 0.05, 0.5, 4, 100, 8192
OTHERS = 10  # examples of one direction, whose number leaks through the divisor


def with_noise(sanitizer, share):
    """A sanitizer that adds a share of the noise that this one charges."""
    return Sanitizer(
        [
            replace(group, noise_multiplier=share * group.noise_multiplier)
            for group in sanitizer.groups
        ]
    )


def _noisy_batch(self, *arguments, **named):
    total = Sanitizer.add_clipped(self, *arguments, **named)
    total.update(with_noise(self, 1 / BATCHES).release(total, Streams().noise("batch")))
    return total


class _Float32Noise(Normals):
    """Box and Muller's noise in float32, added in float32."""

    def add(self, draws, out, before, after, place):
        rng, total = np.random.default_rng(draws.words(1)), before(slice(None)).astype(np.float32)
        noise = box_muller(rng, total.size + total.size % 2, self.std)[: total.size]
        after(slice(None), total + noise)


def _float32_group(self, group, grads, size, total, *others):
    """One gradient after the other."""
    weights = clip_weights(self._sq_norms(group, grads), group.clip_norm).astype(np.float32)
    for key, grad in grads.items():
        each = grad.materialise()
        each = each * weights.reshape((-1,) + (1,) * (each.ndim - 1))
        total[key] = np.add.accumulate(
            np.concatenate([[total.get(key, 0 * each[0])], each]), dtype=np.float32
        )[-1]


def _leaky_step(self, examples, lot, *others):
    self.plan = replace(self.plan, expected_lot_size=max(1, len(lot)))
    Trainer.step(self, examples, lot, *others)


def _release_of_each_rank(self, raw_sum, draws, others=(), scale=1.0, dtype="float64", ranks=SOLO):
    """Every rank adds its share of the noise to its own sum: independent shares add up to less than
    the whole.
    """
    if ranks.size == 1:
        return Sanitizer.release(self, raw_sum, draws, others, scale, dtype)
    mine = with_noise(self, 1 / ranks.size).release(
        raw_sum, Streams().noise("rank"), others, scale, dtype
    )
    return {
        key: sum(part)
        for key, part in zip(mine, zip(*(each.values() for each in ranks.collect(mine))))
    }


def _each_tensor(self, group, grads, *others):
    for key, grad in grads.items():
        Sanitizer._add_group(self, replace(group, keys=(key,)), {key: grad}, *others)


def broken(base=Sanitizer, **methods):
    """The parts of training, with other methods in one of them; what it charges stays."""
    part = {Sanitizer: "sanitizer", PoissonSampler: "sampler", Trainer: "trainer"}[base]
    return Made(**{part: type(base.__name__, (base,), methods)})


FAULTS = {
    "noise halved": broken(release=lambda self, *rest: with_noise(self, 1 / 2).release(*rest)),
    "clipping left out": broken(_sq_norms=lambda self, *rest: 0 * Sanitizer._sq_norms(self, *rest)),
    "noise once a batch": broken(
        add_clipped=_noisy_batch, release=lambda self, *rest: with_noise(self, 0).release(*rest)
    ),
    "seed reused": broken(
        release=lambda self, raw_sum, draws, *rest: Sanitizer.release(
            self, raw_sum, Streams(0).noise(0), *rest
        )
    ),
    "Poisson claimed, shuffling done": broken(
        PoissonSampler,
        lots=lambda self, n, *rest: ShuffleSampler(n, round(self.sampling_probability * n)).lots(
            n, *rest
        ),
    ),
    "float32 noise": broken(noise=lambda self, group: _Float32Noise(group.noise_std)),
    "float32 sums, rounding not charged": broken(_add_group=_float32_group),
    "divided by the lot's own size": broken(Trainer, step=_leaky_step),
    "too little noise on each rank": broken(release=_release_of_each_rank),
    "group of tensors clipped tensor by tensor": broken(_add_group=_each_tensor),
}


def _of_one_release(inside, outside, plan):
    """The scores, and the claim about a canary in one lot and not in it."""
    return inside, outside, Ledger(plan.relation, [(plan.release_event(), 1)]).canonical()


def _canaries(made, seed, trials, **how):
    """Is one more example in this lot?"""
    seen = watch(made, SIGMA, 0.5, 1, seed, -(-2 * trials // 40), 44, batches=BATCHES, **how)
    return _of_one_release(*seen.apart(), seen.plan)


def _two_steps(made, seed, trials):
    """What noise is left when the second step's release is taken off the first's? Of canaries not
    in the second lot.
    """
    seen = watch(made, 4.0, 0.5, 2, seed, -(-5 * trials // 40), 44)
    (first, second), difference = seen.present, seen.scores[0] - seen.scores[1]
    return _of_one_release(difference[first & ~second], difference[~first & ~second], seen.plan)


def _epoch(made, seed, trials):
    """Is the example in the data, of which two lots take half each? As many canaries are in as out,
    an even number.
    """
    rows = 2 * -(-trials // 40)
    included = Streams(seed + 1).init.permutation(44 * rows) < 22 * rows
    seen = watch(made, 0.2, 0.5, 2, seed, rows, 44, included=included)
    total = seen.scores.sum(axis=0)
    return total[included], total[~included], seen.plan.ledger().canonical()


def _lattice(made, seed, trials):
    """Could float32 noise alone be this? The share of such pairs where the raw sum is 0, and where
    its norm is C.
    """
    sanitizer, streams = made.sanitizer(flat_group([KEY], CLIP, 4.0)), Streams(seed)

    def share(raw, place):
        raw = {KEY: np.full(2 * PAIRS, raw)}
        released = sanitizer.release(raw, streams.noise(place), (), 1.0, np.float32)[KEY]
        return on_lattice(released[:PAIRS], released[PAIRS:], 4.0).mean()

    inside = np.array([share(0.0, 2 * i) for i in range(trials)])
    outside = np.array([share((2 * PAIRS) ** -0.5, 2 * i + 1) for i in range(trials)])
    return _of_one_release(inside, outside, Plan(made.sampler(1.0), sanitizer, 1, 1))


def _worst_sums(made, seed, trials):
    """Do roundings move a sum further than is charged? They line up in this lot, but not without
    its first member.
    """
    v, streams = aligned(LOT, LARGE, 0, 1.01), Streams(seed)
    plan = Plan(made.sampler(1.0), made.sanitizer(flat_group([KEY], CLIP, SIGMA)), 1, LOT)
    scores = []
    for world, d in enumerate((v, v[1:])):
        grads = {KEY: Outer(np.ones((len(d), 1), "float32"), d[:, None])}
        raw = plan.sanitizer.add_clipped(grads, products=plan.products.for_lot(LOT))
        sums = [
            plan.sanitizer.release(dict(raw), streams.noise(2 * i + world))[KEY].item()
            for i in range(trials)
        ]
        scores.append(np.array(sums) - v[1:].astype(float).sum())
    return _of_one_release(*scores, plan)


def _known_others(made, seed, trials):
    """Does the divisor tell the lot's size? OTHERS gradients of one direction, with and without one
    against them.
    """
    scores = []
    for world in (0, 1):
        y = np.full((OTHERS + 1 - world, 1), -10.0, "float32")
        y[OTHERS:] = 10
        network = nn.Sequential([nn.Dense(1, 1, bias=False, init=nn.init.zeros)], (1,))
        recorder, sanitizer = Recorder(), made.sanitizer(flat_group(network.params, CLIP, SIGMA))
        plan = Plan(made.sampler(1.0), sanitizer, trials, OTHERS)
        trainer = made.trainer(network, nn.SquaredError(), recorder, plan, ranks=SOLO)
        trainer.run(np.ones_like(y), y, Streams(seed + world))
        scores.append(OTHERS * (1 - np.concatenate(recorder.released)))
    return _of_one_release(*scores, plan)


def _tensors(made, seed, trials):
    """Is an example in this lot that moves two tensors of one group?"""
    seen = watch(made, SIGMA, 0.5, -(-9 * trials // 800), seed, 1, 200, bias=True)
    return _of_one_release(*seen.apart(), seen.plan)


def _normal(shift, threshold, std, std_outside=None):
    """(true, false) positive rates of normal scores of means `shift` and 0."""
    return ndtr((shift - threshold) / std), ndtr(-threshold / (std_outside or std))


# what a leaky divisor makes of noise with the example; the shift becomes twice that
SHRUNK = OTHERS / (OTHERS + 1)
HALVED = _normal(1, 0.5, 0.6 * SIGMA)  # as lots of uneven batches have it
# name: what gives scores inside and outside and the ledger that bounds them, the threshold, and the
# (true, false) positive rates under the fault that the attack was made for, from which its trials
# are calculated
ATTACKS = {
    "canaries": (_canaries, 0.5, HALVED),
    "ranks": (partial(_canaries, ranks=4), 0.5, HALVED),
    "two steps": (_two_steps, 0.5, _normal(1, 0.5, 0.1)),
    "an epoch": (_epoch, 0.5, _normal(1, 0.5, 0.2 * 2**0.5)),
    "last bits": (_lattice, 0.6, (0.99, 0.01)),
    "worst sums": (_worst_sums, 1.0, _normal(1.99, 1.0, SIGMA)),
    "known others": (_known_others, 0.9, _normal(2 * SHRUNK, 0.9, SHRUNK * SIGMA, SIGMA)),
    "both tensors": (_tensors, 0.7, _normal(2**0.5, 0.7, SIGMA)),
}
ERROR = LEVEL / len(ATTACKS)


@cache
def claim_of(text):
    """The claim of a ledger's canonical text; each is read once."""
    return empirical.Claim(Ledger.from_json(json.loads(text)))


@cache
def needed():
    """{attack: trials in each world}, calculated before anything is attacked, from what right
    training claims.

    A fault is to be missed in one of a million audits by the attack that was made for it.
    """
    found = {}
    for name, (attack, _, rates) in ATTACKS.items():
        claim = claim_of(attack(Made(), 0, 4)[-1])
        found[name] = empirical.trials_needed(
            *rates, partial(empirical.Counts.refute, claim=claim, error=ERROR)
        )
    return found


def flagged_by(made, seed):
    """[attacks that flag this implementation]: one audit."""
    found = []
    for place, (name, (attack, threshold, _)) in enumerate(ATTACKS.items()):
        inside, outside, claim = attack(made, seed + 2 * place, needed()[name])
        if empirical.counted(inside, outside, threshold).refute(claim_of(claim), ERROR):
            found.append(name)
    return found
