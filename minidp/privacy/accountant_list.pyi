# Every accountant, in the order of tables: what stands here, `minidp.privacy` exports, and command
# lines, results and shared tests know by the names that the class gives.
# isort: skip_file
from .moments import MomentsAccountant as MomentsAccountant
from .renyi import RenyiAccountant as RenyiAccountant
from ..certified.accountant import LossDistributionAccountant as LossDistributionAccountant
from ..certified.gaussian import GaussianAccountant as GaussianAccountant
from ..certified.composition import AdvancedAccountant as AdvancedAccountant
from ..certified.composition import BasicAccountant as BasicAccountant
from ..certified.composition import PaperStrongComposition as PaperStrongComposition
from ..certified.composition import PerTensorAccountant2016 as PerTensorAccountant2016
