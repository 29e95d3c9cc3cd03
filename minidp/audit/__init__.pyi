from .layer_tests import check_layer as check_layer
from .layer_tests import check_loss as check_loss
from .report import page as page
from .step import Stated as Stated
from .step import StepReport as StepReport
from .step import check_step as check_step
