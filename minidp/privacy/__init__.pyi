from .events import (
    NeighbouringRelation as NeighbouringRelation,
    Event as Event,
    Gaussian as Gaussian,
    JointGaussian as JointGaussian,
    Laplace as Laplace,
    PureDP as PureDP,
    ApproximateDP as ApproximateDP,
    TotalVariation as TotalVariation,
    PoissonSampled as PoissonSampled,
    FixedSizeSampled as FixedSizeSampled,
    BallsInBins as BallsInBins,
    Composed as Composed,
    Repeated as Repeated,
    RandomlyStopped as RandomlyStopped,
    NonPrivate as NonPrivate,
    Unknown as Unknown,
)
from .ledger import Ledger as Ledger
from .accountant import Accountant as Accountant, total_variation as total_variation
from .bound import Bound as Bound
from .moments import MomentsAccountant as MomentsAccountant
from .renyi import RenyiAccountant as RenyiAccountant
from .pld.accountant import LossDistributionAccountant as LossDistributionAccountant
from .gaussian import GaussianAccountant as GaussianAccountant
from .composition import (
    AdvancedAccountant as AdvancedAccountant,
    BasicAccountant as BasicAccountant,
    PaperStrongComposition as PaperStrongComposition,
    PerTensorAccountant2016 as PerTensorAccountant2016,
)
from .group_privacy import group_epsilon as group_epsilon
from .budget import Odometer as Odometer, Filter as Filter, max_steps as max_steps
from .calibrate import (
    noise_multiplier_for as noise_multiplier_for,
    sampling_probability_for as sampling_probability_for,
)
from .search_cost import (
    theorem_d1 as theorem_d1,
    liu_talwar as liu_talwar,
    poisson_stopped_epsilon as poisson_stopped_epsilon,
)
