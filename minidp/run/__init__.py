"""A private run on disk: folder, ledger before noise, checkpoint, model, statement, result,
verification.
"""

from ..util.words import hint
from .asked import About, Privacy, Training
from .checkpoint import load_arrays, load_checkpoint, restore, restore_training, save_checkpoint
from .folder import RunFolder
from .model import Model
from .model_file import load_model, save_model
from .run import Run
from .safetensors import load_safetensors

__all__ = [
    "About",
    "Model",
    "Privacy",
    "Run",
    "RunFolder",
    "Training",
    "load_arrays",
    "load_checkpoint",
    "load_model",
    "load_safetensors",
    "restore",
    "restore_training",
    "save_checkpoint",
    "save_model",
]


def __getattr__(name):
    raise AttributeError(f"minidp.run has no {name}; {hint(name, __all__)}")
