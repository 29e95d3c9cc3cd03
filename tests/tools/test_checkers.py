"""The checkers of cards and imports notice faults; tests/test_structure.py has the project itself
pass.
"""

import pytest

from minidp import nn
from minidp.privacy.events.base import Event
from tools import check_cards, check_imports

DENSE = '''
class Dense:
    """Affine.

    Forward
        [F1]  y = x W

    Source
        [F1]  own derivation
    """

    def forward(self, x):
        return x @ self.W  # [F1]
'''
CARDS = {
    "no line of code": (DENSE.replace("  # [F1]", ""), "[F1] has no line of code"),
    "label only in the code": (
        DENSE.replace("# [F1]", "# [F1] [F2]"),
        "[F2] is not in the card of Dense",
    ),
    "no source": (DENSE.replace("    [F1]  own derivation\n", ""), "names no source"),
    "no check": (DENSE.replace("[F1]  y", "[F1] [F2]  y"), "[F2] has no check"),
}
IMPORTS = {
    "upward": (
        "minidp/errors.py",
        "from .backend import Backend\n",
        "errors must not import backend",
    ),
    "sibling": (
        "minidp/privacy/events.py",
        "import minidp.nn.dense\n",
        "privacy must not import nn",
    ),
    "apart": (
        "minidp/mechanism/plan.py",
        "from ..nn import Dense\n",
        "mechanism must not import nn",
    ),
    "public names": (
        "minidp/nn/dense.py",
        "from minidp import Trainer\n",
        "must not import __init__",
    ),
    "inside a function": (
        "minidp/backend.py",
        "def f():\n    from .grads import Outer\n",
        "backend.py:2: backend",
    ),
    "dynamic": (
        "minidp/nn/x.py",
        "import importlib\nimportlib.import_module('..train', __package__)\n",
        "import train",
    ),
    "outside": (
        "minidp/train/trainer.py",
        "import experiments.common\n",
        "not part of the package",
    ),
    "no step": ("minidp/newcomer.py", "", "newcomer has no place in ORDER"),
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("text, message", CARDS.values(), ids=CARDS)
def test_incomplete_cards_are_named(text, message, tmp_path, capsys):
    write(tmp_path / "minidp/nn/__init__.py", "from .dense import Dense\n")
    write(tmp_path / "minidp/nn/dense.py", text)
    assert check_cards.main(tmp_path, {("nn.dense.Dense", "F1"): []}) == 1
    said = capsys.readouterr().out.splitlines()
    assert any(message in line and line.startswith("minidp/nn/dense.py:") for line in said)


def test_classes_without_a_card_or_a_definition_are_named():
    class Layer(nn.Layer):
        def compute_y(self, x, rng):
            return x, None

    class Noise(Event):
        """Noise"""

    without, undefined = check_cards.missing_cards([nn.Dense, Layer, Noise], {"nn.dense.Dense"})
    assert without.endswith("Layer has no card") and undefined.startswith("event ")


@pytest.mark.parametrize("file, text, message", IMPORTS.values(), ids=IMPORTS)
def test_upward_imports_are_named(file, text, message, tmp_path, capsys):
    for part in check_imports.ORDER:
        write(tmp_path / f"minidp/{part}.py", "")
    write(tmp_path / file, text)
    assert check_imports.main(tmp_path) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:") and message in line
