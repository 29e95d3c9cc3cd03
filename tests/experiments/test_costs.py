"""Experiments that train little or nothing: what settings cost, Figure 2, Gaussian differential
privacy.
"""

import json

import accounting
import pytest

# /sigma, sigma_pca/: lots, then epsilon by the joint rule, with one charge (flat clipping), and by
# the loss distribution; computed with dp_accounting 0.6.0 and with the closed form of the moments,
# orders 1 to 32
GOLDEN = {
    "8-16": (1450, 0.501, 0.462, 0.313),
    "4-7": (10751, 2.037, 1.488, 1.583),
    "2-4": (35318, 8.617, 5.537, 7.295),
    "1-4": (1000, 6.281, 2.788, 4.599),
}


def test_every_way_of_charging_gives_its_own_epsilon(run_script, tmp_path):
    done = run_script("accounting.py ledgers --out out", check=0)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert set(result["settings"]) == set(GOLDEN)
    for name, (lots, joint, flat, tight) in GOLDEN.items():
        row = result["settings"][name]
        assert row["lots"] == lots
        assert row["joint_moments"] == pytest.approx(joint, abs=6e-4)
        assert row["flat_moments"] == pytest.approx(flat, abs=6e-4)
        bound = row["joint_loss_distribution"]
        assert bound["lower"] <= tight * 1.0005 and bound["upper"] >= tight * 0.9995
        assert bound["upper"] == pytest.approx(tight, rel=2e-3)
        assert row["ledger_2016"] < row["joint_moments"]  # what was charged understates
    assert result["settings"]["4-7"]["today"]["accuracy_at_reported_epsilon"] > 0.95
    assert (tmp_path / "out" / "prices.png").exists()
    assert result["search"]["settings"] == 6700 and result["search"]["calls"] > 8e11
    assert "settings 4-7 joint moments 2.037; the paper: 2 (0.037 above)" in done.stdout


def test_figure_2_on_few_points(run_script, tmp_path):
    done = run_script("accounting.py figure-2 --smoke --out out", check=0)
    assert "1.259; the paper: 1.26" in done.stdout and "24.28; the paper: 24.22" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["epsilon_at_400_epochs"]["moments_paper_orders"]["upper"] == pytest.approx(
        2.5759, abs=5e-5
    )
    assert result["epsilon_at_100_epochs"]["paper_strong_composition"]["upper"] == pytest.approx(
        9.355, abs=1e-3
    )
    names = {path.name for path in (tmp_path / "out").iterdir()}
    figures = {
        f"{stem}.{end}" for stem in ("figure_2", "all_accountants") for end in ("csv", "png")
    }
    assert names == {"result.json", "tradeoff.png", *figures}
    lines = (tmp_path / "out" / "figure_2.csv").read_text().splitlines()
    assert len(lines) == 5 and lines[0].startswith("epochs,paper_strong_composition_lower")


def test_smoke_trains_both_optimizers_by_each_accountants_noise(run_script, tmp_path):
    run_script("accounting.py gdp --smoke --dataset strokes --jobs 2 --out out", check=0)
    summary = json.loads((tmp_path / "out" / "gdp.json").read_text())
    assert [(one["optimizer"], one["by"]) for one in summary["trained"]] == [
        (optimizer, name) for optimizer in ("sgd", "adam") for name in accounting.BY
    ]
    assert (tmp_path / "out" / "gdp.png").exists()
