"""Training: optimizers over released gradients, the trainer, metrics, checkpoints."""
from .averaging import Averaged
from .checkpoint import (load_arrays, load_checkpoint, load_model, restore, restore_training, save_checkpoint,
                         save_model)
from .metrics import Metrics, evaluate
from .optimizer import OPTIMIZERS, SGD, AdaGrad, Adam, Momentum, Nesterov
from .trainer import Progress, Trainer, TrainRecord

__all__ = [
    "OPTIMIZERS", "SGD", "AdaGrad", "Adam", "Averaged", "Metrics", "Momentum", "Nesterov", "Progress",
    "TrainRecord", "Trainer", "evaluate", "load_arrays", "load_checkpoint", "load_model", "restore",
    "restore_training", "save_checkpoint", "save_model",
]
