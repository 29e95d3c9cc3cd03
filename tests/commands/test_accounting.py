"""epsilon, delta and calibrate: what they answer, and what they refuse."""

import json
import math

import pytest

import minidp
from minidp.__main__ import main
from minidp.commands import COMMANDS
from minidp.errors import ParameterError
from minidp.mechanism import Plan, Sanitizer, flat_group
from minidp.mechanism.samplers import SAMPLERS, make_sampler
from minidp.privacy import Laplace, Ledger, RenyiAccountant
from minidp.privacy.accountants import short_names
from tests.support.accountants import ledger_of

NOISE = "--noise-multiplier 4"
SAMPLING = "--sampling-probability 0.01"
STEPS = "--steps 10000"
RUN = f"{NOISE} {SAMPLING} {STEPS}"
SIZES = "--dataset-size 60000 --lot-size 600"
EPSILON = "epsilon --delta 1e-5"
KINDS = {
    **dict.fromkeys(("moments", "renyi", "loss_distribution"), "bound"),
    "gaussian_clt": "approximation",
    **dict.fromkeys(("advanced", "basic"), "bound"),
    **dict.fromkeys(("paper_strong_composition", "ledger_2016"), "comparison"),
}
NAMES = short_names()
BOUNDS = [name for name, kind in KINDS.items() if kind == "bound"]


def uppers(record):
    return {name: entry["upper"] for name, entry in record["accountants"].items()}


def test_epsilon_by_every_accountant(answer):
    record = answer(EPSILON, RUN, "--all")
    assert list(record) == ["delta", "quote", "accountants", "meaning", "ledger"]
    found = record["accountants"]
    assert {name: entry["kind"] for name, entry in found.items()} == KINDS
    assert list(found["basic"]) == ["lower", "estimate", "upper", "kind", "note"]
    assert found["loss_distribution"]["lower"] < 0.94687 < found["loss_distribution"]["upper"]
    assert record == answer(EPSILON, RUN, "--accountant", "all")


def test_joint_layers_and_pca_share_one_ledger(answer):
    flags = f"{EPSILON} --noise-multipliers 1,1 {SAMPLING} --steps 1000 --pca-noise-multiplier 4"
    found = uppers(answer(flags, "--all"))
    assert found["moments"] == pytest.approx(6.281, abs=2e-3)
    assert found["ledger_2016"] == pytest.approx(3.565, abs=5e-4)


@pytest.mark.parametrize("command, nothing", [(EPSILON, "inf"), ("delta --epsilon 1", 1)])
def test_where_nothing_is_bounded_or_guaranteed_no_row_is_to_be_quoted(
    command, nothing, refused, capsys, tmp_path
):
    ledger_of((Laplace(9.0), 3)).save(tmp_path / "ledger.json")
    flags = f"{command} --ledger . --accountant gaussian_clt"
    assert "no theorem for Laplace" in refused(flags)
    assert main([*flags.split(), "--json"]) == 2
    assert uppers(json.loads(capsys.readouterr().out)) == {"gaussian_clt": None}
    flags = f"{command} --noise-multiplier 0 {SAMPLING} {STEPS}".split()
    assert "error: nothing is guaranteed" in refused(*flags)
    assert main([*flags, "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["quote"] is None and uppers(record)["moments"] == nothing


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sizes_and_epochs_say_what_the_plan_of_training_charges(sampler, answer):
    flags = "--noise-multiplier 1.1 --dataset-size 6e4 --lot-size 256 --epochs 1000"
    # nothing is charged for roundings
    sanitizer = Sanitizer(flat_group([("a", "W")], 3.0, 1.1), "explicit")
    plan = Plan(make_sampler(sampler, 60_000, 256), sanitizer, 234_375, 256)
    record = answer(EPSILON, flags, "--sampler", sampler, "--accountant", "renyi")
    assert Ledger.from_json(record["ledger"]) == plan.ledger()
    assert (
        uppers(record)["renyi"] == RenyiAccountant(plan.relation).epsilon(plan.ledger(), 1e-5).upper
    )


def test_epochs_are_rounded_up_to_steps(answer):
    record = answer(EPSILON, NOISE, "--epochs 3 --sampling-probability 0.3 --accountant basic")
    assert [entry["count"] for entry in record["ledger"]["entries"]] == [10]


def test_a_ledger_of_a_run_is_read(answer, folder):
    Ledger.from_json(answer(EPSILON, RUN)["ledger"]).save(folder / "ledger.json")
    for command, path in ((EPSILON, "."), ("delta --epsilon 1", "ledger.json")):
        assert answer(command, "--ledger", path) == answer(command, RUN)


def test_the_table_marks_the_smallest_bound_as_the_row_to_quote_on_its_safe_side(answer, run):
    record = answer(EPSILON, RUN)
    found = uppers(record)
    assert found[record["quote"]] == min(found.values()) and list(found) == BOUNDS
    title, _, *rows, meaning = run(EPSILON, RUN).splitlines()
    assert title == "sigma 4, sampling probability 0.01, 10000 steps, add_remove, delta 1e-05"
    assert "at most 0.153 at a false positive rate of 0.1, 0.0192" in meaning
    (marked,) = [row.split() for row in rows if row.endswith("<- quote this")]
    exact = record["accountants"][record["quote"]]
    assert (
        marked[0] == "pld"
        and NAMES["pld"] == record["quote"]
        and float(marked[1]) <= exact["lower"]
    )
    assert exact["upper"] <= float(marked[3])


def test_accountants_are_printed_and_typed_by_the_names_that_the_field_knows(answer, run):
    rows = [line.split() for line in run(EPSILON, RUN, "--all").splitlines()[2:-1]]
    assert [row[0] for row in rows[:6]] == list(NAMES) and rows[3][1:4] == [
        "(CLT,",
        "an",
        "approximation)",
    ]
    for name, key in NAMES.items():
        assert list(uppers(answer(EPSILON, RUN, "--accountant", name))) == [key]
        assert answer(EPSILON, RUN, "--accountant", key)["ledger"]
    (row,) = run(EPSILON, NOISE, "--sampling-probability 1 --steps 9 --accountant gdp").split("\n")[
        2:3
    ]
    assert row.startswith("gdp  ") and "CLT" not in row


def test_delta_at_epsilon(answer):
    record = answer("delta", RUN, "--epsilon", "0.94687")
    assert list(record) == ["epsilon", "quote", "accountants", "ledger"]
    tight = record["accountants"]["loss_distribution"]
    assert tight["lower"] <= 1e-5 * 1.001 and tight["upper"] >= 1e-5 * 0.999


def test_a_group_costs_more_and_no_lower_end_of_one_example_is_shown_for_it(answer, run):
    flags = f"{EPSILON} {RUN} --accountant loss_distribution --group-size"
    one, three = (answer(flags, k)["accountants"]["loss_distribution"] for k in "13")
    assert three["upper"] > 3 * one["upper"] and one["lower"] and three["lower"] is None
    alone = answer(f"{EPSILON} {STEPS} --sampling-probability 1 --noise-multiplier 200")
    half = f"{EPSILON} {STEPS} --sampling-probability 1 --noise-multiplier 400 --group-size 2"
    for rate, power in answer(half)["meaning"]["true_positive_rates"].items():
        assert power == pytest.approx(alone["meaning"]["true_positive_rates"][rate], rel=1e-6)


SIZED = {"dataset_size": 60_000, "lot_size": 600}
PLANNED = [
    (
        f"{EPSILON} {NOISE} {SIZES} --epochs 3 --accountant rdp --group-size 2",
        lambda: minidp.epsilon(
            delta=1e-5, noise_multiplier=4, **SIZED, epochs=3, accountant="rdp", group_size=2
        ),
    ),
    (
        f"{EPSILON} --noise-multipliers 4,8 {SIZES} --sampler shuffle --steps 9",
        lambda: minidp.epsilon(
            delta=1e-5, noise_multiplier=[4, 8], **SIZED, sampler="shuffle", steps=9
        ),
    ),
    (
        f"calibrate --epsilon 3 --delta 1e-5 {SIZES} --steps 900 --pca-noise-multiplier 7",
        lambda: minidp.calibrate(epsilon=3, delta=1e-5, **SIZED, steps=900, pca_noise_multiplier=7),
    ),
]


@pytest.mark.parametrize("flags, function", PLANNED)
def test_python_has_the_commands_under_the_names_of_their_flags(flags, function, answer):
    assert json.loads(json.dumps(function())) == answer(flags)


def test_what_python_gets_prints_as_the_command_and_has_names_for_the_figure_to_quote(run):
    found = minidp.epsilon(delta=1e-5, noise_multiplier=4, sampling_probability=0.01, steps=10_000)
    row = found["accountants"][found["quote"]]
    assert float(found) == found.upper == row["upper"] and found.lower == row["lower"]
    assert run(EPSILON, RUN).splitlines()[1:] == str(found).splitlines()
    assert found.accountant == "pld" and str(found).endswith(found.meaning)
    nothing = minidp.epsilon(delta=1e-5, noise_multiplier=0, sampling_probability=0.01, steps=9)
    assert float(nothing) == math.inf and nothing.lower is nothing.accountant is None
    assert nothing.meaning == ""


def test_what_python_calibrates_likewise(run):
    for flags, group in (("", 1), ("--group-size 2", 2)):
        asked = {"noise_multiplier": 4, "sampling_probability": 0.01, "group_size": group}
        found = minidp.calibrate(epsilon=2, delta=1e-5, **asked)
        assert f"{found}\n" == run(CALIBRATE, NOISE, SAMPLING, flags, "--quiet")
        assert float(found) == found["steps"] and found.upper == found["epsilon"]["upper"] <= 2
        spent = minidp.epsilon(delta=1e-5, **asked, steps=found["steps"])
        assert found.meaning == spent.meaning and found.accountant == spent.accountant
    asked = {"sampling_probability": 0.01, "steps": 900}
    sigma = float(minidp.calibrate(epsilon=2, delta=1e-5, **asked))
    assert 0 < float(minidp.epsilon(delta=1e-5, noise_multiplier=sigma, **asked)) <= 2


def test_python_reads_a_ledger_and_names_arguments_in_its_errors(folder, run):
    ledger = ledger_of((Laplace(9.0), 3))
    ledger.save(folder / "ledger.json")
    assert "3 releases, " in run(f"{EPSILON} --ledger .")
    assert minidp.epsilon(delta=1e-5, ledger=ledger) == minidp.epsilon(delta=1e-5, ledger=".")
    with pytest.raises(ParameterError, match="says what was done; leave out lot_size"):
        minidp.epsilon(delta=1e-5, ledger=ledger, lot_size=3)
    with pytest.raises(
        ParameterError, match="find the other: noise_multiplier=; either steps= or epochs="
    ):
        minidp.calibrate(epsilon=1, delta=1e-5, steps=3)


CALIBRATE = "calibrate --target-epsilon 2 --delta 1e-5"


def test_a_delta_that_is_large_for_the_data_is_remarked(capsys):
    for delta, told in (("0.1", "NOTICE: delta=0.1 is not below 1/1000,"), ("1e-5", "")):
        flags = f"epsilon {NOISE} --dataset-size 1,000 --lot-size 1_0 --steps 9 --delta {delta}"
        main(f"{flags} --accountant renyi".split())
        out, err = capsys.readouterr()
        assert err.startswith(told) and bool(err) == bool(told)


def test_calibrate_finds_the_noise_and_the_steps_of_another_sampler(answer):
    flags = f"{CALIBRATE} {SIZES} --sampler shuffle"
    record = answer(flags, "--epochs", "5")
    assert record["accountant"] == "loss_distribution" and 1.99 < record["epsilon"]["upper"] <= 2
    found = answer(flags, "--noise-multiplier", str(record["noise_multiplier"]))
    # five epochs of 100 lots
    assert found["epsilon"]["upper"] <= 2 and found["steps"] in range(500, 600)


@pytest.mark.parametrize(
    "flags, told",
    [
        ("rdp", ""),
        ("gdp --quiet", "NOTICE: gdp (CLT, an approximation) proves no bound"),
    ],
)
def test_calibrate_says_what_is_no_bound(flags, told, capsys):
    main(f"{CALIBRATE} {NOISE} {SAMPLING} --accountant {flags}".split())
    err = capsys.readouterr().err
    assert err.startswith(told) and err.count("\n") == bool(told)


EITHER = "either --sampling-probability or --dataset-size and --lot-size"


ONE_NOISE = [
    ("--dataset-size 100 --steps 3", EITHER),
    (f"{SIZES} {SAMPLING} {STEPS}", EITHER),
    (
        f"--sampler shuffle {SAMPLING} {STEPS}",
        "with --sampler shuffle --dataset-size",
    ),
    (SIZES, "either --steps or"),
    (f"{SIZES} --steps 3 --epochs 1", "either --steps or --epochs"),
    (f"{SIZES} --steps 3 --sampler shuffle --relation add_remove", "--relation zero_out"),
    (f"{SIZES} --epochs 1e300", "--steps 1e+302"),
    (f"{SAMPLING} --steps -3", "--steps -3"),
    ("--ledger here.json", "leave out --noise-multiplier"),
    ("--steps abc", "argument --steps: expected a whole number such as 10000 or 1e4, got 'abc'"),
    ("--steps 10,00", "argument --steps: expected a whole number"),
    ("--sampling-probability 1/0", "argument --sampling-probability: expected a "),
    ("--noise-multipliers 4,4", "argument --noise-multiplier/--noise-multipliers: given twice"),
]
OTHERS = [
    (f"{EPSILON} --ledger none.json", "none.json: no such file"),
    (f"{EPSILON} {SAMPLING} {STEPS}", "expected --noise-multiplier, or --ledger FILE"),
    (f"delta {RUN} --epsilon -1", "--epsilon -1.0"),
    (f"{EPSILON} {RUN} --accountant ledger_2016", "expected one of bounds, all, moments, rdp, "),
    (f"{CALIBRATE} {NOISE} {SAMPLING} --accountant best", "moments, rdp, pld, gdp, advanced, bas"),
    ("fly", "invalid choice: 'fly'"),
    (f"{CALIBRATE} {SAMPLING} {NOISE} --pca-noise-multiplier 1 --quiet", "before the first step"),
    (f"{CALIBRATE} {NOISE} {SAMPLING} {STEPS}", "expected one of these two"),
    (f"calibrate {SAMPLING} {STEPS}", "required: --target-epsilon/--epsilon, --delta"),
    (f"{CALIBRATE} --epsilon 2", "argument --target-epsilon/--epsilon: given twice"),
    ("epsilon --delta 1e-5", "expected --noise-multiplier; and either --steps or --epochs; and"),
    (
        f"calibrate --epsilon 0 --delta 1e-5 {NOISE} {SAMPLING}",
        "--target-epsilon 0.0 to be above 0",
    ),
]


@pytest.mark.parametrize(
    "flags, message", [(f"{EPSILON} {NOISE} {flags}", words) for flags, words in ONE_NOISE] + OTHERS
)
def test_what_a_user_does_wrong_is_one_line(flags, message, refused):
    assert message in refused(flags)


def test_without_a_command_the_help_names_all(capsys):
    assert main([]) == 2
    printed = capsys.readouterr().out
    assert all(f"\n    {name}" in printed for name in COMMANDS)


def test_accountants_figures_are_found_by_short_names_beside_those_of_files():
    found = minidp.epsilon(delta=1e-5, noise_multiplier=4, sampling_probability=0.01, steps=100)
    rows = found["accountants"]
    for short, key in NAMES.items():
        if key in rows:
            assert rows[short] is rows[key]
    assert rows["pld"]["upper"] == found.upper and "loss_distribution" in rows
    with pytest.raises(KeyError, match="gdp"):
        rows["gdp"]
    with pytest.raises(KeyError, match="moment"):
        rows["moment"]
