"""Formulas broken on purpose: each mutant is killed, or listed with its reason."""

import ast

import pytest

from tools.mutants import code, texts
from tools.mutants.__main__ import main
from tools.mutants.changes import _Changed, judged, noticed, unmatched

MUTANTS = code.generate()
SAMPLE = [
    m
    for m in MUTANTS
    if m.name not in code.EQUIVALENT and m.card.startswith(("nn.", "mechanism.", "train."))
][::48]


def changes(line):
    """{operator: texts} of one line."""
    found = {}
    for operator, node, new in code._changes(ast.parse(line).body[0], 1, 1):
        found.setdefault(operator, []).append(code._replaced([line], node, new).rstrip())
    return found


def test_every_operator_changes_what_it_says():
    assert changes("y = a @ b - c  # [F1]") == {
        "sign": ["y = (-(a @ b - c))  # [F1]"],
        "scale": ["y = ((a @ b - c) * (1 + 1e-3))  # [F1]"],
        "drop": ["y = (a @ b)  # [F1]", "y = (-(c))  # [F1]"],
        "swap": ["y = ((c) - (a @ b))  # [F1]", "y = ((b) @ (a)) - c  # [F1]"],
    }
    assert changes("dx += dy / n")["drop"] == ["pass"]
    assert changes("grads = {'W': Outer(a=x, d=dy)}")["sign"] == [
        "grads = {'W': Outer(a=(-(x)), d=dy)}",
        "grads = {'W': Outer(a=x, d=(-(dy)))}",
    ]
    assert changes("xp.matmul(p, q, out=y)")["sign"] == [
        "xp.matmul((-(p)), q, out=y)",
        "xp.matmul(p, (-(q)), out=y)",
    ]


def test_there_are_many_each_with_a_name_of_its_own():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 600
    for mutant in MUTANTS:
        compile(mutant.source, mutant.path, "exec")


def test_what_is_listed_as_equivalent_is_a_mutant():
    assert unmatched(MUTANTS, code.EQUIVALENT) == []
    assert unmatched(MUTANTS, {"nn.dense.Dense [F9] sign 1": "no such line"})


def test_some_are_killed():
    assert len(SAMPLE) > 8
    assert code.judge(SAMPLE) == []


def test_a_survivor_and_a_row_that_is_killed_are_faults():
    killed, alive = MUTANTS[:2]
    assert judged([killed, alive], ["a check", None], {killed.name: "because"}) == [
        f"listed as equivalent, but killed by a check: {killed}",
        f"survived: {alive}",
    ]


def test_what_fails_before_anything_is_broken_is_a_fault(monkeypatch):
    mutant = MUTANTS[0]
    monkeypatch.setattr(code, "noticed", lambda change, others=True: "a check")
    assert code.judge([mutant]) == [f"fails before anything is broken: {mutant.card} a check"]


def test_an_equivalent_one_survives():
    listed = next(mutant for mutant in MUTANTS if mutant.card == "nn.norm.GroupNorm")
    assert listed.name in code.EQUIVALENT and noticed(listed, others=False) is None


def test_kernels_that_import_a_changed_module_are_compiled_again(tmp_path):
    mutant = next(mutant for mutant in MUTANTS if mutant.path == "minidp/host/chacha.py")
    finder = _Changed(mutant, tmp_path)
    names = ("host.chacha", "fast.drawing", "fast.images", "host.memory")
    modules = [f"minidp.{name}" for name in names]
    assert [bool(finder.find_spec(name)) for name in modules] == [True, True, False, False]


@pytest.mark.slow
def test_all_are_killed_or_listed():
    assert code.judge(MUTANTS) == []


@pytest.mark.slow
def test_every_broken_text_is_noticed_or_listed():
    assert texts.judge(texts.generate()) == []


def test_some_broken_texts_are_noticed():
    broken = texts.generate()
    assert len(broken) >= 400 and not unmatched(broken, texts.EQUIVALENT)
    assert texts.judge(broken[::29]) == []


def test_every_kind_of_break():
    kinds = {kind for kind, *_ in texts._changes("y_b = sum_i x_bi W_io - c")}
    assert kinds == {"sign", "scale", "drop", "exchange", "index"}


def test_one_layer_is_broken_and_the_program_says_how_many_beforehand(capfd):
    assert main(["--layer", "ReLU"]) == 0
    said = capfd.readouterr()
    assert said.err.splitlines()[0].endswith(" of equations") and "mutants of code" in said.err
    assert said.out.rstrip().endswith("mutants, 0 faults")


def test_an_unknown_layer_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--layer", "conv"])
    assert ended.value.code == 2 and "near it: Conv2D" in capsys.readouterr().err
