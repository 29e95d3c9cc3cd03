"""The pages' tables are what the committed JSON files say; what is missing or misspelt is one line,
never silence.
"""

import json
import random
import re

import mnist_pca
import pytest

from experiments.common.results import ledger_of, packed, rows_of
from minidp.privacy import Gaussian, Ledger
from tools import derived, tables

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
RUNS = rows_of(derived.load("figure_3.json"))
PAGE = (
    "text\n<!-- one: made by hand -->\nold\n<!-- end one -->\n"
    "<!-- two: made by hand -->\n<!-- end two -->\n"
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """write(name, data): a JSON file in an empty results/."""
    folder = tmp_path / "results"
    folder.mkdir()
    for module in (derived, tables):
        monkeypatch.setattr(module, "RESULTS", folder)
    return lambda name, data: (folder / f"{name}.json").write_text(json.dumps(data))


def rows(*found):
    """A table's JSON with these rows."""
    return packed([{"name": "a", "seed": seed, **one} for seed, one in enumerate(found, 1)])


def test_the_pages_agree_with_the_results(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().err


def test_a_changed_digit_is_noticed():
    """Of 300 digits of printed numbers, each changed alone; some other numbers stand in the JSON,
    too.
    """
    rng, spots = random.Random(1), []
    for page in tables.ROOT.glob("**/*.md"):
        for table in tables.TABLE.finditer(page.read_text(encoding="utf-8")):
            text = re.sub(r"\]\([^)]*\)", "]", table[0])
            for number in tables.PRINTED.finditer(text):
                if text.count("\n", 0, number.start()) > 2 and "verdict" not in text:
                    at = rng.randrange(*number.span())
                    spots += [(text, at)] if text[at].isdigit() else []
    noticed = 0
    for text, at in rng.sample(spots, 300):
        other = rng.choice("0123456789".replace(text[at], ""))
        noticed += any(tables.misfits(text[:at] + other + text[at + 1 :]))
    assert noticed > 250


PRINTS = """<!-- one: numbers of a.json rows -->
| what | epsilon | accuracy |
|---|---|---|
| x | 1.235 | 98.77% (2 seeds)<br>`made` |
<!-- end one -->
"""
HOLDS = {"rows": [{"upper": 1.2341, "mean": 0.98767, "by_seed": [0.98, 0.99]}, {"command": "made"}]}


@pytest.mark.parametrize(
    "change",
    [
        ("1.235", "1.236"),
        ("98.77", "98.76"),
        ("(2 seeds)", "(3 seeds)"),
        ("`made`", "`made here`"),
        ("1.235", "0.5"),
    ],
)
def test_a_line_finds_all_of_its_numbers_in_one_entry(results, change):
    both = {"rows": [{**HOLDS["rows"][0], **HOLDS["rows"][1]}, {"upper": 0.5}]}
    results("a", both)
    assert not [*tables.misfits(PRINTS)]
    name, line = next(tables.misfits(PRINTS.replace(*change)))
    assert name == "one" and change[1] in line


@pytest.mark.parametrize("sources", ["none.json", "a.json levels"])
def test_a_source_that_is_not_there_is_an_error(results, sources):
    results("a", HOLDS)
    with pytest.raises(derived.TableError, match=r"results/(none|a)\.json"):
        [*tables.misfits(PRINTS.replace("a.json rows", sources))]


def test_sources_of_one_name_are_joined_and_seeds_have_a_mean(results):
    results("a", rows({"test_accuracy": 0.97}, {"test_accuracy": 0.98}))
    results("b", {"papers": {"a": "96.6% at 3"}})
    text = PRINTS.replace("a.json rows", "a.json and b.json papers").replace(
        "| x | 1.235 | 98.77% (2 seeds)<br>`made` |", "| a | 3 | 97.50% (97.00% to 98.00%), 96.6% |"
    )
    assert not [*tables.misfits(text)]
    assert [*tables.misfits(text.replace(" and b.json papers", ""))]


def test_stale_figures_that_follow_from_others_are_noticed(monkeypatch):
    monkeypatch.setattr(derived, "derived", lambda: {"verdicts": []})
    assert "results/derived.json: stale" in next(tables.check())


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
        derived.TableError, match="results/r.json: moments-medium, seed 1: .*" + message
    ):
        tables.recheck()


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
    with pytest.raises(derived.TableError, match="page.md"):
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
    monkeypatch.setattr(derived, "EXPECTED", derived.RESULTS / "expected.json")
    monkeypatch.setitem(derived.FILES, "mnist_pca", ("figure", "another"))
    (found,) = derived.verdicts("mnist_pca")
    assert found["verdict"] == verdict and found["from"] == ["figure"]
    monkeypatch.setitem(derived.FILES, "mnist_pca", ("mixed",))
    (found,) = derived.verdicts("mnist_pca")
    assert found["verdict"].endswith("; versions mixed")


def test_a_claim_that_no_result_speaks_of_is_an_error():
    with pytest.raises(derived.TableError, match="95% at epsilon 2: no committed result"):
        derived.judged(ENTRY, [])


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
    first, second = rows_of(derived.load("table.json"))
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
