"""Equations are read as printed: what each form means, what is refused, how it is typeset."""

from xml.etree import ElementTree

import numpy as np
import pytest

from minidp.audit import checks
from minidp.audit.card import labels_of
from minidp.audit.equation import Case, value
from minidp.audit.typeset import mathml

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
GIVEN = {"x": X, "W": np.arange(6.0).reshape(3, 2), "t": np.array([2, 0]), "c": 2.0, "n_max": 7.0}
GIVEN["floor"] = 2.5
# what the cards' own checks leave open
MEANING = [
    ("y_b = sum_i x_bi / c + 1", X.sum(1) / 2 + 1),
    ("y_b = 1/2 sum_i x_bi^2", (X**2).sum(1) / 2),
    ("y_bi = max(x_bi, 0, -1)", np.maximum(X, 0)),
    ("y_bi = x_b(i - 1)", [[0, 1, -2], [0, 4, 5]]),
    ("y = log sum(exp(x))    with a remark, sum_q of it", np.log(np.exp(X).sum())),
    ("y = C(4, 2) Phi(0) n_max", 21),
    ("y = prod_i (1 + a_i), a_i = x_0i", 2 * -1 * 4),
    ("y = 1 where not finite(c), else max(c, floor)", 2.5),
]


@pytest.mark.parametrize("text, expected", MEANING, ids=[text for text, _ in MEANING])
def test_what_an_equation_means(text, expected):
    name, found = value(text, Case({**GIVEN, "e": np.e}, ranges={"i": range(3)}))
    assert name == "y"
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_definition_that_is_not_used_may_have_other_axes():
    np.testing.assert_array_equal(value("y_b = x_b0", Case(GIVEN), ["q_b = x_ib"])[1], X[:, 0])


@pytest.mark.parametrize(
    "text, words", [("y_b = x_bc W_bc", "elsewhere others"), ("y_b = x_bijk", "more indices")]
)
def test_indices_that_do_not_fit_the_arrays_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        value(text, Case(GIVEN))


def test_every_evaluated_equation_is_typeset():
    checks.load()
    for card, label in checks.STATED:
        text = labels_of(card)[label]
        ElementTree.fromstring(mathml(text).partition("</math>")[0] + "</math>")
    assert "<msub><mi>y</mi><mrow><mi>b</mi></mrow></msub>" in mathml("y_b = x_bi / sqrt(1 + c)")


def test_a_reversed_sign_in_a_card_is_found():
    card, label = "nn.norm._Norm", "B1"
    right = checks.texts_of(card)
    wrong = {**right, label: right[label].replace("- n mean_S", "+ n mean_S")}
    assert wrong != right
    for function in checks.STATED[card, label]:
        for case in function(checks.bench_for("a")):
            assert checks.printed(right, label, case) < 1e-12 < checks.printed(wrong, label, case)
