"""Names of a package that load on first use, so that importing the package loads no library; and
the rings around the core, which may be left out.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def names_of(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`, as the `__init__.pyi` beside its file has them:
    one list, for type checkers and for Python.

    In the stub, `from .dense import Dense as Dense` is a name of a module, `from . import init as
    init` a module, and `from .samplers import *` stands for the module's `__all__`, a list of
    texts. Modules of rings, such as `..layers.norm`, may be left out.
    """
    place_of = dict(_imports(Path(file).with_suffix(".pyi")))

    def getattr_(name):
        if name not in place_of:
            from .words import hint  # here, because it is for errors alone

            raise AttributeError(f"{package} has no {name}; {hint(name, place_of)}")
        place = place_of[name]
        found = _loaded(place, package)
        if found is None:
            ring = place.lstrip(".").partition(".")[0]
            raise ImportError(
                f"{package}.{name} is in the folder {ring} of minidp, which was left out here"
            )
        return found if place == f".{name}" else getattr(found, name)

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *place_of}), list(place_of)


def _imports(stub) -> Iterator[tuple[str, str]]:
    """(name, module that it is in, relative to the package) of what a stub imports."""
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    yield from ((name, base) for name in _public(stub.parent / f"{node.module}.py"))
                else:
                    yield alias.name, base if node.module else base + alias.name


def _public(path):
    """The names in `__all__` of a file, without running it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def ring(part: str) -> Any:
    """The module that offers `part` to the core, None if its ring was left out.

    part: a key of RINGS in the package's `__init__`, which names the modules.
    """
    package = __package__.partition(".")[0]
    return _loaded(f".{sys.modules[package].RINGS[part]}", package)


def _loaded(module, package):
    """A module of a package, None if the folder that it stands in is not there."""
    try:
        return import_module(module, package)
    except ModuleNotFoundError as error:
        folder = ".".join((error.name or "").split(".")[:2])
        if error.name != folder or not folder.startswith(f"{package.partition('.')[0]}."):
            raise  # a library is missing, or a file of a ring that is there
        return None


def kinds_of(base: type, names: Mapping[str, Any]) -> list[Any]:
    """The classes below a base among the names of a module, in the order of their definitions."""
    found = [each for each in names.values() if isinstance(each, type) and issubclass(each, base)]
    return [each for each in found if each is not base]
