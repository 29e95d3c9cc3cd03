from ..run.metrics import Metrics as Metrics
from ..run.metrics import evaluate as evaluate
from .averaging import Averaged as Averaged
from .optimizer import *
from .optimizer import OPTIMIZERS as OPTIMIZERS
from .optimizer import Optimizer as Optimizer
from .progress import Progress as Progress
from .trainer import Trainer as Trainer
from .trainer import TrainRecord as TrainRecord
