"""The command line as such: help, versions, how it starts and ends; errors; files it writes."""

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata

import pytest

import minidp
from minidp.__main__ import main
from minidp.commands import COMMANDS, build_parser
from minidp.commands.flags import user_errors
from minidp.errors import BudgetExceededError, DataError
from tests.support.scripts import environment, python

RUN = "epsilon --noise-multiplier 4 --sampling-probability 0.01 --steps 10000 --delta 1e-5".split()
PARSERS = build_parser()._subparsers._group_actions[0].choices


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_has_a_help_text_and_every_command_an_example_that_can_be_read(command):
    parser = PARSERS[command]
    assert all(action.help for action in parser._actions)
    text = " ".join(parser.format_help().split("example")[-1].split())
    examples = re.findall(rf"{re.escape(parser.prog)} (\S.*?)(?= {re.escape(parser.prog)}|$)", text)
    for example in examples:
        parser.parse_args(shlex.split(example))
    assert examples


def test_the_versions_are_one_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    numpy, python = metadata.version("numpy"), sys.version.split()[0]
    assert stopped.value.code == 0
    assert (
        capsys.readouterr().out == f"minidp {minidp.__version__}, NumPy {numpy}, Python {python}\n"
    )


def test_help_loads_no_library_and_the_host_is_tuned_before_numpy_loads():
    said = python(
        "-c",
        "import sys; from minidp import host; tuned = []\n"
        "host.tune = lambda: tuned.append('numpy' not in sys.modules)\n"
        "sys.argv = ['minidp', '--help']; from minidp.__main__ import script\ntry: script()\n"
        "finally: print(tuned, [name for name in ('numpy', 'scipy', 'numba') if name in "
        "sys.modules])",
        check=True,
    ).stdout
    assert said.endswith("[True] []\n") and "usage: minidp" in said


@pytest.mark.parametrize(
    "flags, name",
    [
        ("verify run --html v.html".split(), "v.html"),
        ("audit --layer ReLU --json a.json".split(), "a.json"),
    ],
)
def test_a_file_that_is_there_is_replaced_only_by_force(flags, name, run, refused, folder):
    (folder / name).write_text("mine")
    assert (
        refused(*flags)
        == f"error: {name} exists already; --force replaces it, another name keeps it\n"
    )
    assert (folder / name).read_text() == "mine" and len(list(folder.iterdir())) == 1
    if flags[0] != "verify":
        run(*flags, "--force")
        assert (folder / name).read_bytes() != b"mine"


@pytest.mark.parametrize("out", ["nowhere/a.json", "."])
def test_a_place_that_cannot_be_written_is_told_before_any_work(out, refused):
    said = refused("audit", "--layer", "ReLU", "--json", out)
    assert said.startswith(f"error: {out}") and "cannot be written" in said


def test_a_reader_that_leaves_ends_a_command_without_a_word():
    read, write = os.pipe()
    os.close(read)
    flags = "delta --noise-multiplier 4 --sampling-probability 0.01 --steps 9 --epsilon 1"
    # basic composition compiles nothing, which would be told
    command = [sys.executable, "-m", "minidp", *flags.split(), "--accountant", "basic"]
    with open(write, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, env=environment())
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "error, line",
    [
        (DataError("train-images: truncated\nat byte 16"), "train-images: truncated at byte 16"),
        (PermissionError(13, "Permission denied", "/runs/x"), "/runs/x: Permission denied"),
        (ImportError("Numba needs NumPy 2.2.\nGot 2.3."), "Numba needs NumPy 2.2. Got 2.3."),
    ],
)
def test_user_errors_are_one_line_and_exit_2(capsys, error, line):
    with pytest.raises(SystemExit) as exit, user_errors():
        raise error
    assert exit.value.code == 2
    assert capsys.readouterr() == ("", f"error: {line}\n")


def test_a_library_that_is_missing_is_one_line():
    script = (
        "import sys; sys.modules['numba'] = None; from minidp.__main__ import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = python("-c", script, *RUN)
    line = "error: numba is not installed: pip install numba, or install minidp again\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


@pytest.mark.parametrize("error", [ValueError(), ImportError("odd", name="minidp.commands.flags")])
def test_faults_of_the_program_keep_their_traceback(error):
    with pytest.raises(type(error)), user_errors():
        raise error


def test_interrupt_says_what_was_saved_and_exits_130(capsys):
    with pytest.raises(SystemExit) as exit, user_errors() as note:
        note.saved = "step 400 is in runs/x; go on with --resume"
        raise KeyboardInterrupt
    assert exit.value.code == 130
    assert (
        capsys.readouterr().err.strip() == "interrupted; step 400 is in runs/x; go on with --resume"
    )


def test_code_that_catches_value_errors_around_training_does_not_swallow_the_end_of_the_budget():
    assert not issubclass(BudgetExceededError, (ValueError, TypeError, ArithmeticError))


STEP = """
import numpy
rng = numpy.random.default_rng()
def released(rows, by):
    g = rows / numpy.maximum(1, numpy.linalg.norm(rows, axis=1, keepdims=True))
    return (g.sum(axis=0, dtype=float) + rng.normal(0, 2, 30)) / by
stated = dict(row_shape=(30,), clip_norm=1, noise_multiplier=2, expected_lot_size=8)
check = dict(stated, step=lambda rows: released(rows, 8))
leaky = dict(stated, step=lambda rows: released(rows, max(1, len(rows))))
unsaid = dict(step=lambda rows: rows, row_shape=(30,))
"""


def test_a_step_in_a_file_is_checked(run, folder, capsys):
    (folder / "mine.py").write_text(STEP)
    assert "holds        sensitivity" in run("audit --step mine.py")
    assert main(["audit", "--step", "mine.py:leaky"]) == 1
    assert "number of rows at hand" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags, says",
    [
        ("nowhere.py", "FileNotFoundError"),
        ("mine.py:nothing", "expected a dictionary called check"),
        ("mine.py:unsaid", "first call: missing 3 required keyword-only arguments: 'clip_norm'"),
        ("mine.py --html a.html", "--step stands alone: its report is the text"),
    ],
)
def test_a_step_that_cannot_be_checked_is_one_line(flags, says, refused, folder):
    (folder / "mine.py").write_text(STEP)
    assert says in refused("audit --step", flags)
