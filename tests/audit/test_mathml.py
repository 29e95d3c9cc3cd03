"""Plain-text equations as MathML."""
from pathlib import Path
from xml.dom import minidom

import pytest

from minidp.audit.card import read_module
from minidp.audit.html import page, table, verdict
from minidp.audit.mathml import mathml

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("text, expected", [
    ("x_bi", "<msub><mi>x</mi><mi>bi</mi></msub>"),
    ("y^2", "<msup><mi>y</mi><mrow><mn>2</mn></mrow></msup>"),
    ("sigma_p^2", "<msubsup><mi>σ</mi><mi>p</mi><mrow><mn>2</mn></mrow></msubsup>"),
    ("sqrt(s)", "<msqrt><mrow><mi>s</mi></mrow></msqrt>"),
    ("e^(a b)", "<msup><mi>e</mi><mrow><mi>a</mi><mtext>&#160;</mtext><mi>b</mi></mrow></msup>"),
    ("sum_b g_b", "<msub><mo>∑</mo><mi>b</mi></msub>"), ("sum = 3", "<mtext>sum</mtext>"),
    ("a (x) d", "⊗"), ("a <= b", "≤"), ("proved for", "<mtext>proved</mtext>"), ("a < b", "&lt;")])
def test_notation(text, expected):
    assert expected in mathml(text)


def test_every_equation_of_the_cards_is_well_formed():
    count = 0
    for path in (ROOT / "minidp").rglob("*.py"):
        for card in read_module(path.read_text(encoding="utf-8"), path.name)[0]:
            for equation in card.labels.values():
                minidom.parseString(f"<p>{mathml(equation)}</p>".encode())
                count += 1
    assert count > 100


def test_pages_escape_what_they_show():
    text = page("a < b", table(("one", "two"), [("<script>", verdict(False))]))
    assert "<script>" not in text and "&lt;script&gt;" in text and 'class="fail"' in text and "a &lt; b" in text
