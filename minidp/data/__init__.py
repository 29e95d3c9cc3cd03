"""Sources of training examples that are not one array in memory, and the persons whose rows they
are. Modules are loaded on first use.
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
