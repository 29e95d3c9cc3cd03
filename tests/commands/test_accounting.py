"""epsilon, delta and calibrate: what they answer, and what they refuse."""
import json
import math

import pytest

from minidp.__main__ import main
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.mechanism.sampling import make_sampler
from minidp.privacy import Ledger, RenyiAccountant
from minidp.privacy.gaussian import gaussian_epsilon

RUN = ["--noise-multiplier", "4", "--sampling-probability", "0.01", "--steps", "10000"]
SIZES = ["--dataset-size", "60000", "--lot-size", "600"]
NAMES = ["moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic", "paper_strong_composition",
         "ledger_2016"]
BOUNDS = ["moments", "renyi", "loss_distribution", "advanced", "basic"]


def answer(capsys, *flags):
    assert main([*flags, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_epsilon_by_every_accountant(capsys):
    record = answer(capsys, "epsilon", *RUN, "--delta", "1e-5", "--all")
    assert list(record) == ["delta", "quote", "accountants", "ledger"] and record["delta"] == 1e-5
    assert list(record["accountants"]) == NAMES
    for entry in record["accountants"].values():
        assert list(entry) == ["lower", "estimate", "upper", "kind", "note"]
    found = record["accountants"]
    assert found["moments"]["upper"] == pytest.approx(1.2586, abs=5e-5) and found["moments"]["lower"] is None
    assert found["renyi"]["upper"] == pytest.approx(1.0355, abs=5e-5)
    assert found["loss_distribution"]["lower"] < 0.94687 < found["loss_distribution"]["upper"]
    assert [found[name]["kind"] for name in NAMES] == ["bound"] * 3 + ["approximation"] + ["bound"] * 2 + ["comparison"] * 2


def test_joint_layers_and_pca_share_one_ledger(capsys):
    flags = ["--noise-multipliers", "1,1", "--sampling-probability", "0.01", "--steps", "1000",
             "--pca-noise-multiplier", "4", "--delta", "1e-5"]
    found = answer(capsys, "epsilon", *flags, "--all")["accountants"]
    assert found["moments"]["upper"] == pytest.approx(6.281, abs=2e-3)
    assert found["ledger_2016"]["upper"] == pytest.approx(3.565, abs=5e-4)
    assert answer(capsys, "epsilon", *flags, "--accountant", "renyi")["accountants"].keys() == {"renyi"}


def test_where_no_accountant_has_a_theorem_nothing_is_bounded(capsys):
    flags = [*SIZES, "--sampler", "fixed", "--noise-multiplier", "4", "--steps", "10", "--accountant", "loss_distribution"]
    for command in (["epsilon", *flags, "--delta", "1e-5"], ["delta", *flags, "--epsilon", "1"]):
        assert main(command) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and "REPLACE_ONE" in err
        assert main([*command, "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["accountants"]["loss_distribution"]["upper"] is None


@pytest.mark.parametrize("command", [("epsilon", "--delta", "1e-5"), ("delta", "--epsilon", "1")])
def test_without_noise_nothing_is_guaranteed_and_no_row_is_to_be_quoted(capsys, command):
    assert main([*command, "--noise-multiplier", "0", *RUN[2:]]) == 2
    out, err = capsys.readouterr()
    assert "quote" not in out and err.startswith("error: nothing is guaranteed") and err.count("\n") == 1
    assert main([*command, "--noise-multiplier", "0", *RUN[2:], "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["quote"] is None and record["accountants"]["moments"]["upper"] == (1 if command[0] == "delta" else "inf")


def test_only_bounds_are_shown_unless_all_are_asked_for(capsys):
    flags = ["epsilon", *RUN, "--delta", "1e-5"]
    assert list(answer(capsys, *flags)["accountants"]) == BOUNDS
    assert answer(capsys, *flags, "--all") == answer(capsys, *flags, "--accountant", "all")
    assert list(answer(capsys, *flags, "--all")["accountants"]) == NAMES


@pytest.mark.parametrize("sampler, steps", [("poisson", 234375), ("fixed", 234375), ("shuffle", 234375)])
def test_sizes_and_epochs_say_what_the_plan_of_training_charges(capsys, sampler, steps):
    flags = ["--noise-multiplier", "1.1", "--dataset-size", "6e4", "--lot-size", "256", "--epochs", "1000"]
    sanitizer = Sanitizer(flat_group([("a", "W")], 3.0, 1.1))
    plan = Plan(make_sampler(sampler, 60_000, 256), sanitizer, steps, 256)
    record = answer(capsys, "epsilon", *flags, "--delta", "1e-5", "--sampler", sampler, "--accountant", "renyi")
    assert Ledger.from_json(record["ledger"]) == plan.ledger()
    assert record["accountants"]["renyi"]["upper"] == RenyiAccountant(plan.relation).epsilon(plan.ledger(), 1e-5).upper


def test_epochs_are_rounded_up_to_steps(capsys):
    for flags in (["--dataset-size", "1000", "--lot-size", "300"], ["--sampling-probability", "0.3"]):
        record = answer(capsys, "epsilon", "--noise-multiplier", "4", "--epochs", "3", "--delta", "1e-5", *flags)
        assert [entry["count"] for entry in record["ledger"]["entries"]] == [10]


@pytest.mark.parametrize("flags, message", [
    ([], "either --sampling-probability or --dataset-size and --lot-size"),
    (["--dataset-size", "100", "--steps", "3"], "either --sampling-probability or --dataset-size and --lot-size"),
    ([*SIZES, *RUN[2:]], "either --sampling-probability or --dataset-size and --lot-size"),
    (["--sampler", "fixed", *RUN[2:]], "with --sampler fixed --dataset-size and --lot-size"),
    (SIZES, "either --steps or --epochs"), ([*SIZES, "--steps", "3", "--epochs", "1"], "either --steps or --epochs"),
    ([*RUN[2:], "--relation", "replace_one"], "--relation add_remove"),
    ([*SIZES, "--steps", "3", "--sampler", "shuffle", "--relation", "add_remove"], "--relation zero_out"),
    (["--dataset-size", "10", "--lot-size", "11", "--steps", "3"], "lot_size=11"),
    ([*SIZES, "--epochs", "1e300"], "steps=1e+302"), ([*SIZES, "--epochs", "-1"], "epochs=-1.0"),
    (["--ledger", "here.json"], "leave out --noise-multiplier")])
def test_sampling_and_length_are_described_in_exactly_one_way(capsys, flags, message):
    assert main(["epsilon", "--noise-multiplier", "4", "--delta", "1e-5", *flags]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("error: ") and message in err


def test_a_ledger_of_a_run_is_read(capsys, tmp_path):
    plan = Plan(PoissonSampler(0.01), Sanitizer(flat_group([("a", "W")], 1.0, 4.0)), 10_000, 600)
    plan.ledger().save(tmp_path / "ledger.json")
    for path in (tmp_path, tmp_path / "ledger.json"):
        for command in (["epsilon", "--delta", "1e-5"], ["delta", "--epsilon", "1"]):
            assert answer(capsys, *command, "--ledger", str(path)) == answer(capsys, *command, *RUN)


@pytest.mark.parametrize("text", [None, "", "{}", '{"format": 2, "relation": "add_remove", "entries": [{}]}'])
def test_a_ledger_that_is_missing_or_damaged_is_one_line(capsys, tmp_path, text):
    if text is not None:
        (tmp_path / "ledger.json").write_text(text)
    assert main(["epsilon", "--delta", "1e-5", "--ledger", str(tmp_path / "ledger.json")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith(f"error: {tmp_path}/ledger.json: ")


def test_pca_costs_more_when_a_row_is_replaced(capsys):
    flags = ["epsilon", "--noise-multiplier", "4", *SIZES, "--steps", "0", "--pca-noise-multiplier", "7", "--delta", "1e-5",
             "--accountant", "gaussian_clt"]
    one = answer(capsys, *flags, "--sampler", "fixed")["accountants"]["gaussian_clt"]["upper"]
    assert one == pytest.approx(gaussian_epsilon(math.sqrt(2) / 7, 1e-5), rel=1e-6)
    assert answer(capsys, *flags)["accountants"]["gaussian_clt"]["upper"] < one


def test_the_table_marks_the_smallest_bound_as_the_row_to_quote(capsys):
    record = answer(capsys, "epsilon", *RUN, "--delta", "1e-5")
    uppers = [entry["upper"] for entry in record["accountants"].values() if entry["kind"] == "bound"]
    assert record["accountants"][record["quote"]]["upper"] == min(uppers)
    main(["epsilon", *RUN, "--delta", "1e-5"])
    lines = capsys.readouterr().out.splitlines()
    marked = [line for line in lines if line.endswith("<- quote this")]
    assert len(marked) == 1 and marked[0].startswith(record["quote"])
    assert lines[0] == "sigma 4, sampling probability 0.01, 10000 steps, add_remove"
    assert len(lines) == 2 + len(BOUNDS) and lines[2].startswith("moments") and "1.25857" in lines[2]


def test_bounds_are_printed_on_their_safe_side(capsys):
    entry = answer(capsys, "epsilon", *RUN, "--delta", "1e-5")["accountants"]["loss_distribution"]
    main(["epsilon", *RUN, "--delta", "1e-5", "--accountant", "loss_distribution"])
    lower, _, upper = map(float, capsys.readouterr().out.splitlines()[2].split()[1:4])
    assert lower <= entry["lower"] <= entry["upper"] <= upper


def test_numbers_may_be_fractions_and_powers_of_ten(capsys):
    flags = ["--noise-multiplier", "4", "--delta", "1e-5", "--accountant", "renyi"]
    found = [answer(capsys, "epsilon", *flags, "--sampling-probability", q, "--steps", steps)
             for q, steps in (("1/64", "1e4"), ("0.015625", "10000"))]
    assert found[0] == found[1]


@pytest.mark.parametrize("flag, value", [("--steps", "1.5"), ("--steps", "many"), ("--sampling-probability", "1/0"),
                                         ("--group-size", "1e-3"), ("--noise-multipliers", "4,,4")])
def test_what_is_no_number_says_what_would_be(capsys, flag, value):
    flags = {"--sampling-probability": "0.01", "--steps": "10", "--noise-multipliers": "4,4", flag: value}
    with pytest.raises(SystemExit) as stopped:
        main(["epsilon", "--delta", "1e-5", *(part for pair in flags.items() for part in pair)])
    err = capsys.readouterr().err
    assert stopped.value.code == 2 and err.count("\n") == 1 and f"argument {flag}: expected a " in err


def test_delta_at_epsilon(capsys):
    record = answer(capsys, "delta", *RUN, "--epsilon", "0.94687")
    assert list(record) == ["epsilon", "quote", "accountants", "ledger"]
    tight = record["accountants"]["loss_distribution"]
    assert tight["lower"] <= 1e-5 * 1.001 and tight["upper"] >= 1e-5 * 0.999


def test_group_costs_more(capsys):
    one = answer(capsys, "epsilon", *RUN, "--delta", "1e-5", "--accountant", "renyi")
    three = answer(capsys, "epsilon", *RUN, "--delta", "1e-5", "--accountant", "renyi", "--group-size", "3")
    assert three["accountants"]["renyi"]["upper"] > 3 * one["accountants"]["renyi"]["upper"]


def test_calibrate_noise(capsys):
    record = answer(capsys, "calibrate", "--target-epsilon", "2", "--delta", "1e-5", "--sampling-probability", "0.01",
                    "--steps", "10000")
    assert 0.999 * 2 <= record["epsilon"]["upper"] <= 2
    assert record["noise_multiplier"] == pytest.approx(2.13, abs=0.01)


def test_calibrate_steps(capsys):
    record = answer(capsys, "calibrate", "--target-epsilon", "1.2586", "--delta", "1e-5", "--sampling-probability", "0.01",
                    "--noise-multiplier", "4", "--accountant", "moments")
    assert 9990 <= record["steps"] <= 10010 and record["epsilon"]["upper"] <= 1.2586
    assert isinstance(record["steps"], int)


def test_calibrate_finds_the_same_noise_by_sizes_and_epochs(capsys):
    flags = ["calibrate", "--target-epsilon", "2", "--delta", "1e-5"]
    by_sizes = answer(capsys, *flags, *SIZES, "--epochs", "100")
    assert by_sizes == answer(capsys, *flags, "--sampling-probability", "0.01", "--steps", "1e4")


@pytest.mark.parametrize("sampler, accountant", [("fixed", "renyi"), ("shuffle", "loss_distribution")])
def test_calibrate_knows_the_other_samplers(capsys, sampler, accountant):
    flags = ["--target-epsilon", "2", "--delta", "1e-5", *SIZES, "--sampler", sampler]
    record = answer(capsys, "calibrate", *flags, "--epochs", "5")
    assert record["accountant"] == accountant and 1.99 < record["epsilon"]["upper"] <= 2
    found = answer(capsys, "calibrate", *flags, "--noise-multiplier", str(record["noise_multiplier"]))
    assert found["epsilon"]["upper"] <= 2 and found["steps"] in range(500, 600)     # five epochs of 100 lots


def test_calibrate_finds_the_sampling_probability_and_the_lot_size(capsys):
    flags = ["calibrate", "--target-epsilon", "1.26", "--delta", "1e-5", "--noise-multiplier", "4", "--steps", "1e4",
             "--accountant", "moments"]
    record = answer(capsys, *flags, "--dataset-size", "60000")
    assert record["sampling_probability"] == pytest.approx(0.01, rel=2e-3) and record["epsilon"]["upper"] <= 1.26
    assert record["lot_size"] == int(60_000 * record["sampling_probability"])
    assert main([*flags, "--dataset-size", "50"]) == 2 and "no whole example of 50" in capsys.readouterr().err
    assert main(flags) == 0
    (name, printed), = [line.split("  ") for line in capsys.readouterr().out.splitlines()[:1]]
    assert name == "sampling probability" and float(printed) <= record["sampling_probability"]


@pytest.mark.parametrize("accountant, warned", [("gaussian_clt", True), ("ledger_2016", True), ("renyi", False)])
def test_calibrate_says_what_is_no_bound(capsys, accountant, warned):
    assert main(["calibrate", "--target-epsilon", "2", "--delta", "1e-5", "--accountant", accountant, *RUN[:4], "--json"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"NOTICE: {accountant} is no bound") == warned and json.loads(out)["accountant"] == accountant


@pytest.mark.parametrize("flags", [RUN, RUN[:2], [*RUN[2:4]], [*RUN[:2], "--epochs", "3"]])
def test_calibrate_wants_two_of_three(capsys, flags):
    assert main(["calibrate", "--target-epsilon", "2", "--delta", "1e-5", *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("flags, message", [
    (["epsilon", *RUN[2:], "--noise-multiplier", "-1", "--delta", "1e-5"], "noise_multiplier=-1.0"),
    (["epsilon", *RUN, "--delta", "0"], "delta=0.0"), (["epsilon", *RUN, "--delta", "1"], "delta=1.0"),
    (["epsilon", *RUN, "--delta", "1e-5", "--group-size", "0"], "group_size=0"),
    (["epsilon", "--noise-multiplier", "nan", *RUN[2:], "--delta", "1e-5"], "noise_multiplier=nan"),
    (["epsilon", *RUN[:2], "--sampling-probability", "2", "--steps", "1", "--delta", "1e-5"], "sampling_probability=2.0"),
    (["epsilon", *RUN[:4], "--steps", "-3", "--delta", "1e-5"], "steps=-3"),
    (["epsilon", *RUN[:4], "--steps", "9" * 400, "--delta", "1e-5"], "(an integer of about 400 digits)"),
    (["epsilon", *RUN, "--delta", "1e-5", "--group-size", "9" * 400], "(an integer of about 400 digits)"),
    (["epsilon", *RUN[:4], "--steps", "1e300", "--delta", "1e-5"], "(an integer of about 300 digits)"),
    (["delta", *RUN, "--epsilon", "-1"], "epsilon=-1.0"),
    (["calibrate", "--target-epsilon", "1", "--delta", "1e-5", "--sampling-probability", "0.01", "--noise-multiplier", "4",
      "--pca-noise-multiplier", "2"], "before the first step"),
    (["verify", "/nonexistent"], "ledger.json")])
def test_bad_input_takes_one_line(capsys, flags, message):
    assert main(flags) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("error: ") and message in err


@pytest.mark.parametrize("flags", [["epsilon"], ["fly"], ["epsilon", *RUN, "--delta", "small"], [],
                                   ["epsilon", *RUN, "--delta", "1e-5", "--accountant", "best"]])
def test_unreadable_flags_exit_with_2(capsys, flags):
    with pytest.raises(SystemExit) as stopped:
        main(flags)
    assert stopped.value.code == 2 and capsys.readouterr().err.startswith("error: ")
