"""The audit's page: everything once, in the paper's order, found by its anchors; a run in it."""

import re
from xml.etree import ElementTree

import pytest

from minidp import audit
from minidp.__main__ import main
from minidp.audit import checks, report
from minidp.audit.algorithm import LINES
from minidp.audit.notation import equation_of
from tests.support.running import train


def parts(file):
    """(ids in order, {id: text} of each label's block); every link leads to an id of the page, each
    id is there once.
    """
    elements = list(ElementTree.fromstring(file.read_text()).iter())
    ids = [each.get("id") for each in elements if each.get("id")]
    links = {each.get("href")[1:] for each in elements if each.get("href")}
    assert len(ids) == len(set(ids)) and links <= set(ids)
    labels = [each for each in elements if each.get("class") == "label"]
    return ids, {each.get("id"): "".join(each.itertext()) for each in labels}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where a page is written; nothing is measured: each check finds no error."""
    monkeypatch.setattr(checks, "run", lambda check, backend=None: checks.Outcome(check, 0.0, ""))
    return tmp_path / "page.html"


def test_the_whole_page(file):
    assert main(["audit", "--device", "cpu", "--html", str(file)]) == 0
    ids, blocks = parts(file)
    shown = [(card, label) for card, _ in report.shown() for label in card.labels]
    assert [place for place in blocks if not place.startswith("line")] == [
        f"{card.name}.{label}" for card, label in shown
    ]
    sections = [place for place in ids if "." not in place and not place.startswith("line")]
    titles = ["Contents", "Algorithm 1, as it runs", *report.SECTIONS]
    assert sections == [re.sub(r"\W+", "-", title.lower()) for title in titles]
    for card, label in shown:
        block = blocks[f"{card.name}.{label}"]
        assert (card.sources.get(label) or card.sources.get("") or "see [") in block
        said = card.labels[label]
        if "in words: " not in block:  # then it is typeset
            said = said.removeprefix(equation_of(said)).strip()
        assert said in block
        assert all(f"{card.module}:{first}" in block for first, _ in card.code_lines[label])
        for found in checks.load()[card.name, label]:
            assert f"{found.name.replace('_', ' ')}: {found.method}" in block


def test_algorithm_1_finds_every_line_it_names(file):
    data = report.measure()
    for line, (*_, names) in zip(data["algorithm"], LINES, strict=True):
        assert all(
            any(place.split(".", 2)[2].startswith(name) for place in line["places"])
            for name in names.split()
        ), line


def test_a_run_is_verified_and_shown_in_the_same_page(file, tmp_path, capsys):
    train(folder := tmp_path / "run")
    assert main(["audit", str(folder), "--device", "cpu", "--html", str(file)]) == 0
    ids, blocks = parts(file)
    figures = {3: "L/N = 12 / 60", 6: "sigma = 4.0 (dense1), 4.0 (dense2)", 7: "SGD"}
    for line, said in {**figures, 8: "1e-05 by moments"}.items():
        assert said in blocks[f"line{line}"]
    text = file.read_text().partition('id="this-run"')[2].partition('id="algorithm')[0]
    answers = (
        "0 mismatches",
        "Does the ledger charge all that the run released?",
        "What is covered",
        "; the row to quote",
    )
    assert all(said in text for said in answers) and "**" not in text
    assert "This run\n" in capsys.readouterr().out
    (folder / "privacy.md").write_text("epsilon 0")
    assert main(["audit", str(folder), "--layer", "ReLU", "--html", str(file), "--force"]) == 1
    assert "privacy.md was changed" in (text := file.read_text()) and "epsilon 0" not in text


def test_the_page_of_ones_own_layer_is_gone_and_its_name_says_what_to_print():
    with pytest.raises(AttributeError, match="no page; print.*check_layer.*audit --html"):
        audit.page  # noqa: B018
