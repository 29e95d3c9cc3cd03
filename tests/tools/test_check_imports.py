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


WRONG = {
    "upward": ("minidp/errors.py", "from .backend import Backend\n", "errors (rank 0) must not import backend"),
    "upward from a package": ("minidp/nn/dense.py", "from ..train.trainer import Trainer\n", "must not import train"),
    "absolute": ("minidp/privacy/events.py", "import minidp.nn.dense\n", "its sibling"),
    "mechanism and nn": ("minidp/mechanism/plan.py", "from ..nn import Dense\n", "mechanism must not import nn"),
    "by name of the package": ("minidp/nn/dense.py", "from minidp import train\n", "must not import train"),
    "public names": ("minidp/nn/dense.py", "from minidp import Trainer\n", "must not import __init__"),
    "whole package": ("minidp/grads.py", "import minidp\n", "must not import __init__"),
    "inside a function": ("minidp/backend.py", "def f():\n    from .grads import Outer\n", "backend.py:2: backend"),
    "import_module": ("minidp/nn/dense.py", "import importlib\nimportlib.import_module('minidp.train')\n",
                      "must not import train"),
    "import_module, relative": ("minidp/nn/dense.py", "from importlib import import_module\n"
                                "import_module('..privacy.events', __package__)\n", "its sibling"),
    "experiments": ("minidp/train/trainer.py", "import experiments.common\n", "not part of the package"),
    "no rank": ("minidp/newcomer.py", "", "newcomer has no rank"),
}


@pytest.mark.parametrize("file, text, message", WRONG.values(), ids=WRONG.keys())
def test_wrong(tmp_path, capsys, file, text, message):
    assert check_imports.main(tree(tmp_path, {file: text})) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:") and message in line
