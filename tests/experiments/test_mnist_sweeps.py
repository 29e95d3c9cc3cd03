"""The sweeps behind Figures 3, 4 and 5, run as a user runs them."""
import json

SMOKE = ("mnist_sweeps.py", "--smoke", "--dataset", "strokes", "--jobs", 2)


def test_a_panel_writes_a_json_a_run_and_a_picture_and_runs_nothing_twice(run_script, tmp_path):
    run_script(*SMOKE, "--figure", "5a", "--out", "out", check=0)
    out = tmp_path / "out"
    runs = {path.name for path in out.glob("*-seed1.json")}
    assert runs == {f"{name}-seed1.json" for name in ("pca-dim-20", "pca-dim-100", "projection-random",
                                                      "projection-none")}
    assert (out / "figure_5a.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((out / "figure_5a.json").read_text())
    (panel,) = summary["panels"].values()
    assert [point["x"] for point in panel["points"]] == [20, 100]
    assert {line["name"] for line in panel["lines"]} == {"projection-random", "projection-none"}
    result = json.loads((out / "pca-dim-20-seed1.json").read_text())
    assert result["history"]["epoch"] == [1, 2] and len(result["history"]["test_accuracy"]) == 2
    assert "train_accuracy_not_private" not in result["history"]
    assert result["command"].startswith("python experiments/mnist_pca.py ") and "--pca-dim 20" in result["command"]
    again = run_script(*SMOKE, "--figure", "5a", "--out", "out", check=0)
    assert "from 4 runs" in again.stdout and "after" not in again.stderr  # no run was made


def test_another_commands_result_is_refused_in_one_line(run_script, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "noise-large-seed1.json").write_text(json.dumps({"command": "python experiments/other.py"}))
    done = run_script(*SMOKE, "--figure", "3", "--out", "out", check=2)
    assert "choose another --out" in done.stderr and done.stderr.count("\n") == 1
