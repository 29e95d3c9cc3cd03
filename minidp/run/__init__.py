"""A private run on disk: folder, ledger before noise, checkpoint, model, statement, result,
verification.
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
