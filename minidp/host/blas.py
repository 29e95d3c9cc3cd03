"""NumPy's OpenBLAS, which multiplies matrices: its kernels and its number of threads."""

import ctypes
from functools import cache


def kernels():
    """The name of OpenBLAS's current kernels, such as "SkylakeX"; None without an OpenBLAS."""
    function = _function("get_corename")
    if function is None:
        return None
    function.restype = ctypes.c_char_p
    return function().decode()


@cache
def thread_functions():
    """(get, set): functions for the number of threads of matrix products; None without an
    OpenBLAS.
    """
    get, set_ = _function("get_num_threads"), _function("set_num_threads")
    if get is None or set_ is None:
        return None
    get.restype, set_.argtypes, set_.restype = ctypes.c_int, [ctypes.c_int], None
    return get, set_


def _function(name):
    """OpenBLAS's function of this name in the library that NumPy is linked to, or None."""
    try:
        from numpy._core import _multiarray_umath

        # loaded already; the search includes the libraries that it is linked to
        library = ctypes.CDLL(_multiarray_umath.__file__)
    except (ImportError, OSError):
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            found = getattr(library, f"{prefix}_{name}{suffix}", None)
            if found is not None:
                return found
    return None
