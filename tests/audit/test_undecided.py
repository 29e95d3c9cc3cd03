"""check_step: what was not decided is not passed."""

import numpy as np
import pytest

from minidp.audit import check_loss, check_step
from minidp.commands.checking import AuditCommand
from minidp.errors import ParameterError
from tests.audit.test_step import STATED, D, Plain

FILE = """from tests.audit.test_step import STATED, Plain
right = Plain()
calls = []
def step(rows):
    calls.append(1)
    if {when}:
        raise RuntimeError("no memory")
    return right(rows) * {factor}
check = dict(STATED, step=step)
"""


def bytes_of(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, D)).astype(np.uint8)


def test_a_step_that_raises_is_undecided_and_has_no_truth():
    calls = []

    def step(rows):
        calls.append(len(rows))
        if len(calls) > 2:
            raise RuntimeError("no memory")
        return np.zeros(D)

    report = check_step(step, **STATED)
    assert report.passed is None
    assert "holds" not in {each.verdict for each in report.findings}
    with pytest.raises(ParameterError, match="neither true.*\n.*not decided +sensitivity"):
        bool(report)


@pytest.mark.parametrize("when, factor, status", [("0", 1, 0), ("0", 2, 1), ("calls[2:]", 1, 3)])
def test_the_exit_status_tells_passed_violated_and_undecided(tmp_path, when, factor, status):
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(when=when, factor=factor))
    assert AuditCommand(step=str(file)).run() == status


def test_integer_rows_without_clipping_are_violated_and_with_it_pass():
    class Unclipped(Plain):
        def clip(self, g):
            return g

    assert check_step(Plain(), make_rows=bytes_of, **STATED).passed is True
    assert check_step(Unclipped(), make_rows=bytes_of, **STATED).passed is False


def test_integer_rows_below_the_clip_norm_are_undecided():
    stated = {**STATED, "clip_norm": 1.0}

    def ones(n, seed):
        return np.eye(D, dtype=np.uint8)[np.arange(n) % D]

    class Half(Plain):
        def gradients(self, rows):
            return super().gradients(rows) * 0.7

    assert check_step(Half(), make_rows=ones, **stated).passed is None


def test_the_report_says_what_was_not_tried():
    report = check_step(Plain(), **STATED)
    text = repr(report)
    assert f"{report.calls:,} calls" in text and "Not tried" in text
    assert "one of 10,000" in text
    assert "lots of one size alone (rows: C) from 0: 0." in text and "Not asked for: bits" in text
    with pytest.raises(AttributeError, match="no write_html; print"):
        report.write_html("page.html")


def test_the_report_of_a_right_step_names_no_infinite_move():
    class Open(Plain):
        def gradients(self, rows):
            return -rows.astype(float)

    assert "inf C" not in repr(check_step(Open(), **STATED))


def test_a_loss_that_is_never_finite_is_undecided():
    def nowhere(z, target):
        return z[:, 0] * np.nan, z * np.nan

    report = check_loss(nowhere)
    assert report.passed is None and "not decided" in repr(report)
    with pytest.raises(ParameterError, match="neither true nor false"):
        bool(report)
