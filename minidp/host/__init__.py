"""Speed on the host, without any change of results: threads, allocator and caches.

from minidp import host
host.tune()          # before NumPy is imported; command lines do it, importing minidp never does
"""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
