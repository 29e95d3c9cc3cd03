"""check_step: the noise of all calls together; right steps of few digits and of one number pass."""

import numpy as np
import pytest

from minidp.audit import check_step
from tests.audit.test_step import SIGMA, STATED, D, L, Plain, clipped


class Drawn(Plain):
    """Noise of standard deviation 1 by `draw`, times sigma."""

    last = np.zeros(D)

    def noise(self, total, rows):
        return SIGMA * self.draw()


class OneLength(Drawn):
    def draw(self):
        z = self.rng.standard_normal(D)
        return z * np.sqrt(D) / np.linalg.norm(z)


class TwoSizes(Drawn):
    def draw(self):
        return self.rng.standard_normal(D) * np.sqrt(self.rng.choice([0.7, 1.3]))


class SmallSeeds(Drawn):
    def draw(self):
        return np.random.default_rng(self.rng.integers(10_000)).standard_normal(D)


class TakenBack(Drawn):
    def draw(self):
        z, before = self.rng.standard_normal(D) / np.sqrt(2), self.last
        self.last = z
        return z - before


class CutOff(Drawn):
    def draw(self):
        z = self.rng.standard_normal(D)
        while (far := np.abs(z) > 3.3).any():
            z[far] = self.rng.standard_normal(far.sum())
        return z


class OfUniforms(Drawn):
    def draw(self):
        return self.rng.random((12, D)).sum(axis=0) - 6


class SeldomLess(Drawn):
    def draw(self):
        return self.rng.standard_normal(D) * (0.35 if self.rng.random() < 1 / 400 else 1)


@pytest.mark.parametrize(
    "made", [OneLength, TwoSizes, SmallSeeds, TakenBack, CutOff, OfUniforms, SeldomLess]
)
def test_noise_that_is_wrong_over_all_calls_is_found(made):
    found = {each.name: each.verdict for each in check_step(made(), **STATED).findings}
    assert found["calls"] == "violated"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_release_of_few_digits_passes(dtype):
    right = Plain()
    assert check_step(lambda rows: right(rows).astype(dtype), **STATED).passed is True


def test_a_step_of_one_number_passes():
    rng = np.random.default_rng()

    def step(rows):
        return (np.clip(rows, -1, 1).sum(axis=0, dtype=float) + rng.normal(0, SIGMA, 1)) / L

    report = check_step(step, **{**STATED, "row_shape": (1,)})
    assert report.passed is True, report
    assert report.calls <= 10_000


def test_a_step_of_many_coordinates_is_decided_in_fewer_calls():
    size = 20_000
    rng = np.random.default_rng()

    def step(rows):
        total = np.zeros(size)
        total[:5] = clipped(rows.astype(float)).sum(axis=0)
        return (total + SIGMA * rng.standard_normal(size)) / L

    report = check_step(step, **{**STATED, "row_shape": (5,)})
    assert report.passed is True, report
    assert report.calls <= 6000


def shifting(rows, steps):
    """The probability of a row falls during the run."""
    rng = np.random.default_rng()
    return (np.flatnonzero(rng.random(rows) < q) for q in np.linspace(0.06, 0.04, steps))


def in_pairs(rows, steps):
    rng = np.random.default_rng()
    return (
        np.flatnonzero(np.repeat(rng.random(-(-rows // 2)) < 0.05, 2)[:rows]) for _ in range(steps)
    )


@pytest.mark.parametrize("lots", [shifting, in_pairs])
def test_lots_that_drift_or_pair_rows_are_found(lots):
    sampled = dict(lots=lots, sampling_probability=0.05, claims=("poisson",))
    found = {each.name: each.verdict for each in check_step(Plain(), **STATED, **sampled).findings}
    assert found["sampler"] == "violated"
