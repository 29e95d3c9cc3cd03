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


def test_docstrings_without_labels_are_no_cards():
    assert read('class A:\n    """Only words.\n\n    Forward\n        nothing labelled\n    """\n') == ([], [])
    assert read("class A:\n    pass\n") == ([], [])


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


def test_helper_line_does_not_count_where_two_cards_have_its_label():
    (relu, tanh), (stray,) = read(TWO.format(helper="F1", tanh="F1"))
    assert stray.line == 3 and "ReLU or Tanh" in stray.reason
    assert relu.code_lines == {"F1": (13,)}


def test_label_that_is_in_another_class_only_is_stray():
    (relu, tanh), (stray,) = read(TWO.format(helper="N1", tanh="N1"))
    assert (stray.label, stray.line) == ("N1", 22) and "Tanh" in stray.reason
    assert tanh.code_lines == {}


def test_label_in_no_card_is_stray():
    _, (stray,) = read(TWO.format(helper="Z9", tanh="F1"))
    assert (stray.label, stray.line) == ("Z9", 3) and "any card" in stray.reason


def test_label_on_a_line_of_its_own_is_stray():
    (card,), (stray,) = read('def f(x):\n    """F.\n\n    Bound\n        [C1]  e\n    """\n    # [C1]\n    return x\n')
    assert "without code" in stray.reason and card.code_lines == {}


def test_method_card_owns_its_lines_before_the_class():
    source = '''
    class A:
        """A.

        Event
            [M1]  of the class
        """
        def inner(self):
            """I.

            Sensitivity
                [M1]  of the method
            """
            return 1  # [M1]

        def other(self):
            return 2  # [M1]
    '''
    (outer, inner), strays = read(source)
    assert strays == []
    assert (outer.qualname, inner.qualname) == ("A", "A.inner")
    assert outer.code_lines == {"M1": (17,)} and inner.code_lines == {"M1": (14,)}


def test_labels_in_strings_and_in_prose_comments_are_not_code_lines():
    (card,), strays = read('def f(x):\n    """F.\n\n    Bound\n        [C1]  e\n    """\n    '
                           'y = "# [C1]"  # as in [C1], but safer\n    return y\n')
    assert card.code_lines == {} and strays == []


def test_repeated_and_misplaced_labels_are_reported():
    (card,), _ = read('def f(x):\n    """F.\n\n    Bound\n        [C1]  e\n        [C1]  again\n\n'
                      '    Fowrard\n        [F1]  y\n    """\n')
    assert card.repeated == ("C1",) and card.misplaced == ("F1",)


@pytest.mark.parametrize("heading", ["Backward, with dy = d loss / dy", "Bound (Theorem 2)", "Valid for", "Event:"])
def test_headings_may_be_followed_by_words(heading):
    (card,), _ = read(f'def f(x):\n    """F.\n\n    {heading}\n        [C1]  e\n    """\n')
    assert card.labels == {"C1": "e"}


def test_prose_that_begins_with_a_heading_word_is_no_heading():
    (card,), _ = read('def f(x):\n    """F.\n\n    Source code is text.\n        [C1]  e\n    """\n')
    assert card.labels == {} and card.misplaced == ("C1",)


def test_source_without_label_is_kept():
    (card,), _ = read('def f(x):\n    """F.\n\n    Bound\n        [C1]  e\n\n    Source\n        Abadi 2016\n    """\n')
    assert card.sources == {"": "Abadi 2016"}


def test_broken_python_raises():
    with pytest.raises(SyntaxError):
        read("def f(:")
