"""Formulas broken on purpose: each mutant is killed, or listed with its reason."""

import ast
from dataclasses import replace

import pytest

from minidp.audit import mutants

MUTANTS = mutants.generate()
SAMPLE = [
    m
    for m in MUTANTS
    if m.name not in mutants.EQUIVALENT and m.card.startswith(("nn.", "mechanism.", "train."))
][::24]


def changes(line):
    """{operator: texts} of one line."""
    found = {}
    for operator, node, new in mutants._changes(ast.parse(line).body[0], 1, 1):
        found.setdefault(operator, []).append(mutants._replaced([line], node, new).rstrip())
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


def test_what_is_listed_as_equivalent_is_a_mutant(monkeypatch):
    assert mutants.unmatched(MUTANTS) == []
    monkeypatch.setitem(mutants.EQUIVALENT, "nn.dense.Dense [F9] sign 1", "no such line")
    assert mutants.unmatched(MUTANTS) == [
        "listed as equivalent, but no such mutant: nn.dense.Dense [F9] sign 1"
    ]


def test_some_are_killed():
    assert len(SAMPLE) > 8
    assert mutants.judge(SAMPLE, on_result=lambda text: None) == []


def test_a_survivor_and_a_row_that_is_killed_are_faults(monkeypatch):
    killed = MUTANTS[0]
    monkeypatch.setattr(mutants, "killed_by", lambda mutant: mutant is killed and "a check")
    monkeypatch.setitem(mutants.EQUIVALENT, killed.name, "because")
    faults = mutants.judge([killed, MUTANTS[1]], on_result=lambda text: None)
    assert faults == [
        f"listed as equivalent, but killed by a check: {killed}",
        f"survived: {MUTANTS[1]}",
    ]


def test_a_change_that_breaks_nothing_is_killed_by_nothing():
    """The control: the same copy, process and checks, and a harmless change."""
    mutant = MUTANTS[0]
    source = mutant.source.replace(mutant.new, f"(0 + ({mutant.old}))")
    assert (
        source != mutant.source
        and mutants.killed_by(replace(mutant, source=source), others=False) is None
    )


@pytest.mark.slow
def test_all_are_killed_or_listed():
    assert mutants.judge(MUTANTS, on_result=lambda text: None) == []
