"""curve and tradeoff: the figures, the pictures' titles and lines, and files that are there already."""
import pytest

SIGMA, SAMPLING = ["--noise-multiplier", "4"], ["--sampling-probability", "0.01"]
CURVE = ["curve", "--delta", "1e-5", "--epochs", "100", "--points", "5", "--out", "e", *SIGMA]
TRADEOFF = ["tradeoff", "--steps", "10000", "--out", "t.png", *SIGMA]
BOTH = pytest.mark.parametrize("flags", [CURVE, TRADEOFF])


def test_curve_writes_csv_and_png(answer, folder):
    record = answer(*CURVE, *SAMPLING)
    assert record["epsilon"]["moments"]["upper"] == pytest.approx(1.2586, abs=5e-5)
    lines = (folder / "e.csv").read_text().splitlines()
    assert len(lines) == 6 and float(lines[-1].split(",")[0]) == 100.0
    assert (folder / "e.png").read_bytes().startswith(b"\x89PNG")


def test_tradeoff_writes_png_and_power(answer, folder):
    power = answer(*TRADEOFF, *SAMPLING)["true_positive_rate"]
    assert 0.01 < power["loss_distribution"] <= power["renyi"] <= power["moments"] < 0.1
    assert (folder / "t.png").read_bytes().startswith(b"\x89PNG")


@BOTH
def test_the_title_is_the_setting_and_what_is_no_bound_is_dashed(flags, run, drawn):
    run(*flags, *SAMPLING, "--all")
    run(*flags, *SAMPLING, "--force")
    assert drawn[0].get_suptitle().split() == "sigma 4, sampling probability 0.01, 10000 steps, add_remove".split()
    all_lines, bounds = ({line.get_label(): line.get_linestyle() for line in figure.axes[0].lines} for figure in drawn)
    assert all_lines["loss_distribution"] == all_lines["moments"] == "-"
    assert all_lines["gaussian_clt\n(approximation, no guarantee)"] == "--"
    assert "moments" in bounds and not any("gaussian_clt" in label for label in bounds)


@pytest.mark.parametrize("flags, name", [
    ([*CURVE, *SAMPLING], "e.csv"), ([*TRADEOFF, *SAMPLING], "t.png"),
    (["verify", "run", "--html", "v.html"], "v.html"),
    *((["audit", "--layer", "ReLU", f"--{kind}", f"a.{kind}"], f"a.{kind}") for kind in ("html", "json"))])
def test_a_file_that_is_there_is_replaced_only_by_force(flags, name, run, refused, folder):
    (folder / name).write_text("mine")
    assert refused(*flags) == f"error: {name} is there already; --force replaces it, another name keeps it\n"
    assert (folder / name).read_text() == "mine" and len(list(folder.iterdir())) == 1
    if flags[0] != "verify":
        run(*flags, "--force")
        assert (folder / name).read_bytes() != b"mine"


@pytest.mark.parametrize("out", ["nowhere/t.png", "."])
def test_a_place_that_cannot_be_written_is_told_before_any_work(out, refused):
    assert refused(*TRADEOFF, *SAMPLING, "--out", out).startswith(f"error: {out} cannot be written")


@BOTH
def test_lots_of_fixed_size_leave_out_whoever_has_no_theorem(flags, run, refused):
    flags = [*flags, "--sampler", "fixed", "--dataset-size", "60000", "--lot-size", "600", "--force"]
    run(*flags, "--accountant", "renyi")
    run(*flags)
    assert "REPLACE_ONE" in refused(*flags, "--accountant", "loss_distribution")
