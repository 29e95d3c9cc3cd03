"""One row per accountant: what the shared conformance tests build it from, and which events it
bounds.
"""

from dataclasses import dataclass
from functools import cached_property

from minidp.audit.checks.exact_values import ledger_of  # noqa: F401, for tests too
from minidp.privacy import (
    AdvancedAccountant,
    BasicAccountant,
    Gaussian,
    GaussianAccountant,
    JointGaussian,
    Laplace,
    LossDistributionAccountant,
    MomentsAccountant,
    NeighbouringRelation,
    PaperStrongComposition,
    PerTensorAccountant2016,
    PoissonSampled,
    PureDP,
    RenyiAccountant,
)

ADD_REMOVE = NeighbouringRelation.ADD_REMOVE
ZERO_OUT = NeighbouringRelation.ZERO_OUT

SAMPLED = (PoissonSampled(0.01, Gaussian(4.0)), PoissonSampled(0.2, JointGaussian((2.0, 3.0))))
UNSAMPLED = (Gaussian(5.0), JointGaussian((5.0, 7.0)))
PURE = (Laplace(20.0), PureDP(0.05), PoissonSampled(0.1, Laplace(10.0)))


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
    Row("loss-distribution", LossDistributionAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("gaussian-clt", GaussianAccountant, SAMPLED + UNSAMPLED),
    Row("basic", BasicAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("advanced", AdvancedAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("paper-strong-composition", PaperStrongComposition, SAMPLED + UNSAMPLED + PURE),
    Row("ledger-2016", PerTensorAccountant2016, SAMPLED + UNSAMPLED + PURE),
]
