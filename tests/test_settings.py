"""Every public constructor names the setting that is wrong."""
from math import inf, nan

import numpy as np
import pytest

from minidp.data import centre_crop, draw_distortions
from minidp.errors import ParameterError
from minidp.mechanism import (ClipGroup, FixedSizeSampler, LinearDecay, Plan, PoissonSampler, PrivatePCA, Sanitizer,
                              ShuffleSampler, flat_group, random_projection)
from minidp.nn import AvgPool2D, Conv2D, Dropout, GroupNorm, LayerNorm, MaxPool2D
from minidp.privacy import (Composed, Filter, FixedSizeSampled, Gaussian, JointGaussian, Laplace, MomentsAccountant,
                            PoissonSampled, PureDP, Repeated, TotalVariation, theorem_d1)
from minidp.streams import Streams
from minidp.train import SGD, AdaGrad, Adam, Averaged, Momentum

KEYS, Q = [("dense1", "W"), ("dense2", "W")], PoissonSampler(0.01)


def group(clip_norm=1.0, noise_multiplier=1.0, keys=KEYS):
    return ClipGroup("all", keys, clip_norm, noise_multiplier)


def plan(steps=1, lot=600, sampler=Q):
    return Plan(sampler, Sanitizer(flat_group(KEYS, 4.0, 4.0)), steps, lot)


ROWS = [(make, value, words) for make, values, words in [
    (group, (-1.0, 0.0, nan), "clip_norm={}"), (lambda v: group(1.0, v), (-1.0, nan, inf), "noise_multiplier={}"),
    (group, (inf,), "finite clip_norm"), (lambda v: group(keys=v), ((),), "at least one parameter"),
    (lambda v: LinearDecay(v, 1.0, 3), (nan,), "initial={}"), (lambda v: LinearDecay(1.0, v, 3), (-1.0,), "final={}"),
    (lambda v: LinearDecay(1.0, 1.0, v), (-1, 1.5), "steps={}"),
    (PoissonSampler, (1.2, nan), "sampling_probability={}"),
    (lambda v: FixedSizeSampler(10, v), (0, 11), "lot_size={}"),
    (lambda v: ShuffleSampler(10, v), (11, 2.5), "lot_size={}"),
    (lambda v: ShuffleSampler(v, 1), (0,), "dataset_size={}"), (plan, (-1,), "steps={}"),
    (lambda v: plan(1, v), (0, inf), "expected_lot_size={}"),
    (lambda v: plan(1, 600, v), ("poisson",), "expected a sampler, got str"),
    (lambda v: PrivatePCA(v, 4.0), (0,), "dimensions={}"),
    (lambda v: PrivatePCA(2, v), (-1.0, inf, nan), "pca_noise_multiplier={}"),
    (lambda v: random_projection(4, v, None), (0,), "dimensions={}"),
    (lambda v: Conv2D(1, 1, v), (0, (3, 0)), "kernel"), (lambda v: Conv2D(1, 1, 3, stride=v), (0,), "stride"),
    (lambda v: Conv2D(1, 1, 3, padding=v), ("full", -1, True), "padding"),
    (lambda v: Conv2D(*v, 3), ((0, 1), (1, 0)), "channels"),
    *((pool, (0,), "window") for pool in (MaxPool2D, AvgPool2D)), (lambda v: MaxPool2D(2, v), (0,), "stride"),
    (lambda v: AvgPool2D(2, padding=v), ("full", 2, (0, 1, 1), -1), "padding"),
    (lambda v: MaxPool2D((3, 2), padding=v), ((1, 2),), "padding"), (lambda v: GroupNorm(6, v), (4, 0), "groups={}"),
    (LayerNorm, (0,), "0"), (lambda v: LayerNorm(4, epsilon=v), (0.0, -1.0), "epsilon={}"),
    (Dropout, (-0.1, 1.0, nan, "half"), "rate"), (SGD, (-0.1, nan), "learning_rate={}"),
    (AdaGrad, (inf,), "learning_rate={}"), (lambda v: AdaGrad(0.1, v), (-1.0,), "offset={}"),
    (lambda v: Momentum(0.1, v), (1.0,), "momentum={}"), (lambda v: Adam(0.1, beta1=v), (1.0,), "beta1={}"),
    (lambda v: Adam(0.1, beta2=v), (-0.1,), "beta2={}"), (lambda v: Adam(0.1, offset=v), (0.0,), "offset={}"),
    (lambda v: Averaged(SGD(0.1), v), (-0.1, 1.0, nan), "decay={}"),
    (Gaussian, (-1.0, nan, "4"), "noise_multiplier={!r}"), (Laplace, (-2,), "noise_multiplier={}"),
    (PureDP, (0,), "epsilon=0"), (JointGaussian, ((),), "at least one"),
    (JointGaussian, ((1.0, -1.0),), "noise_multiplier=-1.0"),
    (lambda v: PoissonSampled(v, Gaussian(1)), (1.2, nan), "sampling_probability={}"),
    (lambda v: PoissonSampled(0.1, v), (4.0,), "expected an Event"),
    (Composed, ((Gaussian(1), None),), "expected an Event"),
    (lambda v: FixedSizeSampled(10, v, Gaussian(1)), (11,), "lot_size"),
    (lambda v: FixedSizeSampled(v, 0, Gaussian(1)), (0,), "dataset_size"),
    (lambda v: Repeated(Gaussian(1), v), (-1, 1.5), "count={}"), (lambda v: TotalVariation(v, 3), (1.0, nan), "tau={}"),
    (lambda v: TotalVariation(0.1, v), (-1,), "count={}"),
    (lambda v: MomentsAccountant(method=v), ("guess",), "method={!r}"),
    (lambda v: MomentsAccountant(orders=v), ((),), "at least one"),
    (lambda v: MomentsAccountant(orders=(v,)), (0, nan), "order={}"),
    (lambda v: MomentsAccountant(orders=(v,)), (2000,), "1024"),
    (lambda v: MomentsAccountant(orders=(v,), method="closed-form"), (1.5,), "integer"),
    (lambda v: Filter(MomentsAccountant(), v, 1e-5), (-1.0, nan), "epsilon={}"),
    (lambda v: Filter(MomentsAccountant(), 1.0, v), (0.0, 1.0), "delta={}"),
    (lambda v: Filter(v, 1.0, 1e-5), ("momens",), "accountant='momens' to be one of moments"),
    (lambda v: Filter(v, 1.0, 1e-5), (7,), "expected accountant=7 to be an accountant, such as MomentsAccountant"),
    (lambda v: theorem_d1(*v), ((1.0, 0.6, 0.05, 0.1), (1.0, 0.0, 0.05, 0.1)), "epsilon_prime="),
    (lambda v: theorem_d1(1.0, 0.5, v, 0.1), (0.0,), "delta="),
    (lambda v: theorem_d1(1.0, 0.5, 0.05, v), (0.0,), "good_share="),
    (lambda v: theorem_d1(v, 0.5, 0.05, 0.1), (-1.0,), "epsilon"),
    (Streams, (-1, 1.5, "1", True), "expected seed={!r}"),
    (lambda v: centre_crop(np.zeros((1, 24, 24, 3)), v), (25,), "size={}"),
    (lambda v: draw_distortions(2, None, size=v), (33,), "size={}"),
    (lambda v: draw_distortions(2, None, contrast=v), ((1.2, 0.8),), "contrast"),
] for value in values]


@pytest.mark.parametrize("make, value, words", ROWS, ids=range(len(ROWS)))
def test_a_wrong_setting_is_named(make, value, words):
    with pytest.raises(ParameterError) as refused:
        make(value)
    assert words.format(value) in str(refused.value)
