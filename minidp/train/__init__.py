"""Training: optimizers over released gradients, the trainer, metrics."""

from ..util.words import hint
from .averaging import Averaged
from .metrics import Metrics, evaluate
from .optimizer import OPTIMIZERS, SGD, AdaGrad, Adam, AdamW, Momentum, Nesterov, Optimizer
from .progress import Progress
from .trainer import Trainer, TrainRecord

__all__ = [
    "OPTIMIZERS",
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
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


def __getattr__(name):
    raise AttributeError(f"minidp.train has no {name}; {hint(name, __all__)}")
