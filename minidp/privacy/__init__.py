"""What was released, and what it costs: events, the ledger, and the accountants that read it.

Names load on first use, so that importing this package loads neither Numba nor SciPy.
"""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "events": (
            "NeighbouringRelation Event Gaussian JointGaussian Laplace PureDP ApproximateDP "
            "PoissonSampled Composed Repeated NonPrivate Unknown"
        ),
        "ledger": "Ledger",
        "accountant": "Accountant",
        "bound": "Bound",
        "moments": "MomentsAccountant",
        "renyi": "RenyiAccountant",
        ".certified.accountant": "LossDistributionAccountant",
        ".certified.gaussian": "GaussianAccountant",
        ".certified.composition": (
            "AdvancedAccountant BasicAccountant PaperStrongComposition PerTensorAccountant2016"
        ),
        "group_privacy": "group_epsilon",
        "budget": "Odometer Filter",
        "calibrate": "max_steps noise_multiplier_for",
        ".run.search_cost": "theorem_d1",
    },
)
