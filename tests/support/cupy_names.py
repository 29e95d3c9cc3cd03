"""The names of CuPy that the guarded arrays have, with their signatures as CuPy itself gives them:
tests/support/cupy.json.

    python -m tests.support.cupy_names [NAME ...]

writes them anew from the CuPy that is installed, with more names (`linalg.norm`, `ndarray.sum`). No
device is needed.

Signatures come from `inspect.signature`; those of ufuncs and of ndarray's methods, which it cannot
read, and of einsum, which takes any keyword, from the first line of their documentation, where CuPy
writes them out. Defaults are not compared.
"""

import inspect
import json
import re
import sys
from operator import attrgetter
from pathlib import Path

FILE = Path(__file__).with_name("cupy.json")


def signature(function):
    """The parameters, as text: "a, axis=None, *, keepdims=None"; without self."""
    line = (function.__doc__ or "").partition("\n")[0].replace("\\", "").split(" -> ")[0]
    written = re.match(r"(?:\w+\.)?\w+\((.*)\)$", line)
    try:
        found = inspect.signature(function)
    except ValueError:
        found = None
    if written and (
        found is None or any(each.kind is each.VAR_KEYWORD for each in found.parameters.values())
    ):
        text = re.sub(r"\b\w+ (?=\w)", "", written[1])  # types in front of names
        # of ufuncs with two results
        text = re.sub(r" \[, out=.*?\]", ", out=None", text).replace("[, out1, out2]", "")
        found = inspect.signature(eval(f"lambda {text}: None"))  # CuPy's own text, as in a .pyi
    plain = [
        each.replace(
            annotation=each.empty, default=each.empty if each.default is each.empty else None
        )
        for each in found.parameters.values()
        if each.name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=found.empty))[1:-1]


def described(cupy, names):
    """{name: signature} of these names of CuPy. Raises AttributeError for one that it does not
    have.
    """
    return {name: signature(attrgetter(name)(cupy)) for name in names}


if __name__ == "__main__":
    import cupy

    known = json.loads(FILE.read_text())["signatures"]
    FILE.write_text(
        json.dumps(
            {
                "cupy": cupy.__version__,
                "signatures": described(cupy, sorted({*known, *sys.argv[1:]})),
            },
            indent=1,
        )
        + "\n"
    )
