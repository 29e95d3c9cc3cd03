"""minidp takes from CuPy what CuPy has: names, methods and keywords, found in the source."""

import ast
import json
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import minidp
from tests.support import cupy_names, guarded

SIGNATURES = json.loads(cupy_names.FILE.read_text())["signatures"]
TREES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(Path(minidp.__file__).parent.rglob("*.py"))
    if path.parent.name not in ("host", "audit", "checks")
}
OTHERS = ("cuda", "get_default_memory_pool", "ndarray", "__name__")  # are no functions of arrays
ON_HOST = {("augment.py", "max"), ("trial.py", "max")}  # of arrays that are NumPy's on any device


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip(
        "cupy", reason="CUPY MISSING: pip install cupy-cuda12x, which needs no GPU to be imported"
    )


def root(node):
    """True for what stands for the array library: xp, self.xp, namespace_of(x)."""
    return (
        isinstance(node, ast.Name)
        and node.id in ("xp", "lib", "cupy")
        or isinstance(node, ast.Attribute)
        and node.attr == "xp"
        or isinstance(node, ast.Call)
        and getattr(node.func, "id", None) == "namespace_of"
    )


def taken(tree):
    """(name, the call or None, line) of everything that a module takes from its array library, or
    calls as a method.
    """
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = set()
    for node in ast.walk(tree):
        parts, at = [], node
        while isinstance(at, ast.Attribute) and not (parts and root(at)):
            parts.insert(0, at.attr)
            at = at.value
        if parts and id(node) not in inner and (root(at) or id(node) in called):
            inner.update(map(id, ast.walk(node)) if root(at) else ())
            if root(at) or getattr(at, "id", None) not in ("np", "math", "shutil", "textwrap"):
                yield (
                    ".".join(parts) if root(at) else f"ndarray.{parts[-1]}",
                    called.get(id(node)),
                    node.lineno,
                )


def faults(tree, file=""):
    """Lines of a module that ask for what is not in cupy.json, or for a keyword that its signature
    does not have.
    """
    for name, call, line in taken(tree):
        method = name.startswith("ndarray.")
        if name not in SIGNATURES:
            if not (method or name in guarded.SHARED or name.split(".")[0] in OTHERS):
                yield f"{file}:{line}: {name}"
        elif (
            call
            and not any(isinstance(each, ast.Starred) for each in call.args)
            and (file, name.split(".")[-1]) not in ON_HOST
        ):
            try:
                guarded.SIGNATURES[name].bind(
                    *call.args, **{each.arg: each for each in call.keywords if each.arg}
                )
            except TypeError as error:
                yield f"{file}:{line}: {name}: {error}"


def test_the_source_asks_for_names_and_keywords_that_cupy_has():
    assert [fault for path, tree in TREES.items() for fault in faults(tree, path.name)] == []


@pytest.mark.parametrize(
    "line, fault",
    [
        ("y = xp.argpartition(x, 3)", "argpartition"),
        ("y = self.xp.linalg.qr(x)", "linalg.qr"),
        (
            "y = namespace_of(x).max(x, initial=0)",
            "max: got an unexpected keyword argument 'initial'",
        ),
        ("y = (x * 2).sum(axis=1, where=keep)", "ndarray.sum: got an unexpected keyword"),
        ("f = xp.nanmax", "nanmax"),
        ("y = xp.einsum('i->i', x, out=y)", "einsum: got an unexpected keyword"),
    ],
)
def test_a_name_or_keyword_that_cupy_lacks_is_found(line, fault):
    (found,) = faults(ast.parse(line))
    assert fault in found


@pytest.mark.cupy
def test_the_guarded_arrays_have_cupys_signatures(cupy):
    """Every call of a guarded array is bound to cupy.json; python -m tests.support.cupy_names
    writes it anew.
    """
    assert cupy_names.described(cupy, SIGNATURES) == SIGNATURES
    for name in guarded.SHARED:
        assert getattr(cupy, name) is getattr(np, name), name
    for name in dir(guarded.GuardedArray):
        assert name.startswith("_") or name == "xp" or hasattr(cupy.ndarray, name), name
    others = {
        name
        for tree in TREES.values()
        for name, _, _ in taken(tree)
        if name.split(".")[0] in OTHERS[:2]
    }
    for name in (
        *others,
        "cuda.MemoryPool.free_bytes",
        "cuda.Stream.synchronize",
        "cuda.Device.use",
    ):
        attrgetter(name)(cupy)
    lacking = {
        f"ndarray.{name}"
        for name in set(dir(np.ndarray)) - set(dir(cupy.ndarray))
        if not name.startswith("_")
    }
    asked = [
        {name for name, _, _ in taken(tree)} & lacking
        for tree in (ast.parse("x.resize(3)"), *TREES.values())
    ]
    assert asked[0] == {"ndarray.resize"} and not any(asked[1:])
