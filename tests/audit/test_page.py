"""The audit's page: everything once, in the paper's order, found by its anchors; a run and layers of one's own in it."""
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from minidp import nn
from minidp.__main__ import main
from minidp.audit import check_layer, check_loss, checks, html, page, report
from minidp.audit.algorithm import LINES
from minidp.grads import Explicit
from tests.support.running import train

ROOT = Path(report.PACKAGE).parent


class Parts(HTMLParser):
    """ids in order, the targets of links, and {id: text} of each label's block."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets, self.blocks, self.held = [], [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [value for name, value in attributes if name == "id"]
        self.targets += [value for name, value in attributes if name == "href"]
        self.held = found.get("id") if found.get("class") == "label" else None if tag in ("h2", "h3") else self.held

    def handle_data(self, data):
        if self.held:
            self.blocks[self.held] = self.blocks.get(self.held, "") + data


def written(tmp_path, *flags):
    file = tmp_path / "page.html"
    status = main(["audit", *flags, "--device", "cpu", "--html", str(file), "--force"])
    return status, file.read_text(), Parts(file.read_text())


@pytest.fixture
def measured(monkeypatch):
    """Nothing is measured: each check finds an error of its own that passes."""
    monkeypatch.setattr(checks, "run", lambda check, backend=None: checks.Outcome(check, error_of(check), ""))


def error_of(check):
    return min(check.tolerance, len(check.name) * 1.1e-18)


def test_the_whole_page(measured, tmp_path):
    status, text, parts = written(tmp_path)
    cards = [card for card, _ in report.cards()]
    assert status == 0 and len(parts.ids) == len(set(parts.ids)) and "http" not in re.sub("Source.*", "", text).replace("https://", "")
    assert {target.removeprefix("#") for target in parts.targets} <= {*parts.ids}
    shown = [(public, card, label) for public, held in report.shown() for card, _ in held for label in card.labels]
    assert [place for place in parts.blocks if not place.startswith("line")] == [f"{card.name}.{label}" for card, _, label in shown]
    assert {card.name for card, *_ in shown} == {card.name for card in cards} - {"nn.norm._Norm"}
    sections = [place for place in parts.ids if "." not in place and not place.startswith("line")]
    assert sections == ["contents", "algorithm-1-as-it-runs", "training", "layers-and-losses", "clipping", "noise", "sampling",
                        "dp-pca-and-private-scaling", "accountants", "numerics"]
    for public, card, label in shown:  # whichever a reader's dice choose
        block = parts.blocks[f"{public.name}.{label}"]
        assert (card.sources.get(label) or card.sources.get("") or "see [") in block and card.labels[label] in block
        for number in card.code_lines[label]:
            line = (ROOT / card.module).read_text().splitlines()[number - 1].strip()
            assert f"{card.module}:{number}" in block and re.sub(" +# ", "  # ", line) in block and f"[{label}]" in line
        for found in checks.load()[card.name, label]:
            error, most = error_of(found), found.tolerance
            assert (f"{f'{error:.1e} of {most:.0e}' if most else '0 of 0'}: {found.name.replace('_', ' ')}, {found.method}" in block
                    ) == (public is card or found.subject == public.name)


def test_algorithm_1_finds_every_line_it_names(measured):
    _, data = report.measure()
    assert [line["line"] for line in data["algorithm"]][2:7] == [
        "Take a random sample", "Compute gradient", "Clip gradient", "Add noise", "Descent"]
    for line, (*_, names) in zip(data["algorithm"], LINES):
        assert all(any(place.split(".", 2)[2].startswith(name) for place in line["places"]) for name in names.split()), line


def test_nothing_is_wider_than_a_phone():
    widths = re.findall(r"(?<![-\w])(?:min-)?width: *([\d.]+)(px|rem)", html.STYLE)
    assert widths and all(float(number) * (16 if unit == "rem" else 1) <= 360 for number, unit in widths)
    assert "nowrap" not in re.sub(r"nav span \{[^}]*\}", "", html.STYLE)


@pytest.mark.parametrize("error, width", [(0.0, 0), (-1e-3, 0), (1e-30, 0), (1e-18, 0), (1e-9, 50), (1.0, 100), (7.0, 100), (None, 100)])
def test_a_bar_is_logarithmic(error, width):
    assert f'<i style="width:{width}%">' in html._bar(error, 1e-12) and 'left:33%' in html._bar(error, 1e-12)


def test_a_run_is_verified_and_shown_in_the_same_page(measured, tmp_path, capsys):
    folder = tmp_path / "run"
    train(folder)
    status, text, parts = written(tmp_path, str(folder))
    assert status == 0 and parts.ids[0] == "contents" and "this-run" in parts.ids
    assert "sigma = 4.0 (dense1), 4.0 (dense2)" in parts.blocks["line6"] and "SGD" in parts.blocks["line7"]
    assert "L/N = 12 / 60" in parts.blocks["line3"] and "at delta 1e-05 by moments" in parts.blocks["line8"]
    assert "0 mismatches" in text and "Did any step run uncharged?" in text and "What is covered" in text and "**" not in text.split("Algorithm 1")[1]
    assert "This run\n" in capsys.readouterr().out
    (folder / "privacy.md").write_text("epsilon 0")
    status, text, _ = written(tmp_path, str(folder), "--layer", "ReLU")
    assert status == 1 and "privacy.md was changed" in text and "epsilon 0" not in text


class Swish(nn.Layer):
    """y = x / (1 + exp(-s x)) < x.

    Forward
        [F1]  y = x r, r = 1 / (1 + exp(-s x))

    Backward
        [B1]  dx = dy (r + s x r (1 - r))
        [P1]  ds_b = dy_b x_b^2 r (1 - r)

    Source
        [F1]  Ramachandran, Zoph, Le 2017, arXiv:1710.05941
    """

    kind = "swish"

    def __init__(self, slope=1.0):
        super().__init__()
        self.params, self.slope = {"s": np.ones(3, "float32")}, slope

    def compute_y(self, x, rng):
        r = 1 / (1 + np.exp(-self.params["s"] * x))
        return x * r, (x, r)  # [F1]

    def compute_dx(self, dy, kept):
        x, r = kept
        return dy * (r + self.slope * self.params["s"] * x * r * (1 - r))  # [B1]

    def compute_grads(self, dy, kept):
        x, r = kept
        return {"s": Explicit(dy * x * x * r * (1 - r))}  # [P1]


def test_layers_of_ones_own_stand_before_the_librarys(measured, tmp_path):
    file = tmp_path / "page.html"
    loss = check_loss(nn.SquaredError(), 2, np.zeros((1, 2)))
    assert page(file, check_layer(Swish(), 3), loss, layer="ReLU")
    parts = Parts(file.read_text())
    assert list(parts.blocks) == [f"own1.Swish.{label}" for label in ("tests", "F1", "B1", "P1")] + [
        f"own2.SquaredError.{label}" for label in ("tests", "F1", "B1")] + ["nn.activation.ReLU.F1", "nn.activation.ReLU.B1"]
    assert "return x * r, (x, r)" in parts.blocks["own1.Swish.F1"] and f"{__file__}:" in parts.blocks["own1.Swish.tests"]
    assert re.search(r"FAIL|e-\d\d of 1e-06: swish: dx, central differences", parts.blocks["own1.Swish.B1"])[0] != "FAIL"
    assert "Swish" in parts.blocks["own1.Swish.P1"] or "s: the per-example gradient" in parts.blocks["own1.Swish.P1"]
    assert not page(file, check_layer(Swish(1.001), 3), layer="ReLU")
    assert "FAIL" in Parts(file.read_text()).blocks["own1.Swish.B1"] and "is not the derivative" in file.read_text()
