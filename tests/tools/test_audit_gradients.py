"""The audit of the formulas: nothing is missing, and what is wrong or missing makes it fail."""
import json

import pytest

from minidp.audit import checks
from minidp.audit.checks import Check
from tools import audit_gradients


@pytest.fixture(scope="module")
def rows():
    return audit_gradients.audit()


def test_every_label_of_every_card_is_measured_and_within_its_tolerance(rows):
    assert [audit_gradients.line_of(row) for row in rows if not row.passed] == []
    assert len(rows) >= 120 and len({row.card for row in rows}) >= 55  # counted when this was written: 126 and 59
    assert all(row.outcomes and row.code and row.source for row in rows)


def test_no_check_measures_a_label_that_no_card_has(rows):
    labels = {(row.card, row.label) for row in rows}
    # a layer's row measures the labels of its class and all bases, of which a card may state fewer
    strays = {(card, label) for card, label in checks.REGISTRY if not card.startswith("nn.")} - labels
    assert strays == set()


def test_it_exits_with_0_prints_the_count_and_writes_both_files(tmp_path, capsys):
    page, table = tmp_path / "page.html", tmp_path / "table.json"
    assert audit_gradients.main(["--layer", "Dense", "--device", "cpu", "--html", str(page), "--json", str(table)]) == 0
    assert "1 cards (1 nn), 4 labels" in capsys.readouterr().out
    found = json.loads(table.read_text())
    assert [row["label"] for row in found["rows"]] == ["F1", "B1", "P1", "P2"]
    text = page.read_text()
    assert "<msub>" in text and "dy @ W.T" in text and "http" not in text


def test_a_check_beyond_its_tolerance_fails(monkeypatch, capsys):
    wrong = Check("wrong", "a method", 1e-12, lambda bench: 1e-3)
    monkeypatch.setitem(checks.REGISTRY, ("nn.dense.Dense", "B1"), [wrong])
    assert audit_gradients.main(["--layer", "dense"]) == 1
    assert "FAIL nn.dense.Dense [B1]" in capsys.readouterr().out


@pytest.mark.parametrize("measure", [lambda bench: float("nan"), lambda bench: 1 / 0])
def test_nan_and_exceptions_are_failures(measure):
    assert not checks.run(Check("broken", "a method", 1.0, measure)).passed


def test_a_label_without_a_check_fails(monkeypatch, capsys):
    monkeypatch.delitem(checks.REGISTRY, ("mechanism.noise.add_gaussian", "F1"))
    assert audit_gradients.main(["--layer", "add_gaussian"]) == 1
    assert "no check measures it" in capsys.readouterr().out


def test_a_label_without_code_or_check_fails(tmp_path):
    module = tmp_path / "minidp" / "new.py"
    module.parent.mkdir()
    module.write_text('def f(x):\n    """Twice.\n\n    Forward\n        [F1]  y = 2 x\n\n    Source\n'
                      '        [F1]  own derivation\n    """\n    return 2 * x\n')
    (row,) = audit_gradients.audit(root=tmp_path)
    assert not row.passed and len(row.faults) == 2  # no line of code, no check


def test_a_user_error_is_one_line_and_exit_2(capsys):
    with pytest.raises(SystemExit) as raised:
        audit_gradients.main(["--layer", "NoSuchLayer"])
    assert raised.value.code == 2
    assert capsys.readouterr().err == "error: no card is named NoSuchLayer; tools/check_cards.py lists what has one\n"
