"""The audit's report: what is wrong or missing makes it fail, and a user's mistake is one line."""

import json

import pytest

from minidp.__main__ import main
from minidp.audit import checks, report
from minidp.audit.checks import DERIVED, PRINTED, Check, Outcome
from minidp.errors import ParameterError


def test_it_prints_every_label_and_writes_them(tmp_path, capsys):
    table = tmp_path / "table.json"
    assert main(["audit", "--layer", "dense", "--device", "cpu", "--json", str(table)]) == 0
    printed = capsys.readouterr().out
    assert (
        "nn.dense.Dense [P1]  dW_bio = x_bi dy_bo" in printed and "minidp/nn/dense.py:" in printed
    )
    assert "cards 1, labels 4" in printed and "0 failed" in printed
    assert [row["label"] for row in json.loads(table.read_text())["rows"]] == [
        "F1",
        "B1",
        "P1",
        "P2",
    ]


def test_a_layer_shows_the_equations_that_it_inherits_as_measured_on_itself():
    rows = report.audit("GroupNorm")
    assert [(row["card"], row["label"], row["of"]) for row in rows] == [
        ("nn.norm.GroupNorm", "F0", ""),
        *(("nn.norm.GroupNorm", label, "_Norm") for label in ("F1", "F2", "B1", "P1", "P2")),
    ]
    elsewhere = [{**row, "card": "nn.norm.LayerNorm"} for row in rows if row["of"]]
    assert report.counted(rows + elsewhere) == {"cards": 2, "labels": 6}
    assert all(
        row["measured"] and all("group norm" in found["check"] for found in row["measured"])
        for row in rows
    )


def test_a_private_card_that_no_public_class_inherits_is_shown_by_itself(monkeypatch):
    monkeypatch.setattr(report, "_bases", lambda card: [card.name])
    assert "nn.norm._Norm" in [card.name for card, _ in report.shown()]


@pytest.mark.parametrize(
    "measure", [lambda bench: 1e-3, lambda bench: float("nan"), lambda bench: 1 / 0]
)
def test_a_wrong_number_nan_and_an_exception_are_failures(measure, monkeypatch, capsys):
    monkeypatch.setitem(
        checks.load(), ("nn.dense.Dense", "B1"), [Check("wrong", "a method", 1e-12, measure)]
    )
    assert main(["audit", "--layer", "dense"]) == 1
    assert "FAIL nn.dense.Dense [B1]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "printed, derived, said",
    [
        (True, True, ""),
        (False, True, "the code"),
        (False, False, "this equation"),
        (True, False, "the equation of the output"),
    ],
)
def test_what_is_wrong_of_equation_code_and_output_is_named(printed, derived, said):
    passed = {PRINTED: printed, DERIVED: derived}
    found = [Outcome(Check("", how, 0.0, None), 1.0 - passed[how], "") for how in passed]
    assert report._suspect(found).removeprefix("suspect: ").partition(",")[0] == said


def test_a_label_without_a_check_fails(monkeypatch, capsys):
    monkeypatch.delitem(checks.load(), ("mechanism.noise.add_gaussian", "F1"))
    assert main(["audit", "--layer", "add_gaussian"]) == 1
    assert "[F1] has no check" in capsys.readouterr().out


def test_an_unknown_name_lists_near_ones_and_exits_with_2(capsys):
    assert main(["audit", "--layer", "conv"]) == 2
    assert (
        capsys.readouterr().err
        == "error: no card is named conv; near it: Conv2D; minidp audit --list prints all\n"
    )
    with pytest.raises(ParameterError, match="near it: Dense"):
        report.audit("Dens")
    assert main(["audit", "--layer", ""]) == 2 and len(report.audit("nn.dropout.Dropout")) == 3
    assert main(["audit", "--list"]) == 0
    assert (
        "Conv2D                     minidp/nn/conv.py:" in (out := capsys.readouterr().out)
        and "_Norm" not in out
    )
    assert main(["audit", "--list", "runs/x"]) == 2


def test_without_mpmath_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(report.importlib.util, "find_spec", lambda name: None)
    assert main(["audit"]) == 2
    assert (
        capsys.readouterr().err
        == "error: the audit needs mpmath and lark: pip install 'minidp[audit]'\n"
    )


def test_nan_is_infinitely_wrong_whatever_it_is_compared_with():
    nan = float("nan")
    for error in (
        checks.worst([nan], [1.0]),
        checks.worst([1.0], [nan]),
        checks.relative(nan, 1.0),
        checks.excess(nan, 1.0),
    ):
        assert max(0.0, error) == float("inf")
