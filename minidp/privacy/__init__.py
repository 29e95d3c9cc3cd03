"""What was released, and what it costs: events, the ledger, and the accountants that read it.

Names load on first use, so that importing this package loads neither Numba nor SciPy.
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
