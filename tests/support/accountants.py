"""One row per accountant: what the shared conformance tests build it from, and which events it
bounds.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

from minidp import privacy
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Laplace,
    Ledger,
    MomentsAccountant,
    NeighbouringRelation,
    PoissonSampled,
    PureDP,
    RenyiAccountant,
)
from minidp.privacy.accountants import every

ADD_REMOVE = NeighbouringRelation.ADD_REMOVE
ZERO_OUT = NeighbouringRelation.ZERO_OUT

SAMPLED = (PoissonSampled(0.01, Gaussian(4.0)), PoissonSampled(0.2, JointGaussian((2.0, 3.0))))
UNSAMPLED = (Gaussian(5.0), JointGaussian((5.0, 7.0)))
PURE = (Laplace(20.0), PureDP(0.05), PoissonSampled(0.1, Laplace(10.0)))


def ledger_of(*entries, relation=ADD_REMOVE):
    """A ledger of (event, count) pairs."""
    return Ledger(relation, entries)


def spent(accountant, *entries, delta=1e-5):
    """The bound on epsilon of (event, count) pairs."""
    return accountant.epsilon(ledger_of(*entries, relation=accountant.relation), delta)


@dataclass(frozen=True)
class Row:
    """make(relation) builds the accountant; `events` are the ones it must support under
    `relation`.
    """

    label: str
    make: object
    events: tuple
    relation: NeighbouringRelation = ADD_REMOVE

    @cached_property
    def accountant(self):
        return self.make(self.relation)

    def epsilon(self, *events, times=1, delta=1e-5):
        """The bound on each of the events, `times` times."""
        return spent(self.accountant, *((event, times) for event in events), delta=delta)

    def delta(self, epsilon, *events, times=1):
        return self.accountant.delta(
            ledger_of(*((event, times) for event in events), relation=self.relation), epsilon
        )


ROWS = [
    Row("moments", MomentsAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("moments-zero-out", MomentsAccountant, SAMPLED + UNSAMPLED, ZERO_OUT),
    Row("renyi", RenyiAccountant, SAMPLED + UNSAMPLED + PURE),
]
if find_spec("minidp.certified"):  # which a copy of the core does without
    ROWS += [
        Row("loss-distribution", privacy.LossDistributionAccountant, SAMPLED + UNSAMPLED + PURE),
        Row("gaussian-clt", privacy.GaussianAccountant, SAMPLED + UNSAMPLED),
        Row("basic", privacy.BasicAccountant, SAMPLED + UNSAMPLED + PURE),
        Row("advanced", privacy.AdvancedAccountant, SAMPLED + UNSAMPLED + PURE),
        Row("paper-strong-composition", privacy.PaperStrongComposition, SAMPLED + UNSAMPLED + PURE),
        Row("ledger-2016", privacy.PerTensorAccountant2016, SAMPLED + UNSAMPLED + PURE),
    ]


def covered(make):
    """The events that an accountant says it has a theorem for."""
    covers = make(ADD_REMOVE).covers
    events = SAMPLED + UNSAMPLED + PURE
    return tuple(event for event in events if all(covers(each) for each, _ in event.primitives(1)))


MADE = {row.make for row in ROWS}
ROWS += [Row(each.name, each, covered(each)) for each in every() if each not in MADE]
