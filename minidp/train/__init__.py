"""Training: optimizers over released gradients, the trainer, metrics."""
from .averaging import Averaged, KeptBest
from .metrics import Metrics, evaluate
from .optimizer import OPTIMIZERS, SGD, AdaGrad, Adam, Momentum, Nesterov
from .trainer import Progress, Trainer, TrainRecord

__all__ = [
    "OPTIMIZERS", "SGD", "AdaGrad", "Adam", "Averaged", "KeptBest", "Metrics", "Momentum", "Nesterov", "Progress",
    "TrainRecord", "Trainer", "evaluate",
]
