"""Sources of training examples: arrays, tables, files, and the persons whose rows they are. Modules
are loaded on first use.
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
