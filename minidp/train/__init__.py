"""Training: optimizers over released gradients, the trainer, metrics."""

from .averaging import Averaged
from .metrics import Metrics, evaluate
from .optimizer import OPTIMIZERS, SGD, AdaGrad, Adam, Momentum, Nesterov, Optimizer
from .progress import Progress
from .trainer import Trainer, TrainRecord

__all__ = [
    "OPTIMIZERS",
    "SGD",
    "AdaGrad",
    "Adam",
    "Averaged",
    "Metrics",
    "Momentum",
    "Nesterov",
    "Optimizer",
    "Progress",
    "TrainRecord",
    "Trainer",
    "evaluate",
]
