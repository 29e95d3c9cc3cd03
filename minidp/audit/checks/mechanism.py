"""Checks of what is done to the data: clipping, noise, the sanitizer, sampling, schedules and the plan."""
import math
from fractions import Fraction

import numpy as np

from ... import mechanism
from ...backend import to_host
from ...grads import Explicit, Outer, OuterSum
from ...mechanism import ClipGroup, Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from ...host.normal import float32_normals
from ...privacy.events import Composed, FixedSizeSampled, Gaussian, JointGaussian, PoissonSampled, Repeated
from ...privacy.events import NeighbouringRelation as Relation
from .. import reference
from . import measures, worst

EXACT, SIGMAS = 1e-12, 6.0
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


@measures("mechanism.clip.clip_weights", "N1", method="excess over C in exact fractions, float32", tolerance=0.0)
def clipped_norms_stay_within_the_bound(bench):
    """The exact norm of w g as float32 products, of norms rounded up as in training and of norms rounded to nearest.

    Infinity if clipped by far too much.
    """
    g = (bench.rng.standard_normal((4000, 3)) * 10.0 ** bench.rng.uniform(-1, 3, (4000, 1))).astype("float32")
    weights = to_host(mechanism.clip_weights(bench.asarray((g.astype("float64") ** 2).sum(axis=1).astype("float32")), 1.0))
    largest = float(np.sqrt(((weights[:, None] * g).astype("float64") ** 2).sum(axis=1)).max()) - 1
    for trial in range(200):
        size, (clip_norm, scale) = int(bench.rng.integers(1, 40)), 10.0 ** bench.rng.uniform(-3, 3, 2)
        g = (bench.rng.standard_normal((1, size)) * scale).astype("float32")
        w = to_host(mechanism.clip_weights(Explicit(bench.asarray(g)).sq_norms_upper(), clip_norm))
        norm = sum(Fraction(float(v)) ** 2 for v in (w[:, None] * g)[0])
        least = min(1.0, clip_norm / np.linalg.norm(g.astype("float64"))) * np.linalg.norm(g.astype("float64"))
        if math.sqrt(norm) < least * (1 - 1e-4):
            return math.inf
        largest = max(largest, float(norm / Fraction(clip_norm) ** 2 - 1))
    return max(largest, 0.0)


@measures("mechanism.clip.clip_weights", "N2", method="loop over examples", tolerance=1e-14)
def weights_equal_the_definition(bench):
    norms = np.concatenate([[0.0, 2.5, 1e-30], 10.0 ** bench.rng.uniform(-2, 3, 50)])
    weights = [to_host(mechanism.clip_weights(bench.asarray(norms**2), clip_norm)) for clip_norm in (2.5, math.inf)]
    return max(worst(weights[0], [1.0 if norm <= 2.5 else 2.5 / norm for norm in norms]), worst(weights[1], np.ones(53)))


@measures("mechanism.clip.clip_weights", "N3", method="weights of norms that are not finite", tolerance=0.0)
def not_finite_norms_weigh_nothing(bench):
    bad = bench.asarray(np.array([np.nan, np.inf, -np.inf, 1.0], "float32"))
    weights = [to_host(mechanism.clip_weights(bad, clip_norm)) for clip_norm in (2.0, math.inf)]
    return max(worst(w, [0.0, 0.0, 0.0, 1.0]) if w.dtype == np.float32 else math.inf for w in weights)


@measures("mechanism.clip.ClipGroup", "F1", method="by hand", tolerance=EXACT)
def noise_std_is_sigma_times_c(bench):
    got = [ClipGroup("g", KEYS, 3.0, 0.7).noise_std, ClipGroup("g", KEYS, math.inf, 0).noise_std]
    return worst(got, [2.1, 0.0])


@measures("mechanism.noise.add_gaussian", "F1", method="the same normal numbers, drawn again", tolerance=EXACT)
def noise_is_std_times_normal(bench):
    seed, raw = 7, bench.rng.uniform(-1, 1, (50, 20))
    got = to_host(mechanism.add_gaussian(bench.asarray(raw.copy()), 3.0, np.random.default_rng(seed)))
    return worst(got, raw + 3.0 * np.random.default_rng(seed).standard_normal(raw.shape))


@measures("mechanism.noise.add_gaussian", "F1", method="variance, in standard errors", tolerance=SIGMAS)
def noise_has_the_claimed_variance(bench):
    z = to_host(mechanism.add_gaussian(bench.asarray(np.zeros(200_000)), 3.0, bench.rng)) / 3.0
    return max(abs((z * z).mean() - 1) * math.sqrt(z.size / 2), abs(z.mean()) * math.sqrt(z.size),
               abs((z[1:] * z[:-1]).mean()) * math.sqrt(z.size))


@measures("host.normal.float32_normals", "F1", method="double precision; absolute, float32", tolerance=2e-6)
def radius_and_angle_equal_their_definition(bench):
    """Of numbers up to 8.6 whose angle has 24 bits: the angle's rounding is at most 2.4e-7."""
    seed, size = 7, 30_001
    u, v = np.random.default_rng(seed).random((2, (size + 1) // 2))
    z = np.concatenate([np.sqrt(-2 * np.log1p(-u)) * turn(2 * np.pi * v) for turn in (np.cos, np.sin)])[:size]
    return worst(float32_normals(np.random.default_rng(seed), size).astype("float64"), z)


@measures("host.normal.float32_normals", "F2", method="moments and correlation of pairs, in standard errors", tolerance=SIGMAS)
def pairs_are_normal_and_independent(bench):
    size = 60_000  # within one block: its two halves are the two numbers of each pair
    z = float32_normals(bench.rng, size).astype("float64")
    first, second = z[: size // 2], z[size // 2 :]
    return max(abs((z * z).mean() - 1) * math.sqrt(size / 2), abs((z**4).mean() - 3) * math.sqrt(size / 96),
               abs((first * second).mean()) * math.sqrt(size / 2),
               abs((first**2 * second**2).mean() - 1) * math.sqrt(size / 16))


def _grads(rng, examples=6, scale=1.0):
    """{key: (B, *shape)} of three parameters in two layers."""
    return {("one", "W"): scale * rng.standard_normal((examples, 3, 2)),
            ("one", "b"): scale * rng.standard_normal((examples, 2)),
            ("two", "W"): scale * rng.standard_normal((examples, 2, 2))}


def _explicit(bench, grads):
    return {key: Explicit(bench.asarray(g)) for key, g in grads.items()}


def _groupings(clip_norm=1.5, noise=0.0):
    yield flat_group(KEYS, clip_norm, noise)
    yield per_layer_groups(KEYS, {"one": clip_norm, "two": clip_norm / 3}, noise)


@measures("mechanism.sanitizer.Sanitizer", "F1", method="loop over examples", tolerance=EXACT)
def clipped_sum_equals_a_loop(bench):
    largest = 0.0
    for groups in (*_groupings(), *_groupings(20.0), *_groupings(math.inf)):
        for examples in (0, 1, 6):
            grads = _grads(bench.rng, examples)
            got = Sanitizer(groups).add_clipped(_explicit(bench, grads))
            expected = reference.clipped_sum(grads, groups)
            largest = max(largest, *(worst(got[key], expected[key]) for key in expected))
    return largest


@measures("mechanism.sanitizer.Sanitizer", "F1", method="batches of 4, 0 and 2, in every form, against loops",
          tolerance=EXACT)
def batches_and_forms_agree(bench):
    a, d = bench.rng.standard_normal((6, 3)), bench.rng.standard_normal((6, 2))
    p, q = bench.rng.standard_normal((2, 6, 4, 2))
    plain = {("one", "W"): np.einsum("bi,bo->bio", a, d), ("one", "b"): d, ("two", "W"): np.einsum("bti,bto->bio", p, q)}
    largest = 0.0
    for groups in _groupings():
        expected = reference.clipped_sum(plain, groups)
        for strategy in ("auto", "explicit", "factored"):
            sanitizer, total = Sanitizer(groups, strategy), None
            for part in (slice(0, 4), slice(4, 4), slice(4, 6)):
                grads = {("one", "W"): Outer(bench.asarray(a[part]), bench.asarray(d[part])),
                         ("one", "b"): Explicit(bench.asarray(d[part])),
                         ("two", "W"): OuterSum(bench.asarray(p[part]), bench.asarray(q[part]))}
                total = sanitizer.add_clipped(grads, total)
            largest = max(largest, *(worst(total[key], expected[key]) for key in expected))
    return largest


@measures("mechanism.sanitizer.Sanitizer", "N1", method="norm of a clipped example over its whole group",
          tolerance=1e-9)
def a_group_is_clipped_as_one(bench):
    largest = 0.0
    for groups in _groupings():
        got = Sanitizer(groups).add_clipped(_explicit(bench, _grads(bench.rng, 1, scale=100.0)))
        for group in groups:
            norm = math.sqrt(sum(float((to_host(got[key]) ** 2).sum()) for key in group.keys))
            largest = max(largest, abs(norm / group.clip_norm - 1))
    return largest


@measures("mechanism.sanitizer.Sanitizer", "F2", method="variance of each group, in standard errors",
          tolerance=SIGMAS)
def each_group_gets_its_own_noise(bench):
    keys = (("one", "W"), ("two", "W"))
    groups = per_layer_groups(keys, {"one": 2.0, "two": 5.0}, {"one": 1.5, "two": 0.4})
    raw = {key: np.full((300, 300), 10.0) for key in keys}
    got = Sanitizer(groups).release({key: bench.asarray(array) for key, array in raw.items()}, bench.rng)
    noise = [(to_host(got[key]) - 10.0) / std for key, std in zip(keys, (3.0, 2.0))]
    largest = max(abs((z * z).mean() - 1) * math.sqrt(z.size / 2) for z in noise)
    return max(largest, abs((noise[0] * noise[1]).mean()) * 300)


@measures("mechanism.sanitizer.Sanitizer", "S1", method="worst pair of neighbours by search: 1 - reached / claimed",
          tolerance=1e-6)
def sensitivity_is_reached_and_not_exceeded(bench):
    """For each relation, how far the worst pair found stays below the claim; infinity if one exceeds it."""
    largest = 0.0
    for relation in Relation:
        for groups in _groupings():
            sanitizer = Sanitizer(groups)
            claimed, reached = sanitizer.sensitivity(relation), dict.fromkeys((g.name for g in groups), 0.0)
            for trial in range(60):
                dtype = "float32" if trial % 4 < 2 else "float64"
                grads = {key: g.astype(dtype) for key, g in _grads(bench.rng, 2, 10.0 ** bench.rng.uniform(-2, 4)).items()}
                if trial % 2:
                    for g in grads.values():
                        g[1] = -g[0]  # opposite gradients are the farthest apart
                sums = [sanitizer.add_clipped(_explicit(bench, {key: g[b : b + 1] for key, g in grads.items()}))
                        for b in range(2)]
                for group in groups:
                    one, other = ([to_host(total[key]).astype("float64") for key in group.keys] for total in sums)
                    moved = sum(float(((u - (v if relation is Relation.REPLACE_ONE else 0)) ** 2).sum())
                                for u, v in zip(one, other))
                    reached[group.name] = max(reached[group.name], math.sqrt(moved))
            for group in groups:
                if reached[group.name] > claimed[group.name]:
                    return math.inf
                largest = max(largest, 1 - reached[group.name] / claimed[group.name])
    return largest


@measures("mechanism.sanitizer.Sanitizer", "S2", method="noise std over the sensitivity that was searched",
          tolerance=EXACT)
def event_is_one_joint_gaussian(bench):
    largest = 0.0
    for relation, factor in ((Relation.ADD_REMOVE, 1), (Relation.ZERO_OUT, 1), (Relation.REPLACE_ONE, 2)):
        groups = [ClipGroup("a", KEYS[:2], 2.0, 1.5), ClipGroup("b", KEYS[2:], 7.0, 0.4)]
        event = Sanitizer(groups).event(relation)
        expected = [1.5 / factor, 0.4 / factor]  # 3.0 / (2 factor) and 2.8 / (7 factor)
        if not isinstance(event, JointGaussian):
            return math.inf
        largest = max(largest, worst(event.noise_multipliers, expected))
        # the direction of squared norm sum s^-2, by which the scaled means differ at most
        shift = math.sqrt(sum((factor * c / std) ** 2 for c, std in ((2.0, 3.0), (7.0, 2.8))))
        largest = max(largest, abs(event.effective_noise_multiplier * shift - 1))
        single = Sanitizer(flat_group(KEYS, 2.0, 1.5)).event(relation)
        largest = max(largest, abs(single.noise_multiplier * factor / 1.5 - 1))
    return largest


def _included(sampler, n, lots, rng):
    seen = np.zeros((lots, n))
    for row, lot in zip(seen, sampler.lots(n, lots, rng)):
        if len(set(lot.tolist())) != len(lot) or min(lot, default=0) < 0:
            return None
        row[lot] = 1
    return seen


@measures("mechanism.sampling.PoissonSampler", "F1", method="inclusions, pairs and sizes, in standard errors",
          tolerance=SIGMAS)
def poisson_inclusions_are_independent(bench):
    n, q, lots = 12, 0.3, 20_000
    seen = _included(PoissonSampler(q), n, lots, bench.rng)
    if seen is None:
        return math.inf
    z = (seen - q) / math.sqrt(q * (1 - q))
    products = z.T @ z / math.sqrt(lots)  # off the diagonal standard normal if inclusions are independent
    pairs = np.abs(products[~np.eye(n, dtype=bool)]).max()
    sizes = seen.sum(axis=1)
    variance = n * q * (1 - q)
    kurtosis = 3 + (1 - 6 * q * (1 - q)) / variance
    spread = abs(((sizes - n * q) ** 2).mean() / variance - 1) / math.sqrt((kurtosis - 1) / lots)
    follow = abs((z[1:] * z[:-1]).sum() / math.sqrt(n * lots))
    return max(np.abs(z.sum(axis=0)).max() / math.sqrt(lots), pairs, spread, follow)


@measures("mechanism.sampling.FixedSizeSampler", "F1", method="all subsets of 2 of 5, in standard errors",
          tolerance=SIGMAS)
def fixed_size_subsets_are_uniform(bench):
    lots = 20_000
    seen = _included(mechanism.FixedSizeSampler(5, 2), 5, lots, bench.rng)
    if seen is None or (seen.sum(axis=1) != 2).any():
        return math.inf
    counts = np.bincount((seen @ 2.0 ** np.arange(5)).astype(int))
    p = 1 / 10
    return max(abs(counts[2**i + 2**j] - lots * p) / math.sqrt(lots * p * (1 - p)) for i in range(5) for j in range(i))


@measures("mechanism.sampling.ShuffleSampler", "F1", method="all orders of 3, in standard errors", tolerance=SIGMAS)
def shuffled_epochs_are_permutations(bench):
    epochs, size = 12_000, 3
    for examples, lot in ((1, 1), (7, 3), (30, 30), (9, 4)):  # every example once an epoch, whole lots but for the last
        sampler = mechanism.ShuffleSampler(examples, lot)
        epoch = [found.tolist() for found in sampler.lots(examples, sampler.period, bench.rng)]
        if sorted(sum(epoch, [])) != list(range(examples)) or any(len(found) != lot for found in epoch[:-1]):
            return math.inf
    lots = [lot.tolist() for lot in mechanism.ShuffleSampler(size, 2).lots(size, 2 * epochs, bench.rng)]
    orders = [tuple(a + b) for a, b in zip(lots[::2], lots[1::2])]
    if any(sorted(order) != [0, 1, 2] for order in orders) or any(len(lot) != 2 for lot in lots[::2]):
        return math.inf
    counts = [orders.count(order) for order in sorted(set(orders))]
    if len(counts) != 6:
        return math.inf
    follow = sum(a == b for a, b in zip(orders[1:], orders)) - epochs / 6
    return max(*(abs(c - epochs / 6) for c in counts), abs(follow)) / math.sqrt(epochs * 5 / 36)


def _differs(*pairs):
    return float(sum(got != expected for got, expected in pairs))


@measures("mechanism.sampling.PoissonSampler", "S1", method="the event and its relation, by hand", tolerance=0.0)
def poisson_event(bench):
    sampler, event = PoissonSampler(0.02), Gaussian(3.0)
    return _differs((sampler.wrap(event), PoissonSampled(0.02, event)), (sampler.relation, Relation.ADD_REMOVE),
                    (sampler.charges(event, 7), (PoissonSampled(0.02, event), 7)))


@measures("mechanism.sampling.FixedSizeSampler", "S1", method="the event and its relation, by hand", tolerance=0.0)
def fixed_size_event(bench):
    sampler, event = mechanism.FixedSizeSampler(1000, 20), Gaussian(3.0)
    return _differs((sampler.wrap(event), FixedSizeSampled(1000, 20, event)), (sampler.relation, Relation.REPLACE_ONE),
                    (sampler.charges(event, 7), (FixedSizeSampled(1000, 20, event), 7)))


@measures("mechanism.sampling.ShuffleSampler", "S1", method="largest number of lots that hold one example",
          tolerance=0.0)
def shuffling_is_charged_as_often_as_an_example_is_seen(bench):
    """Charges against the truth counted on drawn lots, for whole epochs and broken ones; the event unsampled."""
    sampler, event = mechanism.ShuffleSampler(10, 4), Gaussian(3.0)
    wrong = _differs((sampler.wrap(event), event), (sampler.relation, Relation.ZERO_OUT))
    for steps in range(8):
        seen = np.zeros(10)
        for lot in sampler.lots(10, steps, bench.rng):
            seen[lot] += 1
        wrong += _differs((sampler.charges(event, steps), (event, int(seen.max()))))
    return wrong


@measures("mechanism.schedule.Constant", "F1", method="by hand", tolerance=0.0)
def constant_stays(bench):
    return worst([mechanism.Constant(0.3)(step) for step in (0, 1, 10**6)], [0.3] * 3)


@measures("mechanism.schedule.LinearDecay", "F1", method="by hand", tolerance=EXACT)
def decay_is_a_line_and_then_constant(bench):
    f, at_once = mechanism.LinearDecay(0.1, 0.052, 10), mechanism.LinearDecay(2.0, 3.0, 0)
    return worst([*(f(step) for step in (0, 1, 5, 9, 10, 11, 10**9)), at_once(0)],
                 [0.1, 0.0952, 0.076, 0.0568, 0.052, 0.052, 0.052, 3.0])


@measures("mechanism.schedule.Stages", "F1", method="by hand", tolerance=EXACT)
def stages_fall_in_equal_steps_and_the_last_has_no_end(bench):
    sigma = mechanism.Stages(6.0, 3.0, 4, 10)
    return worst([sigma(step) for step in (0, 9, 10, 20, 30, 39, 40, 10_000)], [6, 6, 5, 4, 3, 3, 3, 3])


@measures("mechanism.plan.Plan", "S1", method="charges one step at a time", tolerance=0.0)
def charges_equal_a_loop_over_steps(bench):
    """Each step's own event, for a constant plan and one whose noise falls; merged, none lost, in order."""
    wrong = 0.0
    for sigma in (2.0, mechanism.LinearDecay(3.0, 1.0, 4)):
        plan = Plan(PoissonSampler(0.1), Sanitizer(flat_group(KEYS, 1.0, sigma)), 9, 50)
        expected = [PoissonSampled(0.1, Gaussian(sigma(step) if callable(sigma) else sigma)) for step in range(9)]
        for start, stop in ((0, 9), (2, 7), (5, 5)):
            got = [event for event, times in plan.charges(start, stop) for _ in range(times)]
            wrong += _differs((got, expected[start:stop]))
        total = plan.total_event
        parts = total.events if isinstance(total, Composed) else (total,)
        got = [part.event for part in parts if isinstance(part, Repeated) for _ in range(part.count)]
        wrong += _differs((got, expected), (plan.relation, Relation.ADD_REMOVE))
    return wrong
