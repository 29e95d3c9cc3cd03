"""Every committed picture can be drawn from its committed JSON: nothing is cut off, and no text covers another."""
import json
from functools import partial
from pathlib import Path

import pytest
from common import verdicts
from common.sweep_plots import draw_budgets, draw_claims, draw_noise_levels, draw_panels, draw_runs

from tools.bench.picture import lot_sizes

RESULTS = Path(verdicts.EXPECTED).parent / "results"
PICTURES = {
    "sweeps/figure_3": draw_noise_levels, "sweeps/figure_3-tight": draw_noise_levels, "sweeps/figure_3-averaged": draw_noise_levels,
    "sweeps/figure_4": draw_budgets, "sweeps/figure_5": draw_panels, "sweeps/figure_sentences": draw_runs,
    "figure_6": partial(draw_noise_levels, limits=(0.4, 0.85)), "cifar_transfer-sentences": draw_runs, "gdp/gdp": draw_claims,
    "benchmark_lots": lambda path, summary: lot_sizes(summary["contests"], path)}


def draw(name, folder):
    PICTURES[name](folder / "picture.png", json.loads((RESULTS / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_whole(name, drawn, tmp_path):
    draw(name, tmp_path)
    assert len(drawn) == 1 and (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_every_committed_picture_is_tested():
    drawn_by_accountant_curves = {"figure_2", "all_accountants"}
    pngs = {path.relative_to(RESULTS).with_suffix("").as_posix() for path in RESULTS.rglob("*.png")}
    assert pngs - drawn_by_accountant_curves == set(PICTURES)
