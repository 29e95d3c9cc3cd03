"""The README's figures are those of the committed JSON files."""
import json
import shutil

import pytest

from tools import readme_tables


def test_the_readme_agrees_with_the_results():
    assert readme_tables.main(["--check"]) == 0


def test_another_figure_is_noticed(tmp_path, monkeypatch, capsys):
    text = (readme_tables.ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "experiments").mkdir()
    shutil.copy(readme_tables.ROOT / "experiments" / "README.md", tmp_path / "experiments")
    (tmp_path / "README.md").write_text(text.replace("| W1 | factored | ", "| W1 | factored | 0", 1), encoding="utf-8")
    monkeypatch.setattr(readme_tables, "ROOT", tmp_path)
    assert readme_tables.main(["--check"]) == 1
    assert "README.md" in capsys.readouterr().err


def test_missing_markers_are_an_error():
    with pytest.raises(ValueError, match="no markers"):
        readme_tables.filled("# a README without tables\n")


def test_rows_give_mean_range_and_number_of_seeds(tmp_path):
    for seed, accuracy in enumerate([0.90, 0.92]):
        result = {"config": {"baseline": False, "noise": "large"}, "test_accuracy": accuracy, "steps": 2086,
                  "accountant": "moments", "epsilon": {"moments": {"upper": 0.4999}},
                  "settings": {"clip_groups": [{"noise_multiplier": 8}], "pca_noise_multiplier": 16}}
        (tmp_path / f"mnist_pca-large-{seed}.json").write_text(json.dumps(result))
    row = list(readme_tables.results_table(tmp_path))[-1]
    assert "| large (8, 16) | 0.500 | 2,086 | 91.00% (90.00% to 92.00%) | 2 | 90% |" == row


def test_the_best_of_a_budget_shows_what_was_spent_and_the_settings(tmp_path):
    for seed, accuracy in enumerate([0.98, 0.99]):
        result = {"test_accuracy": accuracy, "steps": 301, "epsilon": {"loss_distribution": {"upper": 2.9288}},
                  "settings": {"clip_groups": [{"noise_multiplier": 1.9, "clip_norm": 0.3}], "learning_rate": 2.5,
                               "pca_noise_multiplier": 40.0, "expected_lot_size": 4096}}
        (tmp_path / f"mnist_best-eps2.93-seed{seed}.json").write_text(json.dumps(result))
    row = list(readme_tables.best_table(tmp_path))[-1]
    assert row.startswith("| 2.929 | 1.9, 40 | 4,096 | 301 | 2.5, 0.3 | 98.50% (98.00% to 99.00%) | 2 | 98.1%")
