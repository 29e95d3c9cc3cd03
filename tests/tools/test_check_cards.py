"""The card checker fails on every kind of incomplete card, and passes a complete one."""
import pytest

from tools import check_cards

DENSE = '''
class Dense:
    """Affine.

    Forward
        [F1]  y = x W

    Backward, with dy = dL/dy
        [B1]  dx = dy W

    Source
        [B1]  own derivation: chain rule
    """

    def forward(self, x):
        return x @ self.W  # [F1]

    def backward(self, dy):
        return dy @ self.W.T  # [B1]
'''
REGISTRY = {("nn.dense.Dense", "F1"): [], ("nn.dense.Dense", "B1"): []}


def tree(tmp_path, dense=DENSE, exports="from .dense import Dense\n", **more):
    files = {"minidp/nn/__init__.py": exports, "minidp/nn/dense.py": dense, "minidp/mechanism/__init__.py": "",
             **{name.replace("__", "/") + ".py": text for name, text in more.items()}}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def faults(root, capsys):
    code, lines = check_cards.main(root, REGISTRY), capsys.readouterr().out.splitlines()
    return lines if code else []


def test_complete_card_passes_and_is_counted(tmp_path, capsys):
    assert check_cards.main(tree(tmp_path), REGISTRY) == 0
    assert capsys.readouterr().out == "check_cards: 1 cards, 2 labels\n"


WRONG = {
    "no line of code": ("  # [B1]\n", "\n", "[B1] has no line of code"),
    "label only in the code": ("  # [B1]\n", "  # [B1] [B2]\n", "label [B2] is not in the card of Dense"),
    "defined twice": ("    [F1]  y = x W\n", "    [F1]  y = x W\n        [F1]  y = x W\n", "[F1] is defined twice"),
    "no source": ("        [B1]  own derivation: chain rule\n", "", "names no source"),
    "source of an unknown label": ("[B1]  own derivation", "[B7]  own derivation", "[B7] stands under Source"),
    "no check": ("        [B1]  dx = dy W\n", "        [B1] [B2]  dx = dy W\n", "[B2] has no check"),
    "no card": (DENSE[DENSE.index("Affine."):DENSE.index('"""\n\n    def')], "No card.", "class Dense has no card"),
}


@pytest.mark.parametrize("old, new, message", WRONG.values(), ids=WRONG.keys())
def test_wrong(tmp_path, capsys, old, new, message):
    assert old in DENSE
    lines = faults(tree(tmp_path, dense=DENSE.replace(old, new)), capsys)
    assert any(message in line and line.startswith("minidp/nn/dense.py:") for line in lines), lines


CLASS = '"""Doc."""\n    def method(self):\n        return 1\n'
NEED = {
    "exported": (f"class Other:\n    {CLASS}", True), "private": (f"class _Other:\n    {CLASS}", False),
    "exception": (f"class Other(ValueError):\n    {CLASS}", False),
    "accountant": (f"class _Y(a.Accountant):\n    pass\nclass X(_Y):\n    {CLASS}", True),
    "interface": (f"class Other:\n    {CLASS}    def forward(self, x):\n        \"\"\"y.\"\"\"\n"
                  "        raise NotImplementedError\n", False),
    "container": ("@dataclass(frozen=True)\nclass Other:\n    a: int\n    def __post_init__(self):\n"
                  "        check(self.a)\n", False),
    "dataclass that computes": (f"@dataclass\nclass Other:\n    {CLASS}", True),
    "dataclass that is called": ("@dataclass\nclass Other:\n    a: int\n    def __call__(self, t):\n        return t\n",
                                 True),
}


@pytest.mark.parametrize("text, needed", NEED.values(), ids=NEED.keys())
def test_who_needs_a_card(tmp_path, capsys, text, needed):
    module = "minidp__privacy__x" if "Accountant" in text else "minidp__nn__other"
    exports = "from .dense import Dense\n_WHERE = {'other': ('Other', '_Other')}\n"
    root = tree(tmp_path, exports=exports, **{module: text})
    assert bool(faults(root, capsys)) == needed


def test_events_need_a_definition(tmp_path, capsys):
    event = "class Event:\n    pass\nclass Gaussian(Event):\n    {}\n"
    for docstring, fault in (('"""A value plus noise."""', False), ('"""Noise"""', True)):
        lines = faults(tree(tmp_path, minidp__privacy__events=event.format(docstring)), capsys)
        assert ["event Gaussian needs" in line for line in lines] == [True] * fault
