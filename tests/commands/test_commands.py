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
from tests.support.scripts import environment

RUN = ["epsilon", "--noise-multiplier", "4", "--sampling-probability", "0.01", "--steps", "10000", "--delta", "1e-5"]
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
    assert capsys.readouterr().out == f"minidp {minidp.__version__}, NumPy {numpy}, Python {python}\n"


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupted(*args, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("minidp.commands.accounting.all_bounds", interrupted)
    assert main(RUN) == 130 and capsys.readouterr().err == "interrupted\n"


def started(*words):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout


@pytest.mark.parametrize("start", [["-m", "minidp"],
                                   ["-c", "import sys; from minidp.__main__ import script; sys.exit(script())"]])
def test_both_ways_to_start_are_the_same(start):
    assert json.loads(started(*start, *RUN, "--json"))["quote"] == "loss_distribution"


def test_help_loads_no_library_and_the_host_is_tuned_before_numpy_loads():
    said = started("-c", "import sys; from minidp import host; tuned = []\n"
                   "host.tune = lambda: tuned.append('numpy' not in sys.modules)\n"
                   "sys.argv = ['minidp', '--help']; from minidp.__main__ import script\ntry: script()\n"
                   "finally: print(tuned, [name for name in ('numpy', 'scipy', 'numba') if name in sys.modules])")
    assert said.endswith("[True] []\n") and "usage: minidp" in said
