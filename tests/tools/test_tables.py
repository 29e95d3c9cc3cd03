"""The pages' tables are what the committed JSON files say; what is missing or misspelt is one line,
never silence.
"""

import json

import mnist_pca
import pytest

from experiments.common.results import ledger_of, packed, rows_of
from minidp.privacy import Gaussian, Ledger
from tests.support.scripts import ROOT
from tools import cells, pages, tables

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
RUNS = rows_of(cells.load("figure_3.json"))
PAGE = (
    "text\n<!-- one: made by hand -->\nold\n<!-- end one -->\n"
    "<!-- two: made by hand -->\n<!-- end two -->\n"
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """write(name, data): a JSON file in an empty results/."""
    folder = tmp_path / "results"
    folder.mkdir()
    for module in (cells, tables):
        monkeypatch.setattr(module, "RESULTS", folder)
    return lambda name, data: (folder / f"{name}.json").write_text(json.dumps(data))


def rows(*found):
    """A table's JSON with these rows."""
    return packed([{"name": "a", "seed": seed, **one} for seed, one in enumerate(found, 1)])


def test_the_pages_agree_with_the_results(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().err


def test_another_figure_is_noticed_and_mended(tmp_path, monkeypatch, capsys):
    for page in pages.PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        text = (tables.ROOT / page).read_text(encoding="utf-8")
        (tmp_path / page).write_text(
            text.replace("| W1 | factored | ", "| W1 | factored | 0", 1), encoding="utf-8"
        )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "recheck", lambda: 0)
    assert tables.main(["--check"]) == 1
    assert (
        capsys.readouterr().err
        == "tools/README.md: not what experiments/results says; run python -m tools.tables\n"
    )
    assert tables.main([]) == 0
    for page in pages.PAGES:
        assert (tmp_path / page).read_bytes() == (ROOT / page).read_bytes()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"ledger_sha256": "0" * 64}, "its settings give another ledger than the one"),
        ({"epsilon": {"moments": {"lower": None, "upper": 1.9}}}, "states epsilon"),
        ({"sampler": "CyclicSampler"}, "got 'CyclicSampler': what its lots cost"),
        ({"settings": {}}, "'dataset_size'"),
    ],
)
def test_a_run_whose_ledger_or_epsilon_does_not_follow_from_its_settings_is_refused(
    results, change, message
):
    run = next(one for one in RUNS if one["name"] == "moments-medium")
    results("r", packed([run]))
    assert tables.recheck() == 1
    results("r", packed([run | change]))
    with pytest.raises(
        cells.TableError, match="results/r.json: moments-medium, seed 1: .*" + message
    ):
        tables.recheck()


def column(template):
    return cells.table(f"a: {template}", [cells.runs("a", "r")])


def test_the_bound_of_several_seeds_is_the_worst(results):
    results("r", rows({"epsilon": 1.9981}, {"epsilon": 1.9972}))
    assert column("{epsilon:upper}")[-1] == "| 1.999 |"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: column("{tset_accuracy:.2%}"), "results/r.json: a: {tset_accuracy:.2%}: a value"),
        (lambda: column("{seed}"), "differs between seeds: [1, 2]"),
        (lambda: column("{name:.2%}"), "Unknown format"),
        (lambda: cells.runs("a", "none"), "no such file"),
        (lambda: cells.runs("b", "r"), "results/r.json: b: no such run"),
        (lambda: cells.entries("r.json", "levles"), "no levles"),
        (lambda: cells.verdicts("mnist_pac", "r"), "no experiment mnist_pac"),
        (lambda: cells.judged(ENTRY, []), "95% at epsilon 2: no committed result"),
    ],
)
def test_what_is_missing_or_misspelt_is_an_error(results, make, message):
    results("r", rows({}, {}))
    with pytest.raises(cells.TableError) as raised:
        make()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("<!-- one:", "<!-- noe:"),
        PAGE + "<!-- three: x -->\n<!-- end three -->\n",
        PAGE + PAGE,
    ],
)
def test_a_missing_misspelt_or_unknown_marker_is_an_error(text):
    made = {"one": ["new"], "two": ["more"]}
    full = PAGE.replace("old", "new").replace("<!-- end two", "more\n<!-- end two")
    assert tables.filled("page.md", PAGE, made) == full
    with pytest.raises(cells.TableError, match="page.md"):
        tables.filled("page.md", text, made)


@pytest.mark.parametrize(
    "changes, accuracies, verdict",
    [
        ({}, [0.95, 0.95, 0.95], "reproduced"),
        ({}, [0.951, 0.949, 0.953], "reproduced within 0.50 points"),
        ({}, [0.951, 0.949], "too few seeds to say"),
        ({}, [0.96, 0.961, 0.962], "differs by +1.10 points ± 0.06% because of the seeds"),
        ({"place": True}, [0.95, 0.96, 0.95], "differs in 1 of 3 seeds because of the seeds"),
        # to the bit, .05 - .03 is above .02
        ({"value": 0.05, "tolerance": 0.02}, [0.03, 0.03, 0.03], "reproduced within 2.00 points"),
    ],
)
def test_the_mean_over_seeds_is_judged(changes, accuracies, verdict, results, monkeypatch):
    """The committed pages show how sides and what no seed changes are judged."""
    about = {"experiment": "mnist_pca", "dataset": "mnist"}
    runs = [{**about, "test_accuracy": each, "commit": "a"} for each in accuracies]
    results("figure", rows(*runs))
    results("another", rows(*runs))  # the same runs, which count once
    results("mixed", rows(*runs[1:], runs[0] | {"commit": "b"}))
    results("expected", {"mnist_pca": [ENTRY | changes]})
    monkeypatch.setattr(cells, "EXPECTED", cells.RESULTS / "expected.json")
    row = cells.verdicts("mnist_pca", "figure", "another")[-1]
    assert f"| {verdict} | [figure](results/figure.json) |" in row
    assert "; versions mixed |" in cells.verdicts("mnist_pca", "mixed")[-1]


def test_every_number_of_expected_json_has_a_line():
    pages = (tables.ROOT / "experiments").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for entries in json.loads(cells.EXPECTED.read_text(encoding="utf-8")).values():
        assert all(f"| {entry['sentence']} |" in text for entry in entries)


def test_finished_runs_are_added_to_a_table_and_replace_those_of_their_seed(
    results, tmp_path, capsys
):
    folder = tmp_path / "eps2-seed1"
    flags = f"--smoke --dataset strokes --seed 1 --quiet --out {folder} --hidden 50"
    assert mnist_pca.main(flags.split()) == 0
    results(
        "table", packed([{"name": "eps2", "seed": seed, "test_accuracy": 0.5} for seed in (1, 2)])
    )
    tables.collect("table", folder)
    first, second = rows_of(cells.load("table.json"))
    assert second == {"name": "eps2", "seed": 2, "test_accuracy": 0.5} and first["seed"] == 1
    more = Ledger.load(folder / "ledger.json")
    assert ledger_of(first).entries() == more.entries() and more.unit == "row"
    more.append(Gaussian(1.0), 1, "earlier")
    more.save(folder / "ledger.json")
    results("figure", {"levels": {}})
    for name, message in (
        ("table", "ledger.json holds other charges"),
        ("figure", "is not a table of runs alone"),
    ):
        with pytest.raises(SystemExit) as stopped:
            tables.main(["--collect", name, str(folder)])
        assert stopped.value.code == 2 and message in capsys.readouterr().err
