"""A failed audit names the broken lines first, and then what may follow from them."""

from minidp.audit import printing, report
from minidp.audit.start import reached, start_here, summary


def row(card, label, passed=False):
    path = f"minidp/{card.rpartition('.')[0].replace('.', '/')}.py"
    code = [{"path": path, "line": 7, "text": ""}]
    return {"card": card, "label": label, "path": path, "code": code, "passed": passed}


ROWS = [
    row("train.trainer.Trainer", "F1"),
    row("train.trainer.Trainer", "F3"),
    row("nn.activation.Tanh", "B1"),
    row("nn.activation.Sigmoid", "B1", passed=True),
    row("nn.network.Sequential", "P1"),
    row("mechanism.clip.clip_weights", "N1"),
    row("mechanism.clip.clip_weights", "N2"),
    row("mechanism.sanitizer.Sanitizer", "F1"),
    row("privacy.conversion.tail_bound_epsilon", "C1"),
]


def test_what_imports_a_broken_file_may_follow_from_it():
    first, others = start_here(ROWS)
    names = [f"{each['card'].rpartition('.')[2]} {each['label']}" for each in first]
    assert names == ["Tanh B1", "clip_weights N1", "clip_weights N2", "tail_bound_epsilon C1"]
    assert len(others) == 4


def test_the_summary_names_file_line_and_labels():
    assert summary(ROWS) == [
        "",
        "8 failed; start here:",
        "  minidp/nn/activation.py:7  Tanh [B1]",
        "  minidp/mechanism/clip.py:7  clip_weights [N1] [N2]",
        "  minidp/privacy/conversion.py:7  tail_bound_epsilon [C1]",
        "  4 more may follow from these: Sanitizer, Sequential, Trainer",
    ]
    assert summary([row("nn.dense.Dense", "F1", passed=True)]) == []


def test_imports_are_followed_to_the_end():
    assert "minidp/nn/activation.py" in reached("minidp/train/trainer.py")
    assert "minidp/train/trainer.py" not in reached("minidp/nn/activation.py")


def test_by_default_only_what_fails_is_printed(capsys):
    rows = report.audit("Tanh")
    rows[1] = {**rows[1], "passed": False}
    for everything, shown in ((False, 1), (True, 2)):
        screen = printing.Screen(everything)
        for each in rows:
            screen.show(each)
        screen.end()
        out = capsys.readouterr().out
        assert out.count("nn.activation.Tanh [") == shown
        assert ("1 of 2 labels agree" in out) is not everything
