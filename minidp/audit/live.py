"""Put changed functions into loaded modules: every function object gets the changed code.

The server that `broken` forks its processes from imports this module. It loads all checks and notes
what ran meanwhile: a function that computed something during an import left a result that a later
change does not reach, and so did a module's and a class's own lines.
"""

import gc
import sys
from types import CodeType, FunctionType

from numba.core.dispatcher import Dispatcher

_ran: set[CodeType] = set()
sys.setprofile(lambda frame, event, argument: _ran.add(frame.f_code))
from .checks import load  # noqa: E402

load()
sys.setprofile(None)

_functions: dict = {}  # of each file and code
for _object in gc.get_objects():
    if isinstance(_object, FunctionType):
        _code = _object.__code__
        _functions.setdefault((_code.co_filename, _code), []).append(_object)
    elif isinstance(_object, Dispatcher):
        _ran.add(_object.py_func.__code__)  # its machine code does not change


def put_in(file, source):
    """Give a loaded file's functions the code in `source`. False: only a fresh import can."""
    old = compile(file.read_text("utf-8"), str(file), "exec")
    try:
        return _exchange(old, compile(source, str(file), "exec"), str(file))
    except ValueError:  # not as many free variables, or inner functions
        return False


def _exchange(old, new, file):
    for function in _functions.get((file, old), ()):
        function.__code__ = new
    (before, inner), (after, changed) = _parts(old), _parts(new)
    if before != after:
        return old not in _ran
    return all(_exchange(a, b, file) for a, b in zip(inner, changed, strict=True) if a != b)


def _parts(code):
    """The code without that of the functions it defines and without positions; and theirs."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    kept = tuple(constant for constant in code.co_consts if constant not in inner)
    return code.replace(co_consts=kept, co_linetable=b""), inner
