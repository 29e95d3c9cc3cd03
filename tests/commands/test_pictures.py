"""curve and tradeoff: the figures, the pictures' titles and lines, and files that are there already."""
import json

import matplotlib.figure
import pytest

from minidp.__main__ import main

RUN = ["--noise-multiplier", "4", "--sampling-probability", "0.01", "--steps", "10000"]
CURVE = ["curve", *RUN[:4], "--delta", "1e-5", "--epochs", "100", "--points", "5"]


def answer(capsys, *flags):
    assert main([*flags, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def figures(monkeypatch):
    """Every figure that is saved."""
    saved, savefig = [], matplotlib.figure.Figure.savefig
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda self, *args, **named: (
        saved.append(self), savefig(self, *args, **named)))
    return saved


def test_curve_writes_csv_and_png(capsys, tmp_path):
    out = str(tmp_path / "epsilon")
    record = answer(capsys, *CURVE, "--out", out)
    assert record["epsilon"]["moments"]["upper"] == pytest.approx(1.2586, abs=5e-5)
    lines = (tmp_path / "epsilon.csv").read_text().splitlines()
    assert len(lines) == 6 and float(lines[-1].split(",")[0]) == 100.0
    assert (tmp_path / "epsilon.png").read_bytes().startswith(b"\x89PNG")


def test_tradeoff_writes_png_and_power(capsys, tmp_path, drawn):
    record = answer(capsys, "tradeoff", *RUN, "--out", str(tmp_path / "t.png"))
    power = record["true_positive_rate"]
    assert 0.01 < power["loss_distribution"] <= power["renyi"] <= power["moments"] < 0.1
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG") and len(drawn) == 1


@pytest.mark.parametrize("flags", [[*CURVE, "--out", "e"], ["tradeoff", *RUN, "--out", "t.png"]])
def test_the_title_is_the_setting_and_what_is_no_bound_is_dashed(flags, figures, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main([*flags, "--all"]) == 0
    (figure,), = [figures]
    assert figure.get_suptitle().split() == "sigma 4, sampling probability 0.01, 10000 steps, add_remove".split()
    style = {line.get_label().split("\n")[0]: line.get_linestyle() for line in figure.axes[0].lines}
    assert (style["loss_distribution"], style["moments"], style["gaussian_clt"]) == ("-", "-", "--")
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert "gaussian_clt\n(approximation, no guarantee)" in labels
    assert main([*flags, "--force"]) == 0
    assert not any("gaussian_clt" in line.get_label() for line in figures[1].axes[0].lines)


@pytest.mark.parametrize("flags, name", [([*CURVE, "--out", "e"], "e.csv"), (["tradeoff", *RUN, "--out", "t.png"], "t.png"),
                                         (["verify", "run", "--html", "v.html"], "v.html"),
                                         (["audit", "--layer", "ReLU", "--html", "a.html"], "a.html"),
                                         (["audit", "--layer", "ReLU", "--json", "a.json"], "a.json")])
def test_a_file_that_is_there_is_replaced_only_by_force(flags, name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("mine")
    assert main(flags) == 2
    assert capsys.readouterr().err == f"error: {name} is there already; --force replaces it, another name keeps it\n"
    assert (tmp_path / name).read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
    if flags[0] != "verify":
        assert main([*flags, "--force"]) == 0 and (tmp_path / name).read_bytes() != b"mine"


@pytest.mark.parametrize("out", ["nowhere/t.png", "."])
def test_a_place_that_cannot_be_written_is_told_before_any_work(out, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["tradeoff", *RUN, "--out", out]) == 2
    assert capsys.readouterr().err.startswith(f"error: {out} cannot be written")


@pytest.mark.parametrize("command", [[*CURVE[:3], *CURVE[5:], "--out", "e"], ["tradeoff", *RUN[:2], *RUN[4:], "--out", "t.png"]])
def test_lots_of_fixed_size_leave_out_whoever_has_no_theorem(command, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    flags = [*command, "--sampler", "fixed", "--dataset-size", "60000", "--lot-size", "600"]
    assert main([*flags, "--accountant", "renyi"]) == 0
    assert main([*flags, "--force"]) == 0
    assert main([*flags, "--force", "--accountant", "loss_distribution"]) == 2
    assert "REPLACE_ONE" in capsys.readouterr().err
