import textwrap

import pytest

from minidp.audit.card import read_module
from minidp.audit.report import one_line

TWO = '''
def _helper(x):
    return x + 1  # [{helper}]

class Dense(Layer):
    r"""Affine map of each example.

    Shapes
        x (B, I)   W (I, O)

    Forward
        [F1]  y_bo = sum_i x_bi W_io
              + b_o

    Backward, with dy = d(sum_b loss_b)/dy
        [N1] [P1]  both factors

    Source
        [P1]  Goodfellow 2015, arXiv:1510.01799,
              Section 5

    Guarantees
        Example b depends on example b only.
    """

    def forward(self, x):
        return x @ self.W + self.b  # [F1] [P1]

class Tanh:
    """Two.

    Forward
        [F1]  y = tanh(x)
    """
    def forward(self, x):
        return tanh(x)  # [{tanh}]
'''


def read(helper, tanh):
    return read_module(textwrap.dedent(TWO.format(helper=helper, tanh=tanh)), "nn/x.py")


def test_all_parts_of_a_card_and_each_class_with_its_own_lines():
    (dense, tanh), strays = read(helper="N1", tanh="F1")
    assert strays == [] and (dense.module, dense.qualname, dense.line) == ("nn/x.py", "Dense", 5)
    assert dense.labels == {
        "F1": "y_bo = sum_i x_bi W_io + b_o",
        "N1": "both factors",
        "P1": "both factors",
    }
    assert dense.sources == {"P1": "Goodfellow 2015, arXiv:1510.01799, Section 5"}
    assert dense.code_lines == {"F1": ((27, 27),), "P1": ((27, 27),), "N1": ((3, 3),)}
    assert tanh.code_lines == {"F1": ((36, 36),)}


BROKEN = '''
def f(x):
    """Three.

    Forward
        [F1]  a
        [F2]  b
        [F3]  c
    """
    for k in range(
        3
    ):  # [F3]
        x = x + 1
    y = (
        x
        + 1
    )  # [F1]
    return {
        "a": y,  # [F1]
        "b": g(
            y
        ),  # [F2]
    }
'''


def test_a_label_stands_for_its_statement_or_for_its_lines_after_the_label_before():
    (card,), strays = read_module(BROKEN, "nn/x.py")
    assert strays == []
    assert card.code_lines == {"F3": ((10, 12),), "F1": ((14, 17), (18, 19)), "F2": ((20, 22),)}


def test_a_broken_statement_is_printed_in_one_line():
    lines = "    y = f(\n  x,\n  [\n    1\n  ],\n)  # [F1]".splitlines()
    assert one_line(lines) == "y = f(x, [1])  # [F1]"


@pytest.mark.parametrize(
    "helper, tanh, label, line, reason",
    [
        ("F1", "F1", "F1", 3, "Dense or Tanh"),  # a helper's line, and two cards have its label
        ("N1", "N1", "N1", 36, "Tanh"),
        ("Z9", "F1", "Z9", 3, "any card"),
    ],
)
def test_a_label_that_no_card_accounts_for_is_stray(helper, tanh, label, line, reason):
    _, (stray,) = read(helper, tanh)
    assert stray[:2] == (line, label) and reason in stray[2]
