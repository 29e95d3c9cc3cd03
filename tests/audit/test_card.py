import textwrap

import pytest

from minidp.audit.card import read_module

DENSE = '''
class Dense(Layer):
    r"""Affine map of each example.

    Shapes
        x (B, I)   W (I, O)

    Forward
        [F1]  y_bo = sum_i x_bi W_io
              + b_o

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi  = sum_o dy_bo W_io
        [P1] [P2]  both factors

    Source
        [P1]  Goodfellow 2015, arXiv:1510.01799,
              Section 5

    Guarantees
        Example b depends on example b only.
    """

    def forward(self, x):
        return x @ self.W + self.b  # [F1]

    def backward(self, dy):
        dx = dy @ self.W.T  # [B1]
        return dx

    def param_grads(self, dy, cache):
        return outer(cache.x, dy), dy  # [P1] [P2]
'''


def read(source):
    return read_module(textwrap.dedent(source), "nn/x.py")


def test_all_parts_of_a_card():
    (card,), strays = read(DENSE)
    assert strays == []
    assert (card.module, card.qualname, card.line) == ("nn/x.py", "Dense", 2)
    assert card.labels == {
        "F1": "y_bo = sum_i x_bi W_io + b_o", "B1": "dx_bi  = sum_o dy_bo W_io",
        "P1": "both factors", "P2": "both factors",
    }
    assert card.sources == {"P1": "Goodfellow 2015, arXiv:1510.01799, Section 5"}
    lines = DENSE.splitlines()
    assert {label: [lines[n - 1].strip() for n in numbers] for label, numbers in card.code_lines.items()} == {
        "F1": ["return x @ self.W + self.b  # [F1]"], "B1": ["dx = dy @ self.W.T  # [B1]"],
        "P1": ["return outer(cache.x, dy), dy  # [P1] [P2]"], "P2": ["return outer(cache.x, dy), dy  # [P1] [P2]"],
    }


TWO = '''
def _helper(x):
    return x + 1  # [{helper}]

class ReLU:
    """One.

    Forward
        [F1]  y = max(x, 0)
        [N1]  only here
    """
    def forward(self, x):
        return max(x, 0)  # [F1]

class Tanh:
    """Two.

    Forward
        [F1]  y = tanh(x)
    """
    def forward(self, x):
        return tanh(x)  # [{tanh}]
'''


def test_each_class_has_its_own_lines():
    (relu, tanh), strays = read(TWO.format(helper="N1", tanh="F1"))
    assert strays == []
    assert relu.code_lines == {"F1": (13,), "N1": (3,)}
    assert tanh.code_lines == {"F1": (22,)}


@pytest.mark.parametrize("helper, tanh, label, line, reason", [
    ("F1", "F1", "F1", 3, "ReLU or Tanh"),  # a helper's line, and two cards have its label
    ("N1", "N1", "N1", 22, "Tanh"), ("Z9", "F1", "Z9", 3, "any card")])
def test_a_label_that_no_card_accounts_for_is_stray(helper, tanh, label, line, reason):
    _, (stray,) = read(TWO.format(helper=helper, tanh=tanh))
    assert (stray.label, stray.line) == (label, line) and reason in stray.reason
