"""The project's structure: imports point downward and load nothing heavy, equations have their code and checks."""
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import minidp
from minidp.audit import checks
from tools import check_cards, check_imports

ROOT = Path(__file__).resolve().parents[1]
INTERNAL = ("minidp.audit.", "minidp.backend", "minidp.commands.", "minidp.grads", "minidp.host.", "minidp.nn.", "minidp.run.",
            "minidp.train.", "minidp.privacy.budget", "minidp.privacy.calibrate", "minidp.privacy.moment_kernels",
            "minidp.privacy.pld.", "minidp.mechanism.plan", "minidp.__main__")
MODULES = [found.name for found in pkgutil.walk_packages(minidp.__path__, "minidp.")
           if not found.ispkg and not found.name.startswith(INTERNAL)]


def functions(module):
    """(name, function) of the public functions and methods that a module defines; not of those that override another."""
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            for method, made in vars(value).items():
                made = getattr(made, "fget", getattr(made, "__func__", made))
                inherited = method != "__init__" and any(method in vars(base) for base in value.__mro__[1:])
                public = method in ("__init__", "__call__") or not method.startswith("_")
                if inspect.isfunction(made) and public and not inherited:
                    yield f"{name}.{method}", made
        elif inspect.isroutine(value) and not name.startswith("_"):
            yield name, inspect.unwrap(value)


def unannotated(module):
    """Names of the public functions of a module that lack the type of a parameter, or of what they return."""
    return [name for name, function in functions(module) if function.__module__ == module.__name__ and (
            {*inspect.signature(function).parameters} - {"self", "cls"} - {*function.__annotations__}
            or "return" not in function.__annotations__ and not name.endswith("__init__"))]


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_annotated(name):
    assert unannotated(importlib.import_module(name)) == []


def test_a_missing_annotation_is_found():
    assert unannotated(sys.modules[__name__]) == [name for name, _ in functions(sys.modules[__name__])]


def test_imports_point_downward(capsys):
    assert check_imports.main(ROOT) == 0, capsys.readouterr().out


def test_every_equation_has_its_code_and_its_check(capsys):
    assert check_cards.main(ROOT, checks.load()) == 0, capsys.readouterr().out


@pytest.mark.parametrize("module, heavy", [("minidp", ("numba", "scipy", "matplotlib", "cupy", "tqdm")),
                                           ("minidp.run", ("common", "matplotlib", "tqdm")),
                                           ("minidp.plotting", ("matplotlib",))])
def test_importing_loads_no_library_before_it_is_used(module, heavy):
    script = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
