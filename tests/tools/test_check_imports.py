"""The import checker fails on every kind of upward import, and passes what is allowed."""
import pytest

from tools import check_imports


def tree(tmp_path, files):
    """A small project with one empty module for each name that the table ranks, plus the given files."""
    names = [*(f"{part}/__init__" for part in ("nn", "privacy", "data", "mechanism", "train", "audit")), "errors",
             "backend", "grads", "__init__"]
    for name, text in {**{f"minidp/{name}.py": "" for name in names}, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


ALLOWED = {
    "downward relative": ("minidp/nn/dense.py", "from ..errors import ShapeError\nfrom ..grads import Outer\n"),
    "downward absolute": ("minidp/train/trainer.py", "import minidp.mechanism\nfrom minidp.privacy import events\n"),
    "own package": ("minidp/nn/dense.py", "from .layer import Layer\nfrom . import init\n"),
    "rank 0 among itself": ("minidp/validate.py", "from .errors import ParameterError\n"),
    "everything from the top": ("minidp/__main__.py", "from . import privacy, train\nfrom .audit import card\n"),
    "other libraries": ("minidp/privacy/moment_kernels.py", "import numba\nfrom scipy import special\n"),
    "lazy within the package": ("minidp/privacy/__init__.py", "from importlib import import_module\n"
                                "def __getattr__(name):\n    return import_module(f'.{name}', __name__)\n"),
    "mechanism and privacy": ("minidp/mechanism/sanitizer.py", "from ..privacy.events import Gaussian\n"),
}


@pytest.mark.parametrize("file, text", ALLOWED.values(), ids=ALLOWED.keys())
def test_allowed(tmp_path, capsys, file, text):
    assert check_imports.main(tree(tmp_path, {file: text})) == 0
    assert "all downward" in capsys.readouterr().out


WRONG = {
    "upward": ("minidp/errors.py", "from .backend import Backend\n", "errors (rank 0) must not import backend"),
    "upward from a package": ("minidp/nn/dense.py", "from ..train.trainer import Trainer\n", "must not import train"),
    "siblings": ("minidp/nn/dense.py", "from ..privacy import events\n", "its sibling"),
    "absolute": ("minidp/privacy/events.py", "import minidp.nn.dense\n", "its sibling"),
    "mechanism and nn": ("minidp/mechanism/plan.py", "from ..nn import Dense\n", "mechanism must not import nn"),
    "by name of the package": ("minidp/nn/dense.py", "from minidp import train\n", "must not import train"),
    "two dots": ("minidp/nn/dense.py", "from .. import privacy\n", "its sibling"),
    "public names": ("minidp/nn/dense.py", "from minidp import Trainer\n", "must not import __init__"),
    "whole package": ("minidp/grads.py", "import minidp\n", "must not import __init__"),
    "inside a function": ("minidp/backend.py", "def f():\n    from .grads import Outer\n", "backend.py:2: backend"),
    "import_module": ("minidp/nn/dense.py", "import importlib\nimportlib.import_module('minidp.train')\n",
                      "must not import train"),
    "import_module, relative": ("minidp/nn/dense.py", "from importlib import import_module\n"
                                "import_module('..privacy.events', __package__)\n", "its sibling"),
    "tests": ("minidp/train/trainer.py", "from tests.support import cases\n", "not part of the package"),
    "experiments": ("minidp/train/trainer.py", "import experiments.common\n", "not part of the package"),
    "no rank": ("minidp/newcomer.py", "", "newcomer has no rank"),
}


@pytest.mark.parametrize("file, text, message", WRONG.values(), ids=WRONG.keys())
def test_wrong(tmp_path, capsys, file, text, message):
    assert check_imports.main(tree(tmp_path, {file: text})) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:") and message in line


def test_empty_tree_fails(tmp_path):
    assert check_imports.main(tmp_path) == 1
