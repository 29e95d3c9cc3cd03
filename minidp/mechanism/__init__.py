"""Everything that touches the private data: sampling, clipping, noise and private projections; and
the plan that joins them.
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
