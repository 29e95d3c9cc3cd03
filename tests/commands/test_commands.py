"""The command line as such: help, versions, how it starts and how it ends."""
import json
import re
import shlex
import subprocess
import sys
from importlib import metadata

import pytest

import minidp
from minidp.__main__ import main
from minidp.commands import COMMANDS, build_parser

RUN = ["--noise-multiplier", "4", "--sampling-probability", "0.01", "--steps", "10000"]
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
    assert stopped.value.code == 0
    assert capsys.readouterr().out == (f"minidp {minidp.__version__}, NumPy {metadata.version('numpy')}, Python "
                                       f"{sys.version.split()[0]}\n")


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupted(*args, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("minidp.commands.accounting.all_bounds", interrupted)
    assert main(["epsilon", *RUN, "--delta", "1e-5"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("start", [["-m", "minidp"], ["-c", "import sys; from minidp.__main__ import script; sys.exit(script())"]])
def test_both_ways_to_start_are_the_same(start):
    done = subprocess.run([sys.executable, *start, "epsilon", *RUN, "--delta", "1e-5", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["quote"] == "loss_distribution"


def test_help_loads_no_library_and_the_host_is_tuned_before_numpy_loads():
    code = ("import sys; from minidp import host; tuned = []\n"
            "host.tune = lambda: tuned.append('numpy' not in sys.modules)\n"
            "sys.argv = ['minidp', '--help']; from minidp.__main__ import script\n"
            "try: script()\nfinally: print(tuned, [name for name in ('numpy', 'scipy', 'numba') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("[True] []\n") and "usage: minidp" in done.stdout
