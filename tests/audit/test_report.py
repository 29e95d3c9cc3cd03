"""The audit's report: what is wrong or missing makes it fail, and a user's mistake is one line."""

import json

import pytest

from minidp.__main__ import main
from minidp.audit import checks, report
from minidp.audit.checks import PRINTED, Check, Outcome
from minidp.errors import ParameterError


def test_it_prints_every_label_and_writes_them(tmp_path, capsys):
    table = tmp_path / "table.json"
    assert main(["audit", "--layer", "dense", "--device", "cpu", "--json", str(table)]) == 0
    printed = capsys.readouterr().out
    assert (
        "nn.dense.Dense [P1]  dW_bio = sum_t x_bti dy_bto" in printed
        and "minidp/nn/dense.py:" in printed
    )
    assert "cards 1, labels 4" in printed and "0 failed" in printed
    assert [row["label"] for row in json.loads(table.read_text())["rows"]] == [
        "F1",
        "B1",
        "P1",
        "P2",
    ]


def test_a_layer_shows_the_equations_that_it_inherits():
    rows = report.audit("GroupNorm")
    assert [(row["card"], row["label"]) for row in rows] == [
        *(("nn.norm._Norm", label) for label in ("F1", "F2", "B1", "P1", "P2")),
        ("nn.norm.GroupNorm", "F0"),
    ]
    assert all("group norm" in str(row["measured"]) for row in rows)


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
    "label, agree, said",
    [
        ("F1", "B D S", "this equation or its code; a constant"),
        ("F1", "B S", "this equation, because"),
        ("F1", "B D", "the code, because"),
        ("F1", "D S", "the equations together or the code"),
        ("B1", "F S", "this equation, because"),
        ("B1", "F D", "the code, because"),
        ("B1", "B S", "the equation of the output"),
        ("B1", "B D", "the code of the output"),
        ("B1", "F B", "the output's equation and code together, or this gradient's"),
        ("F1", "F B D S", ""),
    ],
)
def test_of_equations_and_code_the_wrong_one_is_named(label, agree, said):
    """F, B: text and code of output and gradient; D, S: derivatives of text and of code."""

    def found(*pairs):
        return [Outcome(Check("", how, 0.0, None), float(x not in agree), "") for x, how in pairs]

    derivatives = ("D", checks.DERIVED), ("S", checks.STEPPED)
    measured = {"F1": found(("F", PRINTED)), "B1": found(("B", PRINTED), *derivatives)}
    assert report._suspect(label, measured).removeprefix("suspect: ").startswith(said)
    assert bool(report._suspect(label, measured)) == bool(said)


def test_a_compiled_kernel_that_differs_is_named():
    found = [Outcome(Check("", checks.COMPILED, 0.0, None), 1.0, "")]
    assert report._suspect("F1", {"F1": found, "B1": []}).startswith("the compiled kernel")


def test_a_bound_that_the_code_undercuts_says_by_how_much():
    outcome = checks.run(Check("", PRINTED, 1.0, lambda bench: checks.excess([2, 0.5], [1, 1])))
    assert not outcome.passed and "below the printed bound (0.5 of it)" in str(outcome)


def test_a_label_without_a_check_fails(monkeypatch, capsys):
    monkeypatch.delitem(checks.load(), ("mechanism.noise.add_gaussian", "F1"))
    assert main(["audit", "--layer", "add_gaussian"]) == 1
    assert "[F1] has no check" in capsys.readouterr().out


def test_an_unknown_name_lists_near_ones_and_exits_with_2(capsys):
    assert main(["audit", "--layer", "conv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no card is named conv; near it: Conv2D")
    assert said.endswith("; minidp audit --list prints all\n")
    with pytest.raises(ParameterError, match="near it: Dense"):
        report.audit("Dens")
    assert main(["audit", "--layer", ""]) == 2 and len(report.audit("nn.dropout.Dropout")) == 3


def test_it_lists_public_names(capsys):
    assert main(["audit", "--list"]) == 0
    printed = capsys.readouterr().out
    assert "Conv2D                     minidp/nn/conv.py:" in printed


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
