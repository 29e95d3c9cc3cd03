"""What the parts of training and the accountants refuse: each wrong call, and what its error says
is wrong, where, and what is allowed.
"""

from math import inf, nan

import numpy as np
import pytest

from minidp import device, nn
from minidp.errors import BudgetExceededError, DtypeError, ParameterError, ShapeError
from minidp.grads import Explicit, OuterSum
from minidp.mechanism import (
    ClipGroup,
    LinearDecay,
    Plan,
    PoissonSampler,
    PrivatePCA,
    Sanitizer,
    ShuffleSampler,
    flat_group,
    per_layer_groups,
    random_projection,
)
from minidp.mechanism.rounding import Products
from minidp.privacy import (
    ApproximateDP,
    Composed,
    Filter,
    Gaussian,
    JointGaussian,
    Ledger,
    MomentsAccountant,
    NeighbouringRelation,
    PoissonSampled,
    PureDP,
    Repeated,
    group_epsilon,
    max_steps,
    noise_multiplier_for,
    theorem_d1,
)
from minidp.run import Privacy, Training
from minidp.streams import Streams
from minidp.train import SGD, AdaGrad, Adam, Averaged, Momentum, Trainer
from tests.support.accountants import ledger_of
from tests.support.guarded import guarded_backend
from tests.support.refused import each_of, refused
from tests.support.training import make_network, make_plan

KEYS = [("dense1", "W"), ("dense2", "W")]
FLAT = flat_group(KEYS, 4.0, 4.0)
POISSON, SHUFFLE, SANITIZER = PoissonSampler(0.01), ShuffleSampler(100, 30), Sanitizer(FLAT)
FALLING = Sanitizer(flat_group(KEYS, 4.0, LinearDecay(4.0, 2.0, 4)))
GRADS = {key: Explicit(np.zeros((3, 2))) for key in KEYS}
ONE, MOMENTS, PCA = Gaussian(1), MomentsAccountant(), PrivatePCA(2, 4.0)
DENSE, LOSS, SQUARED = nn.Dense(3, 3), nn.SoftmaxCrossEntropy(), nn.SquaredError()
POSITIONS = np.broadcast_to(np.float32(1), (1, 2**22 + 1, 1))


def trainer(network=None, **named):
    """A trainer with one wrong setting."""
    network = network or make_network()
    return Trainer(network, LOSS, SGD(0.1), **{"plan": make_plan(network)} | named)


def frozen():
    return make_plan(nn.Sequential(make_network().layers, (5,), frozen=["dense1"]))


def not_one_lot(noise):
    """Fit steps into a budget that is smaller than one lot's cost."""
    plan = Plan(POISSON, Sanitizer(flat_group(KEYS[:1], 1.0, noise)), 1, 600)
    return plan.fitted("moments", Ledger(), 0.1, 1e-5)


def calibrated(sanitizer, epsilon):
    Plan(POISSON, sanitizer, 9, 600).calibrated("moments", epsilon, 1e-5, [Gaussian(2.0)])


PARTS = {
    ParameterError: {
        "clip_norm=9e-13": lambda: ClipGroup("all", KEYS, 9e-13, 1.0),
        "noise_multiplier=1.0 needs a finite clip_norm": lambda: ClipGroup("all", KEYS, inf, 1.0),
        "noise_multiplier=inf": lambda: ClipGroup("all", KEYS, 1.0, inf),
        "clip group all: expected at least one parameter": lambda: ClipGroup("all", (), 1.0, 1.0),
        "a setting for each of the layers": lambda: per_layer_groups(KEYS, {"dense1": 1.0}, 4.0),
        "expected each parameter in one clip group ... in several": lambda: Sanitizer(2 * FLAT),
        "groups to be one or more ClipGroup": lambda: Sanitizer([]),
        "gradients of [('dense1', 'W'), ('dense2', 'W')], got [('dense1', 'W')]": lambda: (
            SANITIZER.add_clipped({KEYS[0]: GRADS[KEYS[0]]})
        ),
        "cannot be clipped per example": lambda: SANITIZER.add_clipped(
            {**GRADS, KEYS[1]: np.zeros(3)}
        ),
        "initial=nan": lambda: LinearDecay(nan, 1.0, 3),
        "expected loss to be one like nn.SoftmaxCrossEntropy(), got 'ce'": lambda: Trainer(
            make_network(), "ce", SGD(0.1), make_plan(make_network())
        ),
        "expected optimizer to be one like train.SGD(0.1), got <class": lambda: Trainer(
            make_network(), LOSS, SGD, make_plan(make_network())
        ),
        "expected budget to be a Filter, got 2.0": lambda: trainer(budget=2.0),
        "expected budget to be a Filter, got 3.0": lambda: Privacy(
            Plan(POISSON, SANITIZER, 1, 600), 3.0
        ),
        "Filter has no parameter 'target_epsilon'; it is epsilon=": lambda: Filter(
            "pld", target_epsilon=2, delta=1e-5
        ),
        "expected network to be a Sequential, got [": lambda: Training([DENSE], LOSS, SGD(0.1)),
        "expected sanitizer to be a Sanitizer, got [": lambda: Plan(POISSON, FLAT, 1, 600),
        "steps=-3": lambda: LinearDecay(1.0, 1.0, -3),
        "sampling_probability=1.2": lambda: PoissonSampler(1.2),
        "lot_size=0": lambda: ShuffleSampler(10, 0),
        "dataset_size=0": lambda: ShuffleSampler(0, 1),
        "expected 100 examples, the public dataset_size of the sampler, got 9": lambda: next(
            SHUFFLE.lots(9, 1, Streams(1).sampling)
        ),
        "steps=-1": lambda: Plan(POISSON, SANITIZER, -1, 600),
        "expected_lot_size=0": lambda: Plan(POISSON, SANITIZER, 1, 0),
        "expected a sampler, got str": lambda: Plan("poisson", SANITIZER, 1, 600),
        "use the Poisson sampler, or constant settings": lambda: Plan(SHUFFLE, FALLING, 9, 30),
        "expected constant noise multipliers": lambda: calibrated(FALLING, 2.0),
        "dimensions=0": lambda: PrivatePCA(0, 4.0),
        "pca_noise_multiplier=inf": lambda: PrivatePCA(2, inf),
        "expected pca_dim=5 to be at most the 4 inputs": lambda: PrivatePCA(
            5, 4.0
        ).raw_second_moments(np.zeros((3, 4))),
        "dimensions=-1": lambda: random_projection(4, -1, None),
        "add_normals ... in one piece": lambda: (
            Streams(1).noise(0).add_normals(np.zeros((4, 4))[:, ::2], 1.0)
        ),
        "expected seed=-1": lambda: Streams(-1),
        "expected kernel=0": lambda: nn.Conv2D(1, 1, (3, 0)),
        "kernel=(3, 3, 3) to be an integer or a pair": lambda: nn.Conv2D(1, 1, (3, 3, 3)),
        "padding='full'": lambda: nn.Conv2D(1, 1, 3, padding="full"),
        "out_channels=0": lambda: nn.Conv2D(1, 0, 3),
        "stride=0": lambda: nn.MaxPool2D(2, 0),
        "padding=(1, 2) below the window (3, 2)": lambda: nn.AvgPool2D((3, 2), padding=(1, 2)),
        "groups=4": lambda: nn.GroupNorm(6, 4),
        "epsilon=0.0": lambda: nn.LayerNorm(4, epsilon=0.0),
        "expected rate=1.0": lambda: nn.Dropout(1.0),
        "dense: expected rng to be a generator, such as Streams ... got int": lambda: nn.Dense(
            4, 2, rng=7
        ),
        "rng to be a generator, such as Streams ... got module": lambda: nn.Dense(
            4, 2, rng=np.random
        ),
        "expected each layer once": lambda: nn.Sequential([DENSE, DENSE], 3),
        "frozen to name layers of ['dense1'], got ['dense9": lambda: nn.Sequential(
            [DENSE], 3, ["dense9"]
        ),
        "learning_rate=inf": lambda: AdaGrad(inf),
        "offset=-1.0": lambda: AdaGrad(0.1, -1.0),
        "momentum=1.0": lambda: Momentum(0.1, 1.0),
        "beta1=1.0": lambda: Adam(0.1, beta1=1.0),
        "offset=0.0": lambda: Adam(0.1, offset=0.0),
        "decay=1.0": lambda: Averaged(SGD(0.1), 1.0),
        "gradients of [('dense1', 'W')], got [('dense2', 'W')]": lambda: SGD(0.1).update(
            {KEYS[0]: np.zeros(2)}, {KEYS[1]: np.zeros(2)}, 0
        ),
        "expected clip groups over the trained": lambda: trainer(plan=frozen()),
        "one relation per run": lambda: trainer(ledger=Ledger(NeighbouringRelation.ZERO_OUT)),
        "batch_size=0": lambda: trainer(batch_size=0),
        "lots drawn from 400 examples have 80 on average": lambda: trainer(dataset_size=400),
        "the budget has its own ledger": lambda: trainer(
            budget=Filter(MOMENTS, 1.0, 1e-5), ledger=Ledger()
        ),
        "augmentation_multiplicity=0": lambda: trainer(augmentation_multiplicity=0),
        "noise_multiplier=-1.0": lambda: Gaussian(-1.0),
        "expected epsilon=-1 to be": lambda: PureDP(-1),
        "delta=1.1": lambda: ApproximateDP(1.0, 1.1),
        "at least one noise multiplier, got none": lambda: JointGaussian(()),
        "sampling_probability=1.3": lambda: PoissonSampled(1.3, ONE),
        "PoissonSampled: expected an Event, got 4.0": lambda: PoissonSampled(0.1, 4.0),
        "Composed: expected an Event, got None": lambda: Composed((ONE, None)),
        "count=1.5": lambda: Repeated(ONE, 1.5),
        "orders to hold at least one order": lambda: MomentsAccountant(orders=()),
        "order=0": lambda: MomentsAccountant(orders=(0,)),
        "epsilon=-1.0": lambda: Filter(MOMENTS, -1.0, 1e-5),
        "delta=0.0": lambda: Filter(MOMENTS, 1.0, 0.0),
        "accountant='momens' to be one of moments": lambda: Filter("momens", 1.0, 1e-5),
        "expected accountant=7 to be an accountant, such as MomentsAccountant": lambda: Filter(
            7, 1.0, 1e-5
        ),
        "set the number of steps": lambda: max_steps(MOMENTS, Ledger(), Gaussian(inf), 1.0, 1e-5),
        "already keeps": lambda: noise_multiplier_for(
            MOMENTS, lambda noise: ledger_of((Gaussian(1e6), 1)), 1.0, 1e-5
        ),
        "group_size=0": lambda: group_epsilon(MOMENTS, ledger_of((ONE, 1)), 1e-5, 0),
        "expected epsilon=-2.0": lambda: theorem_d1(-2.0, 0.5, 0.05, 0.1),
        "epsilon_prime=0.6 in (0, 0.5]": lambda: theorem_d1(1.0, 0.6, 0.05, 0.1),
        "delta=1.0 in (0, 1)": lambda: theorem_d1(1.0, 0.5, 1.0, 0.1),
        "good_share=0.0 in (0, 1]": lambda: theorem_d1(1.0, 0.5, 0.05, 0.0),
    },
    ShapeError: {
        "PrivatePCA: expected x of shape (N, D), got (4, 2, 2)": lambda: PCA.raw_second_moments(
            np.zeros((4, 2, 2))
        ),
        "expected gradients of the 100 examples of the lot, got 3 ... a mean": lambda: (
            SANITIZER.add_clipped(GRADS, products=Products(0, 9, 1.0).for_lot(100))
        ),
        "same number of examples": lambda: SANITIZER.add_clipped(
            {**GRADS, KEYS[1]: Explicit(np.zeros((4, 3)))}
        ),
        "at most 4,194,304 positions": lambda: OuterSum(POSITIONS, POSITIONS),
        "groupnorm1: expected two or more numbers to normalise together": lambda: nn.Sequential(
            [nn.GroupNorm(4, 4)], (1, 1, 4)
        ),
        "layernorm1: expected two or more numbers to normalise together": lambda: nn.Sequential(
            [nn.LayerNorm(1)], (5, 1)
        ),
        "lstm1: expected at least one position": lambda: nn.Sequential([nn.LSTM(3, 4)], (0, 3)),
        "dense2: expected input of shape (4,)": lambda: nn.Sequential([DENSE, nn.Dense(4, 2)], 3),
        "network: expected x of shape (B, 5), got": lambda: make_network().forward(np.zeros(5)),
        "target of shape (3, 4), got (3, 5)": lambda: SQUARED(np.zeros((3, 4)), np.zeros((3, 5))),
    },
    DtypeError: {
        "PrivatePCA: expected x of dtype float32 or float64": lambda: PCA.raw_second_moments(
            np.zeros((3, 4), int)
        ),
        "network: expected x of dtype float32 or float64, got int64": lambda: (
            make_network().forward(np.zeros((4, 5), "int64"))
        ),
        "target of an integer dtype, got float64": lambda: LOSS(np.zeros((3, 4)), np.zeros(3)),
        "dense1.W: expected float32 or float64 to train, got float16": lambda: trainer(
            make_network(dtype="float16")
        ),
    },
    BudgetExceededError: {
        "epsilon is 0.6958 ... before the first step, above the target of 0.1": lambda: Plan(
            POISSON, FALLING, 1, 600
        ).fitted(MOMENTS, ledger_of((Gaussian(7.0), 1)), 0.1, 1e-5),
        "1.231 at delta=1e-05 before the first step": lambda: max_steps(
            MOMENTS, ledger_of((Gaussian(4.0), 1)), ONE, 1.2, 1e-5
        ),
        "no noise multiplier up to 1e+07 is enough": lambda: calibrated(SANITIZER, 0.1),
        "not one lot fits into epsilon 0.1 at delta=1e-05: it alone would be ... ; raise the": (
            lambda: not_one_lot(0.5)
        ),
        "not one lot fits ... : a lot without noise has no epsilon; raise the": (
            lambda: not_one_lot(lambda step: 0.0)
        ),
    },
    ValueError: {
        "C order": lambda: device.add_normals(
            Streams(1).noise(0).state(), 0, 1.0, 0.0, guarded_backend().asarray(np.ones((3, 4))).T
        )
    },
}


@each_of(PARTS)
def test_a_wrong_call_is_refused_in_one_line(error, words, call):
    with refused(error, *words):
        call()


def test_a_wrong_append_changes_nothing():
    ledger = Ledger()
    for event, count in (("Gaussian", 1), (ONE, -1), (ONE, 1.5)):
        with pytest.raises(ParameterError):
            ledger.append(event, count)
    assert ledger == Ledger()
