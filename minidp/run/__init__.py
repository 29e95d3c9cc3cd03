"""A private run on disk: folder, ledger before noise, checkpoint, statement, result, verification."""
from .checkpoint import (load_arrays, load_checkpoint, load_model, restore, restore_training, save_checkpoint,
                         save_model)
from .folder import RunFolder
from .run import Run

__all__ = ["Run", "RunFolder", "load_arrays", "load_checkpoint", "load_model", "restore", "restore_training",
           "save_checkpoint", "save_model"]
