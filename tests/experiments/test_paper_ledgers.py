"""What the paper's settings cost, against figures computed elsewhere."""
import json

import pytest

# /sigma, sigma_pca/: lots, then epsilon by the joint rule, with one charge (flat clipping), and by the loss
# distribution; computed with dp_accounting 0.6.0 and with the closed form of the moments, orders 1 to 32
GOLDEN = {"8-16": (1450, 0.501, 0.462, 0.313), "4-7": (10751, 2.037, 1.488, 1.583),
          "2-4": (35318, 8.617, 5.537, 7.295), "1-4": (1000, 6.281, 2.788, 4.599)}


def test_every_way_of_charging_gives_its_own_epsilon(run_script, tmp_path):
    done = run_script("paper_ledgers.py", "--out", "out", check=0)
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
    search = result["search"]
    assert search["settings"] == 6700 and search["epsilon_validation"] == 4 and search["calls"] > 8e11
    assert "settings.4-7.joint_moments 2.037, expected 2 " in done.stdout and "above" in done.stdout
