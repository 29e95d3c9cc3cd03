"""The pages' tables are what the committed JSON files say; what is missing or misspelt is one line, never silence."""
import json

import pytest

from tools import pages, tables
from tools.bench import report
from tools.bench import tables as benchmark

ENTRY = {"quantity": "test_accuracy", "value": 0.95, "tolerance": 0.005, "unit": "%", "source": "Section 5.2",
         "sentence": "95% at epsilon 2", "because": "of the seeds", "when": {"dataset": "mnist"}}
PAGE = "text\n<!-- one: made by hand -->\nold\n<!-- end one -->\n<!-- two: made by hand -->\n<!-- end two -->\n"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """write(name, data): a JSON file in an empty results/."""
    folder = tmp_path / "results"
    folder.mkdir()
    for module in (tables, pages):
        monkeypatch.setattr(module, "RESULTS", folder)
    return lambda name, data: (folder / name).write_text(json.dumps(data))


def test_the_pages_agree_with_the_results(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().err


def test_another_figure_is_noticed_and_mended(tmp_path, monkeypatch, capsys):
    for page in pages.PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        text = (tables.ROOT / page).read_text(encoding="utf-8")
        (tmp_path / page).write_text(text.replace("| W1 | factored | ", "| W1 | factored | 0", 1), encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    assert tables.main(["--check"]) == 1
    assert capsys.readouterr().err == "tools/README.md: not what experiments/results says; run python -m tools.tables\n"
    assert tables.main([]) == 0 and tables.main(["--check"]) == 0


def test_a_row_gives_mean_range_worst_bound_and_number_of_seeds(results):
    for seed, (accuracy, upper) in enumerate([(0.90, 1.9981), (0.92, 1.9972)]):
        results(f"r-{seed}.json", {"test_accuracy": accuracy, "steps": 2086, "accountant": "moments",
                                   "epsilon": {"moments": {"upper": upper}}, "groups": [{"sigma": 8.0}]})
    columns = [("a", "{name} ({groups.0.sigma:g})"), ("b", "{epsilon.$accountant.upper:upper}"), ("c", "{steps:,}"),
               ("d", "{test_accuracy:spread}"), ("e", "{steps:count}"), ("f", "{views:?1}")]
    assert tables.table(columns, [tables.runs("r-*.json", name="large")])[2:] == [
        "| large (8) | 1.999 | 2,086 | 91.00% (90.00% to 92.00%) | 2 | 1 |"]


@pytest.mark.parametrize("template, message", [
    ("{tset_accuracy:.2%}", "results/r-*.json: no tset_accuracy"), ("{seed}", "differs between seeds: [0, 1]"),
    ("{name:.2%}", "name: Unknown format code")])
def test_a_misspelt_column_is_an_error(results, template, message):
    for seed in range(2):
        results(f"r-{seed}.json", {"seed": seed, "name": "x", "groups": [], "test_accuracy": 0.9, "epsilon": {}})
    with pytest.raises(tables.TableError) as raised:
        tables.table([("a", template)], [tables.runs("r-*.json")])
    assert message in str(raised.value)


@pytest.mark.parametrize("rows, message", [
    (lambda: tables.runs("no-*.json"), "no such file"), (lambda: tables.entries("no.json", "levels"), "no such file"),
    (lambda: tables.entries("r.json", "levles"), "no levles"),
    (lambda: pages.verdicts("mnist_pac", "r.json"), "no experiment mnist_pac"),
    (lambda: pages.judged(ENTRY, []), "95% at epsilon 2: no committed result")])
def test_what_is_missing_is_an_error(results, rows, message):
    results("r.json", {"levels": {}})
    with pytest.raises(tables.TableError, match=message):
        rows()


@pytest.mark.parametrize("text", [PAGE.replace("<!-- end one -->\n", ""), PAGE.replace("<!-- one:", "<!-- noe:"),
                                  PAGE + "<!-- three: x -->\n<!-- end three -->\n", PAGE + PAGE, "no table at all\n"])
def test_a_missing_misspelt_or_unknown_marker_is_an_error(text):
    made = {"one": lambda: ["new"], "two": lambda: ["more"]}
    full = PAGE.replace("old", "new").replace("<!-- end two", "more\n<!-- end two")
    assert tables.filled("page.md", PAGE, made) == full
    with pytest.raises(tables.TableError, match="page.md"):
        tables.filled("page.md", text, made)


def test_an_error_is_one_line_and_exit_2(monkeypatch, capsys):
    monkeypatch.setitem(pages.PAGES, "README.md", {"results": lambda: tables.runs("none-*.json")})
    with pytest.raises(SystemExit) as stopped:
        tables.main(["--check"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "error: results/none-*.json: no such file\n"


@pytest.mark.parametrize("side, accuracies, verdict", [
    (None, [0.951, 0.949], "reproduced"), (None, [0.96, 0.962], "differs by +1.10 points because of the seeds"),
    ("at least", [0.96, 0.962], "reproduced"), ("at least", [0.947, 0.949], "reproduced within 0.50 points"),
    ("at least", [0.93, 0.95], "differs by -1.00 points because of the seeds"),
    ("at most", [0.93, 0.95], "reproduced")])
def test_the_mean_over_seeds_is_judged(side, accuracies, verdict, results, tmp_path, monkeypatch):
    for seed, accuracy in enumerate(accuracies, 1):
        results(f"mnist_pca-{seed}.json", {"dataset": "mnist", "test_accuracy": accuracy})
    monkeypatch.setattr(pages, "EXPECTED", tmp_path / "expected.json")
    (tmp_path / "expected.json").write_text(json.dumps({"mnist_pca": [ENTRY | ({"side": side} if side else {})]}))
    row = pages.verdicts("mnist_pca", "mnist_pca-*.json")[-1]
    mean = sum(accuracies) / 2
    assert f"| {mean:.2%} ({min(accuracies):.2%} to {max(accuracies):.2%}) | 2 | {verdict} |" in row
    assert "[1](results/mnist_pca-1.json), [2](results/mnist_pca-2.json)" in row


def test_every_number_of_expected_json_has_a_line():
    text = (tables.ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for entries in json.loads(pages.EXPECTED.read_text(encoding="utf-8")).values():
        assert all(f"| {entry['sentence']} |" in text for entry in entries)


def benchmark_file(usual=True, **turns):
    rows = [{"contender": name.replace("_kept", "+pages").replace("_", "-"), "turns_ms": [ms], "step_ms": ms,
             "peak_mib": 20.4, "versions": {"numpy": "2.4.6"}, "products": {"library": "OpenBLAS", "core": "Zen"}}
            for name, ms in turns.items()]
    one = {"workload": "W1", "device": "cpu", "lot": 600, "usual_lot": usual, "threads": 2, "rounds": 15, "rows": rows,
           "ratios": report.ratios(rows)}
    return {"contests": [one], **report.summary([one])}


def test_the_benchmark_says_times_ratios_and_conditions(results):
    results("b.json", benchmark_file(factored=2.0, floor=1.6, torch=2.5, torch_kept=1.9, opacus=100.0,
                                     opacus_ghost_kept=123.4))
    header, _, row = benchmark.ours("b.json")
    assert header.split(" | ")[2:5] == ["step, ms", "to floor", "to PyTorch, not private"]
    assert row == "| W1 | factored | 2 | 1.25 | 0.8 / 1.05 | - | 0.02 | 0.016 | - | 20 |"
    _, _, *rows = benchmark.peers("b.json")
    assert {"| PyTorch, not private | 2.5 ms, 20 MiB |",
            "| Opacus, ghost clipping, pages kept | 123 ms, 20 MiB |"} <= set(rows)
    assert benchmark.conditions("b.json") == ["Threads: 2; numpy 2.4.6; OpenBLAS (Zen); 15 rounds or more."]


def test_lots_of_another_size_are_in_the_other_table_only(results):
    growth = {"workload": "W1", "device": "cpu", "contender": "factored", "slope": 0.98765, "per_example": 0.9512}
    results("b.json", benchmark_file(usual=False, factored=2.0) | {"growth": [{**growth, "memory": None}]})
    assert len(benchmark.ours("b.json")) == 2
    assert benchmark.growth("b.json")[2] == "| W1 | factored | 0.988 | 0.95 | - |"
