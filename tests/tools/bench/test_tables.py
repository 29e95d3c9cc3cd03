"""The README's tables say what the JSON says."""
import json

from tools.bench import report, tables


def written(tmp_path, usual=True, **turns):
    rows = [{"contender": name.replace("_kept", "+pages").replace("_", "-"), "turns_ms": [ms], "step_ms": ms,
             "peak_mib": 20.4, "versions": {"numpy": "2.4.6"}, "products": {"library": "OpenBLAS", "core": "Zen"}}
            for name, ms in turns.items()]
    one = {"workload": "W1", "device": "cpu", "lot": 600, "usual_lot": usual, "threads": 2, "rounds": 15, "rows": rows,
           "ratios": report.ratios(rows)}
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps({"contests": [one], **report.summary([one])}))
    return path


def test_each_strategy_has_its_ratios_with_both_allocators(tmp_path):
    path = written(tmp_path, factored=2.0, floor=1.6, torch=2.5, torch_kept=1.9, opacus=100.0)
    header, _, row = tables.ours(path)
    assert header.split(" | ")[2:5] == ["step, ms", "to floor", "to PyTorch, not private"]
    assert row == "| W1 | factored | 2 | 1.25 | 0.8 / 1.05 | - | 0.02 | - | - | 20 |"


def test_peers_have_a_row_each(tmp_path):
    _, _, *rows = tables.peers(written(tmp_path, factored=2.0, torch=2.534, opacus_ghost_kept=123.4))
    assert rows == ["| PyTorch, not private | 2.53 ms, 20 MiB |", "| Opacus, ghost clipping, pages kept | 123 ms, 20 MiB |"]


def test_the_conditions_are_one_line(tmp_path):
    assert list(tables.conditions(written(tmp_path, factored=2.0))) == [
        "Threads: 2; numpy 2.4.6; OpenBLAS (Zen); 15 rounds or more."]


def test_lots_of_another_size_are_in_the_other_table_only(tmp_path):
    path = written(tmp_path, usual=False, factored=2.0)
    assert len(list(tables.ours(path))) == len(list(tables.growth(path))) == 2


def test_growth_is_listed(tmp_path):
    path = tmp_path / "benchmark.json"
    one = {"workload": "W1", "device": "cpu", "contender": "factored", "slope": 0.98765, "per_example": 0.9512,
           "memory": 1.0}
    path.write_text(json.dumps({"growth": [one]}))
    assert list(tables.growth(path))[2] == "| W1 | factored | 0.988 | 0.95 | 1.00 |"
