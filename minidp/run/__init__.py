"""A private run on disk: folder, ledger before noise, checkpoint, model, statement, result,
verification.
"""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "asked": "About Privacy Training",
        "checkpoint": ("load_arrays load_checkpoint restore restore_training save_checkpoint"),
        "folder": "RunFolder",
        "model": "Model",
        "model_file": "load_model save_model",
        "run": "Run",
        "safetensors": "load_safetensors",
    },
)
