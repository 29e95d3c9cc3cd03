"""The command line, python -m minidp."""
import json
import math
import subprocess
import sys

import pytest

from minidp.__main__ import build_parser, main
from minidp.privacy.gaussian import gaussian_epsilon

RUN = ["--noise-multiplier", "4", "--sampling-probability", "0.01", "--steps", "10000"]
NAMES = ["moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic", "paper_strong_composition",
         "ledger_2016"]


def answer(capsys, *flags):
    assert main([*flags, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_epsilon_by_every_accountant(capsys):
    record = answer(capsys, "epsilon", *RUN, "--delta", "1e-5")
    assert list(record) == ["delta", "quote", "accountants"] and record["delta"] == 1e-5
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
    found = answer(capsys, "epsilon", *flags)["accountants"]
    assert found["moments"]["upper"] == pytest.approx(6.281, abs=2e-3)
    assert found["ledger_2016"]["upper"] == pytest.approx(3.565, abs=5e-4)
    assert answer(capsys, "epsilon", *flags, "--accountant", "renyi")["accountants"].keys() == {"renyi"}


def test_an_accountant_without_a_theorem_says_so(capsys):
    flags = ["--noise-multipliers", "1,1", *RUN[2:], "--delta", "1e-5", "--relation", "replace_one"]
    for command in (["epsilon", *flags], ["delta", *flags[:-4], "--relation", "replace_one", "--epsilon", "1"]):
        assert main(command) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and "REPLACE_ONE" in err


def test_pca_costs_more_when_a_row_is_replaced(capsys):
    flags = ["epsilon", *RUN[:4], "--steps", "0", "--pca-noise-multiplier", "7", "--delta", "1e-5", "--accountant"]
    one = answer(capsys, *flags, "gaussian_clt", "--relation", "replace_one")["accountants"]["gaussian_clt"]["upper"]
    assert one == pytest.approx(gaussian_epsilon(math.sqrt(2) / 7, 1e-5), rel=1e-6)
    assert answer(capsys, *flags, "gaussian_clt")["accountants"]["gaussian_clt"]["upper"] < one


def test_the_table_marks_the_smallest_bound_as_the_row_to_quote(capsys):
    record = answer(capsys, "epsilon", *RUN, "--delta", "1e-5")
    uppers = [entry["upper"] for entry in record["accountants"].values() if entry["kind"] == "bound"]
    assert record["accountants"][record["quote"]]["upper"] == min(uppers)
    main(["epsilon", *RUN, "--delta", "1e-5"])
    lines = capsys.readouterr().out.splitlines()
    marked = [line for line in lines if line.endswith("<- quote this")]
    assert len(marked) == 1 and marked[0].startswith(record["quote"])
    assert len(lines) == 1 + len(NAMES) and lines[1].startswith("moments") and "1.25857" in lines[1]


def test_bounds_are_printed_on_their_safe_side(capsys):
    entry = answer(capsys, "epsilon", *RUN, "--delta", "1e-5")["accountants"]["loss_distribution"]
    main(["epsilon", *RUN, "--delta", "1e-5", "--accountant", "loss_distribution"])
    lower, _, upper = map(float, capsys.readouterr().out.splitlines()[1].split()[1:4])
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


@pytest.mark.parametrize("command", ["epsilon", "delta", "calibrate", "curve", "tradeoff"])
def test_every_flag_has_a_help_text(capsys, command):
    commands = build_parser()._subparsers._group_actions[0].choices
    assert all(action.help for action in commands[command]._actions)


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupted(*args, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("minidp.__main__.all_bounds", interrupted)
    assert main(["epsilon", *RUN, "--delta", "1e-5"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_delta_at_epsilon(capsys):
    record = answer(capsys, "delta", *RUN, "--epsilon", "0.94687")
    assert list(record) == ["epsilon", "quote", "accountants"]
    tight = record["accountants"]["loss_distribution"]
    assert tight["lower"] <= 1e-5 * 1.001 and tight["upper"] >= 1e-5 * 0.999 and list(record["accountants"]) == NAMES


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


def test_curve_writes_csv_and_png(capsys, tmp_path):
    out = str(tmp_path / "epsilon")
    record = answer(capsys, "curve", *RUN[:4], "--delta", "1e-5", "--epochs", "100", "--points", "5", "--out", out)
    assert record["epsilon"]["moments"]["upper"] == pytest.approx(1.2586, abs=5e-5)
    lines = (tmp_path / "epsilon.csv").read_text().splitlines()
    assert len(lines) == 6 and float(lines[-1].split(",")[0]) == 100.0
    assert (tmp_path / "epsilon.png").read_bytes().startswith(b"\x89PNG")


def test_tradeoff_writes_png_and_power(capsys, tmp_path, drawn):
    record = answer(capsys, "tradeoff", *RUN, "--out", str(tmp_path / "t.png"))
    power = record["true_positive_rate"]
    assert 0.01 < power["loss_distribution"] <= power["renyi"] <= power["moments"] < 0.1
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG") and len(drawn) == 1


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


def test_as_a_module():
    command = [sys.executable, "-m", "minidp", "epsilon", *RUN, "--delta", "1e-5", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert list(json.loads(done.stdout)["accountants"]) == NAMES
