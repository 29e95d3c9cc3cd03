from .accountant import Accountant as Accountant
from .bound import Bound as Bound
from .budget import Filter as Filter
from .budget import Odometer as Odometer
from .calibrate import max_steps as max_steps
from .calibrate import (
    noise_multiplier_for as noise_multiplier_for,
)
from .composition import (
    AdvancedAccountant as AdvancedAccountant,
)
from .composition import (
    BasicAccountant as BasicAccountant,
)
from .composition import (
    PaperStrongComposition as PaperStrongComposition,
)
from .composition import (
    PerTensorAccountant2016 as PerTensorAccountant2016,
)
from .events import (
    ApproximateDP as ApproximateDP,
)
from .events import (
    Composed as Composed,
)
from .events import (
    Event as Event,
)
from .events import (
    Gaussian as Gaussian,
)
from .events import (
    JointGaussian as JointGaussian,
)
from .events import (
    Laplace as Laplace,
)
from .events import (
    NeighbouringRelation as NeighbouringRelation,
)
from .events import (
    NonPrivate as NonPrivate,
)
from .events import (
    PoissonSampled as PoissonSampled,
)
from .events import (
    PureDP as PureDP,
)
from .events import (
    Repeated as Repeated,
)
from .events import (
    Unknown as Unknown,
)
from .gaussian import GaussianAccountant as GaussianAccountant
from .group_privacy import group_epsilon as group_epsilon
from .ledger import Ledger as Ledger
from .moments import MomentsAccountant as MomentsAccountant
from .pld.accountant import LossDistributionAccountant as LossDistributionAccountant
from .renyi import RenyiAccountant as RenyiAccountant
from .search_cost import theorem_d1 as theorem_d1
