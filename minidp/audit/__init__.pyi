from ..steptest.step import Stated as Stated
from ..steptest.step import StepReport as StepReport
from ..steptest.step import check_step as check_step
from .layer_tests import check_layer as check_layer
from .layer_tests import check_loss as check_loss
