"""Every numbered part of the paper has its row in PAPER.md, and the audit finds its cards."""

import re

import pytest

from minidp.audit import report
from minidp.errors import ParameterError
from tools import paper
from tools.derived import TableError
from tools.tables import ROOT

PARTS = [part for part, *_ in paper.ABADI]
NUMBERED = (
    *(f"Eq. ({n})" for n in range(1, 6)),
    *(f"Theorem {n}" for n in ("1", "2.1", "2.2", "D.1")),
    *("Lemma 3", "Lemma C.1", "Definition 1"),
    *(f"Figure {n}" for n in range(1, 7)),
    *(f"Appendix {letter}" for letter in "AB"),
)
LINES = ("Initialize", "sample", "Compute", "Clip", "noise", "Descent", "Output")  # of Algorithm 1
FOUND = [
    (part, places)
    for part, _, places, _ in paper.ABADI
    if places and part.startswith(("Eq", "Theorem", "Lemma"))
]


@pytest.mark.parametrize("part", NUMBERED)
def test_every_numbered_part_has_a_row(part):
    assert any(part in each for each in PARTS)


def test_every_line_of_algorithm_1_has_a_row():
    rows = [part for part in PARTS if part.startswith("Algorithm 1")]
    assert len(rows) == len(LINES) and all(map(str.__contains__, rows, LINES))


def test_every_row_says_where_it_is():
    for part, _, places, elsewhere in (*paper.ABADI, *paper.GDP):
        assert places or elsewhere, part


@pytest.mark.parametrize("part, places", FOUND, ids=[part for part, _ in FOUND])
def test_the_audit_finds_the_cards_of_a_part(part, places):
    cards = [card for card, _ in report.cards()]
    found = report.named(part, cards)
    assert {card.name for card, _ in paper.cards_of(places)} <= found


@pytest.mark.parametrize(
    "asked", ["theorem 2", "Equation (3)", "eq 3", "Eqs. (3)", "algorithm 1", "Figure 1"]
)
def test_a_part_may_be_written_in_several_ways(asked):
    assert report.named(asked, [card for card, _ in report.cards()])


def test_a_part_that_is_not_there_is_refused_and_a_part_of_a_name_is_suggested():
    cards = [card for card, _ in report.cards()]
    with pytest.raises(ParameterError, match="no card is named Theorem 7"):
        report.named("Theorem 7", cards)
    with pytest.raises(ParameterError, match="near it: MomentsAccountant"):
        report.named("moments", cards)


def test_a_card_that_is_gone_is_an_error():
    with pytest.raises(TableError, match="no card Trainer.Z9"):
        paper.cards_of("SGD.F1 Trainer.Z9")


def test_its_links_lead_to_files():
    page = ROOT / "minidp" / "PAPER.md"
    links = re.findall(r"\]\(([^)#:]+)[)#]", page.read_text(encoding="utf-8"))
    assert len(links) > 50 and all((page.parent / link).exists() for link in links)
