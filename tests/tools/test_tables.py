"""The pages' tables are what the committed JSON files say; what is missing or misspelt is one line,
never silence.
"""

import json

import pytest

from experiments.common.verdicts import verdict
from tools import pages, tables

ENTRY = {
    "quantity": "test_accuracy",
    "value": 0.95,
    "tolerance": 0.005,
    "unit": "%",
    "source": "Section 5.2",
    "sentence": "95% at epsilon 2",
    "because": "of the seeds",
    "when": {"dataset": "mnist"},
}
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
        (tmp_path / page).write_text(
            text.replace("| W1 | factored | ", "| W1 | factored | 0", 1), encoding="utf-8"
        )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    assert tables.main(["--check"]) == 1
    assert (
        capsys.readouterr().err
        == "tools/README.md: not what experiments/results says; run python -m tools.tables\n"
    )
    assert tables.main([]) == 0 and tables.main(["--check"]) == 0


def test_a_row_gives_mean_range_worst_bound_and_number_of_seeds(results):
    for seed, (accuracy, upper) in enumerate([(0.90, 1.9981), (0.92, 1.9972)]):
        results(
            f"r-{seed}.json",
            {
                "test_accuracy": accuracy,
                "steps": 2086,
                "accountant": "moments",
                "epsilon": {"moments": {"upper": upper}},
                "groups": [{"sigma": 8.0}],
            },
        )
    columns = [
        ("a", "{name} ({groups.0.sigma:g})"),
        ("b", "{epsilon.$accountant.upper:upper}"),
        ("c", "{steps:,}"),
        ("d", "{test_accuracy:spread}"),
        ("e", "{steps:count}"),
        ("f", "{views:?1}"),
    ]
    assert tables.table(columns, [tables.runs("r-*.json", name="large")])[2:] == [
        "| large (8) | 1.999 | 2,086 | 91.00% (90.00% to 92.00%) | 2 | 1 |"
    ]


def column(template):
    return tables.table([("a", template)], [tables.runs("r-*.json")])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: column("{tset_accuracy:.2%}"), "results/r-*.json: no tset_accuracy"),
        (lambda: column("{seed}"), "differs between seeds: [0, 1]"),
        (lambda: column("{name:.2%}"), "Unknown format"),
        (lambda: tables.runs("no-*.json"), "no such file"),
        (lambda: tables.entries("r-0.json", "levles"), "no levles"),
        (lambda: pages.verdicts("mnist_pac", "r-0.json"), "no experiment mnist_pac"),
        (lambda: pages.judged(ENTRY, []), "95% at epsilon 2: no committed result"),
    ],
)
def test_what_is_missing_or_misspelt_is_an_error(results, make, message):
    for seed in range(2):
        results(f"r-{seed}.json", {"seed": seed, "name": "x", "levels": {}})
    with pytest.raises(tables.TableError) as raised:
        make()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("<!-- end one -->\n", ""),
        PAGE.replace("<!-- one:", "<!-- noe:"),
        PAGE + "<!-- three: x -->\n<!-- end three -->\n",
        PAGE + PAGE,
        "no table at all\n",
    ],
)
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


@pytest.mark.parametrize(
    "changes, accuracies, verdict",
    [
        ({}, [0.951, 0.949, 0.953], "reproduced"),
        ({}, [0.951, 0.949], "too few seeds to say"),
        ({"deterministic": True}, [0.95, 0.95], "reproduced"),
        ({}, [0.96, 0.961, 0.962], "differs by +1.10 points ± 0.06% because of the seeds"),
        ({"side": "at least"}, [0.947, 0.949, 0.951], "reproduced within 0.50 points"),
        ({"side": "at most"}, [0.93, 0.95, 0.91], "reproduced"),
        ({"place": True}, [0.95, 0.96, 0.95], "differs in 1 of 3 seeds because of the seeds"),
        ({"place": True, "value": 0.05, "tolerance": 0.02}, [0.03, 0.05, 0.07], "reproduced"),
    ],
)  # to the bit, .05 - .03 is above .02
def test_the_mean_over_seeds_is_judged(
    changes, accuracies, verdict, results, tmp_path, monkeypatch
):
    entry, mean = ENTRY | changes, sum(accuracies) / len(accuracies)
    for seed, accuracy in enumerate(accuracies, 1):
        results(
            f"mnist_pca-{seed}.json", {"dataset": "mnist", "test_accuracy": accuracy, "commit": "a"}
        )
    monkeypatch.setattr(pages, "EXPECTED", tmp_path / "expected.json")
    (tmp_path / "expected.json").write_text(json.dumps({"mnist_pca": [entry]}))
    row = pages.verdicts("mnist_pca", "mnist_pca-*.json")[-1]
    ours = (
        ", ".join(f"{accuracy:.2%}" for accuracy in accuracies)
        if "place" in changes
        else f"{mean:.2%} ± "
    )
    assert (
        f"| {ours}" in row
        and f" | {verdict} | [1](results/mnist_pca-1.json), [2](results/mnist_pca-2.json)" in row
    )
    results("mnist_pca-2.json", {"dataset": "mnist", "test_accuracy": accuracies[1], "commit": "b"})
    row = pages.verdicts("mnist_pca", "mnist_pca-*.json")[-1]
    assert ("; versions mixed |" in row) is ("deterministic" not in changes)


@pytest.mark.parametrize(
    "path, result",
    [
        ("levels.large.gain", {"levels": {"large": {"gain": 0.955, "gain_by_seed": [0.95, 0.96]}}}),
        (
            "quantities.gain",
            {"quantities": {"gain": 0.955}, "quantities_by_seed": {"gain": [0.95, 0.96]}},
        ),
    ],
)
def test_a_summary_is_judged_by_the_values_of_its_seeds(path, result):
    found = verdict([{"dataset": "mnist", **result}], ENTRY | {"quantity": path})
    assert (
        found.values == [0.95, 0.96]
        and found.value == 0.955
        and found.error == pytest.approx(0.005)
    )


def test_every_number_of_expected_json_has_a_line():
    text = (tables.ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for entries in json.loads(pages.EXPECTED.read_text(encoding="utf-8")).values():
        assert all(f"| {entry['sentence']} |" in text for entry in entries)
