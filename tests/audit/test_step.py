"""check_step: a right step passes with all claims; faults that were real are found and named."""

import re
import sys

import numpy as np
import pytest

from minidp.audit import check_step

D, L, SIGMA = 20, 8, 1.5
Q = 0.05


def gradients(rows):
    """Of |row - w|^2 / 2 at w = 0, and 0 where a row is not finite."""
    fine = np.isfinite(rows).all(axis=1, keepdims=True)
    return np.where(fine, -rows.astype(float), 0)


def clipped(g, most=1.0):
    return g / np.maximum(1, np.linalg.norm(g, axis=1, keepdims=True) / most)


class Plain:
    """A private step, each line of which a fault replaces."""

    def __init__(self, seed=None):
        self.rng = np.random.default_rng(seed)

    def gradients(self, rows):
        return gradients(rows)

    def clip(self, g):
        return clipped(g)

    def noise(self, total, rows):
        return self.rng.normal(0, SIGMA, D)

    def add(self, total, noise):
        """On a public grid, so that the last bits say nothing."""
        return np.round((total + noise) * 2.0**20) / 2.0**20

    def divide(self, total, rows):
        return total / L

    def __call__(self, rows):
        total = self.clip(self.gradients(rows)).sum(axis=0)
        return self.divide(self.add(total, self.noise(total, rows)), rows)


def plain(**methods):
    """The class of a step with other methods."""
    return type("Planted", (Plain,), methods)


def poisson(rows, steps):
    rng = np.random.default_rng()
    return (np.flatnonzero(rng.random(rows) < Q) for _ in range(steps))


def shuffled(rows, steps):
    rng, each = np.random.default_rng(), round(Q * rows)
    for step in range(steps):
        if step * each % rows == 0:
            order = rng.permutation(rows)
        yield order[step * each % rows :][:each]


def fixed(rows, steps):
    rng = np.random.default_rng()
    return (rng.choice(rows, round(Q * rows), replace=False) for _ in range(steps))


STATED = dict(row_shape=(D,), clip_norm=1.0, noise_multiplier=SIGMA, expected_lot_size=L)
CLAIMS = dict(claims=("trained", "finite", "bits", "processes"))
SAMPLED = dict(lots=poisson, sampling_probability=Q, claims=(*CLAIMS["claims"], "poisson"))
RIGHT = {
    "plain": {},
    "gradients": dict(
        per_example=gradients,
        loss=lambda w, rows: ((rows.astype(float) - w) ** 2).sum(axis=1) / 2,
        params=np.zeros(D),
    ),
    "counted": dict(parts={"w": (slice(15), 1.0, SIGMA), "count": (slice(15, 20), 1.0, SIGMA)}),
    "priced": dict(steps=100, delta=1e-5, claimed_epsilon=4.0, sampling_probability=Q),
}


@pytest.mark.parametrize("more", RIGHT.values(), ids=RIGHT)
def test_a_right_step_passes_with_all_claims(more):
    made = plain(clip=counted_clip) if "parts" in more else Plain
    report = check_step(made(), make_step=made, **{**STATED, **CLAIMS, **more})
    assert {found.verdict for found in report.findings} == {"holds"}, report


def in_batches(self, total, rows):
    """jax_privacy#287: noise for each of the accumulated batches, averaged with them."""
    batches = max(1, len(rows) // 16)
    return self.rng.normal(0, SIGMA / np.sqrt(batches), D)


def batch_statistics(self, rows):
    return gradients((rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-3) if len(rows) else rows)


def float32_add(self, total, noise):
    """Mironov 2012: the noise's own floating-point numbers show."""
    return total.astype("f4") + noise.astype("f4")


class Seeded(Plain):
    """The generator of every process starts from the same seed."""

    def __init__(self):
        super().__init__(7)


def by_tensor(self, g):
    return np.concatenate([clipped(g[:, :10]), clipped(g[:, 10:])], axis=1)


def micro_batches(self, g):
    """TensorFlow Privacy's micro-batches, priced as if each row were one."""
    return clipped(np.array([g[at : at + 4].mean(axis=0) for at in range(0, len(g), 4)] or g))


def clipped_to_the_median(self, g):
    norms = np.linalg.norm(g, axis=1)
    return clipped(g, min(1.0, max(np.median(norms), 1e-9)) if len(g) else 1.0)


def half(self, rows):
    return gradients(rows) * (np.arange(D) < 15)


def frozen(self, total, rows):
    return total / L * (np.arange(D) < 15)


WORDS = {"w": (slice(15), 1.0, SIGMA), "count": (slice(15, 20), 1.0, 0.5)}


def counted_noise(self, total, rows):
    return self.rng.normal(0, np.where(np.arange(D) < 15, SIGMA, 0.05), D)


def counted_clip(self, g):
    return np.concatenate([clipped(g[:, :15]), clipped(g[:, 15:])], axis=1)


def not_finite(self, rows):
    return -rows.astype(float)


def no_empty_lot(self, rows):
    if not len(rows):
        sys.exit("no rows")
    return gradients(rows)


# name, with the thread that reported it: (step's methods, what more is stated, a pattern of the
# report's line)
FINDINGS = {
    "divisor by the lot at hand, opacus#571 #819": (
        plain(divide=lambda self, total, rows: total / max(1, len(rows))),
        {},
        r"violated +divisor: .*rows at hand.*; or this follows from the noise, which is not as",
    ),
    "a sum that is not divided": (
        plain(divide=lambda self, total, rows: total),
        {},
        r"violated +noise: .*the noise is (7\.\d+|8(\.\d+)?) times .*8 if not divided",
    ),
    "divided by twice the lot size": (
        plain(divide=lambda self, total, rows: total / (2 * L)),
        {},
        r"violated +noise: .*the noise is 0\.[45]\d* times the stated",
    ),
    "rows clipped several together": (
        plain(clip=micro_batches),
        {},
        r"violated +independence of rows: .*clipped as one",
    ),
    "a clip norm that follows the lot": (
        plain(clip=clipped_to_the_median),
        {},
        r"violated +independence of rows: .*a clip norm that follows",
    ),
    "noise not scaled with accumulation, jax_privacy#287": (
        plain(noise=in_batches),
        {},
        r"violated +noise: .*averaged over batches",
    ),
    "a count's noise, opacus#757": (
        plain(noise=counted_noise, clip=counted_clip),
        {"parts": WORDS},
        r"violated +noise: .*count: the noise is 0.* too little",
    ),
    "double noise, fedbiomed#1443": (
        plain(noise=lambda self, *rest: Plain.noise(self, *rest) + Plain.noise(self, *rest)),
        {},
        r"violated +noise: .*is 1\.[2-6].* added twice(?s:.*)not decided +directions: the noise",
    ),
    "each tensor clipped, fedbiomed#1443": (
        plain(clip=by_tensor),
        {},
        r"violated +sensitivity: .*in pieces",
    ),
    "batch statistics, opacus#319": (
        plain(gradients=batch_statistics),
        {},
        r"violated +independence of rows: .*batch statistics",
    ),
    "shuffled lots claimed as Poisson, tensorflow/privacy#483": (
        Plain,
        {**SAMPLED, "lots": shuffled},
        r"violated +sampler: .*not Poisson",
    ),
    "a mean loss clipped as a sum": (
        plain(gradients=lambda self, rows: gradients(rows) / max(1, len(rows))),
        {},
        r"violated +divisor: .*loss is a mean",
    ),
    "the same generator in every process": (
        Seeded,
        {},
        r"violated +processes: a fixed or short seed",
    ),
    "frozen weights that are charged, opacus#820": (
        plain(divide=frozen),
        {},
        r"violated +noise: .*frozen weights",
    ),
    "frozen weights with noise, opacus#820": (
        plain(gradients=half, clip=counted_clip),
        {"parts": RIGHT["counted"]["parts"]},
        r"violated +trained: .*no rows move count.*frozen weights",
    ),
    "the sum clipped again, fedbiomed#1443": (
        plain(clip=lambda self, g: clipped(clipped(g).sum(axis=0, keepdims=True))),
        {},
        r"violated +independence of rows: .*clipped as a whole",
    ),
    "float32 noise, Mironov 2012": (plain(add=float32_add), {}, r"violated +bits: .*float32 noise"),
    "one noise for two layers": (
        plain(noise=lambda self, *rest: np.tile(Plain.noise(self, *rest)[:10], 2)),
        {},
        r"violated +noise: .*pairs of equal numbers .*noise used again",
    ),
    "Laplace noise": (
        plain(noise=lambda self, *rest: self.rng.laplace(0, SIGMA / 2**0.5, D)),
        {},
        r"violated +calls: .*(not Gaussian|other tails)",
    ),
    "fixed lots claimed as Poisson, jax_privacy#84": (
        Plain,
        {**SAMPLED, "lots": fixed},
        r"violated +sampler: .*fixed lots",
    ),
    "epsilon below its cost": (
        Plain,
        dict(steps=100, delta=1e-5, claimed_epsilon=0.1, sampling_probability=Q),
        r"violated +claim: .*is claimed",
    ),
    "gradients of another loss": (
        Plain,
        dict(
            per_example=lambda rows: 0.9 * gradients(rows),
            loss=RIGHT["gradients"]["loss"],
            params=np.zeros(D),
        ),
        r"violated +gradients: .*not the derivative",
    ),
    "what is not claimed is a note": (
        plain(gradients=not_finite),
        {"claims": ()},
        r"note +finite: .*not left out",
    ),
    "an empty lot is of Poisson sampling": (
        plain(gradients=no_empty_lot),
        {"claims": ()},
        r"not decided +empty lot: .*SystemExit",
    ),
    "and is tested where that is claimed": (
        plain(gradients=no_empty_lot),
        SAMPLED,
        r"violated +empty lot: .*SystemExit",
    ),
    "a claim of processes needs make_step": (
        Plain,
        {"make_step": None, "claims": ["processes"]},
        r"not decided +processes: .*give make_step",
    ),
    "too few releases": (
        Plain,
        {"claims": (), "most_releases": 20},
        r"not decided +noise: .* releases of a lot would decide",
    ),
    "rows of no gradient": (
        Plain,
        {"claims": (), "make_rows": lambda n, seed: np.full((n, D), 1e-4)},
        r"note +trained: .*give make_rows",
    ),
}


@pytest.mark.parametrize("made, more, line", FINDINGS.values(), ids=FINDINGS)
def test_a_planted_fault_is_found_and_named_and_what_is_not_claimed_is_none(made, more, line):
    report = check_step(made(), **{"make_step": made, **STATED, **CLAIMS, **more})
    assert re.search(line, repr(report)), report
    assert (report.passed is False) == line.startswith("violated")
    if line.startswith("not decided"):
        assert report.passed is None


def shuffled_signs(rng, z):
    return rng.permutation(z) * rng.choice([-1, 1], len(z))


def without(z, direction):
    direction = np.resize(direction, len(z)) / np.linalg.norm(np.resize(direction, len(z)))
    return z - (z @ direction) * direction


def one_of_forty(rng, z, last):
    return np.random.default_rng(rng.integers(40)).normal(0, SIGMA, D)


# noise that is made of new noise z, or every second time of the noise before
DEPENDENT = {
    "mean taken out": lambda rng, z, last: without(z, [1]),
    "alternating sum taken out": lambda rng, z, last: without(z, [1, -1]),
    "an unknown direction": lambda rng, z, last: without(z, np.cos(np.arange(D) ** 2)),
    "the last follows from three": lambda rng, z, last: np.r_[z[:-1], sum(z[[0, 4, 9]]) / 3**0.5],
    "the other half backwards": lambda rng, z, last: np.r_[z[:10], -z[9::-1]],
    "the other half in new order": lambda rng, z, last: np.r_[z[:10], shuffled_signs(rng, z[:10])],
    "that of before in new order": lambda rng, z, last: shuffled_signs(rng, last),
    "that of before, backwards": lambda rng, z, last: last[::-1],
    "often a third of it": lambda rng, z, last: z / 3 if rng.random() < 0.05 else z,
    "seldom none": lambda rng, z, last: 0 * z if rng.random() < 0.005 else z,
    "absolute values": lambda rng, z, last: abs(z),
    "none in the first call": lambda rng, z, last: z * (last is not z),
    "one of forty": one_of_forty,
}


@pytest.mark.parametrize("name, depends", DEPENDENT.items(), ids=DEPENDENT)
def test_noise_with_a_hole_is_found(name, depends):
    drawn = []

    def noise(self, *rest):
        drawn.append(Plain.noise(self, *rest))
        if "before" in name and len(drawn) % 2:
            return drawn[-1]
        return depends(self.rng, drawn[-1], drawn[-2:][0])

    report = check_step(plain(noise=noise)(), **STATED)
    assert re.search("violated +(noise|calls): ", repr(report)), report


def test_a_direction_among_more_coordinates_than_are_looked_at_is_not_decided():
    size = 2000

    def step(rows):
        total = np.zeros(size)
        total[:5] = clipped(rows.astype(float)).sum(axis=0)
        return (total + rng.normal(0, SIGMA, size)) / L

    rng, stated = np.random.default_rng(), {**STATED, "row_shape": (5,)}
    report = check_step(step, **stated)
    assert report and "not decided  directions: noise that spares one direction" in repr(report)


def test_a_sum_over_more_coordinates_than_are_looked_at_has_noise():
    def step(rows):
        total = np.zeros(5000)
        total[:5] = clipped(rows.astype(float)).sum(axis=0)
        z = rng.normal(0, SIGMA, 5000)
        return (total + z - z.mean()) / L

    rng = np.random.default_rng()
    report = check_step(step, **{**STATED, "row_shape": (5,)})
    assert re.search("violated +calls: one direction has less noise", repr(report)), report
