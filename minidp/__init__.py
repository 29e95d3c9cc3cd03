"""minidp: neural networks trained with differential privacy, in plain NumPy and CuPy, every
gradient by hand.

    from minidp import nn, mechanism, privacy, train

Subpackages load on first use; importing minidp itself loads no library, compiles nothing and
changes nothing in the process. `minidp.host.tune()` makes a process fast; command lines call it
before NumPy loads.
"""

from .util.lazy import names_of

__version__ = "0.1.1"
__getattr__, __dir__, __all__ = names_of(__name__, __file__)
# modules of rings that the core uses if they are there: `util.lazy.ring`
RINGS = {
    "twins": "fast.twins",
    "trial": "fast.device_trial",
    "ranks": "mpi.ranks",
    "arrays": "data.arrays",
    "persons": "data.persons",
    "diagnosis": "audit.trial",
}
