"""Sources of training examples that are not one array in memory, and the persons whose rows they
are. Modules are loaded on first use.
"""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        ".examples": "Examples LabelledExamples",
        "persons": "Persons",
    },
)
