"""The audit's page: everything once, in the paper's order, found by its anchors; a run and layers
of one's own in it.
"""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from minidp import nn
from minidp.__main__ import main
from minidp.audit import check_layer, check_loss, checks, page, report
from minidp.audit.algorithm import LINES
from minidp.audit.notation import equation_of
from tests.support.running import train
from tests.support.wrong import LAYERS


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
    shown = [(public, card, label) for public, card, _ in report.shown() for label in card.labels]
    assert [place for place in blocks if not place.startswith("line")] == [
        f"{card.name}.{label}" for card, _, label in shown
    ]
    assert {card.name for card, *_ in shown} == {card.name for card, _ in report.cards()} - {
        "nn.norm._Norm"
    }
    sections = [place for place in ids if "." not in place and not place.startswith("line")]
    titles = ["Contents", "Algorithm 1, as it runs", *report.SECTIONS]
    assert sections == [re.sub(r"\W+", "-", title.lower()) for title in titles]
    for public, card, label in shown:
        block = blocks[f"{public.name}.{label}"]
        assert (card.sources.get(label) or card.sources.get("") or "see [") in block
        said = card.labels[label]
        if "in words: " not in block:  # then it is typeset
            said = said.removeprefix(equation_of(said)).strip()
        assert said in block
        assert all(f"{card.module}:{first}" in block for first, _ in card.code_lines[label])
        for found in checks.load()[card.name, label]:
            said = f"{found.name.replace('_', ' ')}, {found.method}"
            assert (said in block) == (public is card or found.subject == public.name)


def test_algorithm_1_finds_every_line_it_names(file):
    mine = type("Trainer", (nn.ReLU,), {})()
    data = report.measure(reports=[check_layer(mine, 3)])
    for line, (*_, names) in zip(data["algorithm"], LINES, strict=True):
        assert all(
            any(place.split(".", 2)[2].startswith(name) for place in line["places"])
            for name in names.split()
        ), line
        assert not any(place.startswith("own") for place in line["places"])


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


def test_layers_of_ones_own_stand_before_the_librarys(file):
    dense = nn.Dense(3, 2, rng=np.random.default_rng(0))
    assert page(
        file,
        check_layer(dense, 3),
        check_loss(nn.SquaredError(), 2, np.zeros((1, 2))),
        layer="ReLU",
    )
    _, blocks = parts(file)
    own = "1.Dense.tests 1.Dense.F1 1.Dense.B1 1.Dense.P1 1.Dense.P2".split()
    own += "2.SquaredError.tests 2.SquaredError.F1 2.SquaredError.B1".split()
    librarys = ["nn.activation.ReLU.F1", "nn.activation.ReLU.B1"]
    assert list(blocks) == [f"own{place}" for place in own] + librarys
    assert "y = matmul(x, self.params" in blocks["own1.Dense.F1"]
    assert "not measured by itself" in blocks["own1.Dense.F1"]
    assert re.search(r"e-\d\d of 1e-06: dense: dx, central differences", blocks["own1.Dense.B1"])
    assert "dense.W: the per-example gradient" in blocks["own1.Dense.P1"]
    assert not page(
        file, check_layer(LAYERS[0][0], 3), check_loss(lambda z, t: (z, z), 2), layer="ReLU"
    )
    _, blocks = parts(file)
    assert (
        "FAIL examples are independent" in blocks["own1.Scaled.tests"]
        and "own2.lambda.tests" in blocks
    )
