"""Each command on a page is run: here as it is printed, or in a cheap form by the tests of its
program, whose flags are compared with those on the page.

NOT_RUN lists the others with the reason: a GPU, another package, or an hour.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest

from tests.support.scripts import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (".", ".github", "experiments", "minidp", "tools")
    for path in (ROOT / folder).glob("*.md" if folder in (".", ".github") else "**/*.md")
    if path.name != "CHANGELOG.md"
)
COMMAND = re.compile(r"(\.venv/bin/)?python3? |minidp |make |mpiexec |srun |pip |pytest |jupyter ")
MINIDP = re.compile(r"^((\.venv/bin/)?python3? -m )?minidp ?")
GPU, PACKAGE, HOUR = "a GPU", "another package", "an hour"
NOT_RUN = {  # the beginning of a command: why it is not run
    "make mnist": PACKAGE,  # creates a virtual environment and installs into it
    "make test": PACKAGE,
    "python3 -m venv": PACKAGE,
    "pip install": PACKAGE,
    "jupyter lab": PACKAGE,
    "python -m mypy": PACKAGE,
    "mpiexec": PACKAGE,  # MPI; tests/test_ranks.py runs ranks where it is installed
    "srun": PACKAGE,  # Slurm
    "minidp audit --step mystep.py": PACKAGE,  # Opacus
    "python -m tools.step_peers": PACKAGE,
    "python experiments/tables_beside.py": PACKAGE,
    "python -m tools.gpu_report": GPU,
    "pytest -k cupy": GPU,
    "python -m tools.own_data": HOUR,
    "python experiments/persons.py": HOUR,
}
IN_WORDS = {  # names of commands in sentences, whose arguments are printed elsewhere
    *("minidp audit", "minidp epsilon", "minidp delta", "minidp train", "minidp verify", "minidp"),
    *("minidp epsilon --json", "minidp epsilon --all", "minidp epsilon --group-size 2"),
    *("minidp audit --step FILE", "minidp audit --html", "python -m tools.NAME"),
    *("minidp audit RUN --html page.html", "minidp audit --card YourLayer", "minidp verify DIR"),
}
SETTING = "--noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 --delta 1e-5"


def commands_of(page):
    """The commands on a page, in one form: minidp for python -m minidp, without remarks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^<!-- earlier programs:.*?^<!-- end", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^    (?:\$ )?(\S.*)$", text, re.MULTILINE)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", text)
    for each in (" ".join(re.sub(r"  +#.*", "", each).split()) for each in (*blocks, *spans)):
        if COMMAND.match(f"{each} "):
            yield MINIDP.sub("minidp ", each).strip()


COMMANDS = sorted({(page, command) for page in PAGES for command in commands_of(page)})
OF_PROGRAMS = [
    (page, command)
    for page, command in COMMANDS
    if re.match(r"python (experiments/|-m tools\.)", command)
    and not command.startswith(tuple(NOT_RUN))
    and command not in IN_WORDS
]
TESTS = [
    path.read_text(encoding="utf-8")
    for path in (ROOT / "tests").glob("*/**/test_*.py")  # not this file
]
OF_MINIDP = {command for _, command in COMMANDS if command.startswith("minidp")}


def run(command, folder):
    """What a command prints in a folder."""
    program = [sys.executable, "-m", "minidp", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def test_each_command_is_run_or_has_its_reason():
    assert set(NOT_RUN.values()) == {GPU, PACKAGE, HOUR}
    known = {*IN_WORDS, *PRINTED, *OF_THE_TABLE, *SLOW, *(each for _, each in OF_PROGRAMS)}
    left = {each for _, each in COMMANDS if not each.startswith(tuple(NOT_RUN))} - known
    assert left == set()
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for _, command in COMMANDS), beginning
    for command in (*PRINTED, *OF_THE_TABLE, *SLOW):
        assert command in OF_MINIDP, command


@cache
def flags_of(*program):
    """The --help of a program on a page, of its command, or of a tool."""
    command = [sys.executable, *program, "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page, command", OF_PROGRAMS, ids=[each for _, each in OF_PROGRAMS])
def test_a_program_on_a_page_has_its_flags_and_a_test_that_runs_it(page, command):
    words = shlex.split(command.replace(" ...", ""))[1:]
    program, rest = (words[:2], words[2:]) if words[0] == "-m" else (words[:1], words[1:])
    name = program[-1].removeprefix("tools.").removeprefix("experiments/").removesuffix(".py")
    running = [text for text in TESTS if re.search(rf"\b{name}\b", text)]
    assert running, f"{page}: no test runs {name}"
    if rest and not rest[0].startswith("-") and "experiments" in program[-1]:
        program, rest = [*program, rest[0]], rest[1:]
        assert any(re.search(rf"(?<![\w-]){program[-1]}(?![\w-])", text) for text in running)
    known = flags_of(*program)
    for flag in (each for each in rest if each.startswith("-")):
        assert re.search(rf"(?<![\w-]){flag}(?![\w-])", known), f"{page}: {command}: {flag}"


PRINTED = {  # a command: what it prints; the page's words in capitals stand for others
    "minidp audit --card Trainer": "Trainer [F4]",
    'minidp audit --card "Theorem 2"': "tail_bound_epsilon",
    "minidp audit --card Dense": "Dense [P1]",
    "minidp epsilon --noise-multiplier 0.7 --sampling-probability 0.001 --steps 2000 --delta 1e-5 "
    "--group-size 8": "2162.53",
    "minidp epsilon --dataset-size 60000 --lot-size 256 --epochs 15 --noise-multiplier 1.3 --delta "
    "1e-5 --sampler SAMPLER": "0.8651",  # 0.866 at most
}


@pytest.mark.parametrize("command", PRINTED)
def test_a_command_prints_what_its_page_says(command, tmp_path):
    assert PRINTED[command] in run(command.replace("SAMPLER", "poisson"), tmp_path)


@pytest.mark.parametrize("command", sorted(each for each in IN_WORDS if " --" in each))
def test_a_command_that_a_sentence_names_has_its_flags(command):
    if command.startswith("minidp"):
        known = flags_of("-m", "minidp", command.split()[1])
        assert all(each in known for each in command.split() if each.startswith("--"))


def test_accountants_are_compared_as_the_papers_page_says(tmp_path):
    assert "gdp" in run(f"minidp epsilon {SETTING} --all", tmp_path)
    assert "gdp" not in run(f"minidp epsilon {SETTING}", tmp_path)


OF_THE_TABLE = (  # in order
    "minidp schema visits.csv --label back_within_a_month --out schema.json",
    "minidp train visits.csv --schema schema.json --person patient --rows-per-person 3 "
    "--target-epsilon 1 --folder runs/visits",
    "minidp predict runs/visits/model.npz new.csv --out predictions.csv",
    "minidp verify runs/visits",
)
SLOW = (
    "minidp audit",
    "minidp audit --html page.html",
    "minidp audit runs/mine --html run.html",
)


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """(folder, {command: what it printed}) after the commands of the page of tables."""
    folder, printed = tmp_path_factory.mktemp("table"), {}
    page = (ROOT / "minidp/fitting/README.md").read_text(encoding="utf-8")
    program, schema = (
        re.search(rf"^```{kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]
        for kind in ("python", "json")
    )
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    first, *others = (folder / "visits.csv").read_text(encoding="utf-8").splitlines()
    (folder / "new.csv").write_text("\n".join([first, *others[:9]]), encoding="utf-8")
    for command in OF_THE_TABLE:
        printed[command] = run(command, folder)
        if command.startswith("minidp schema"):
            assert set(json.loads((folder / "schema.json").read_text())) == set(json.loads(schema))
            (folder / "schema.json").write_text(schema, encoding="utf-8")
    return folder, printed


def test_the_page_of_tables_goes_from_the_file_to_predictions(visits):
    folder, printed = visits
    page = (ROOT / "minidp/fitting/README.md").read_text(encoding="utf-8")
    drafted = [line.strip() for line in printed[OF_THE_TABLE[0]].splitlines()]
    assert drafted and all(f"    {line}\n" in page for line in drafted)
    assert "private model 2 classes: no, yes" in printed[OF_THE_TABLE[1]]
    rows = (folder / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 10 and {*rows[1:]} <= {"no", "yes"}
    assert "0 mismatches" in printed[OF_THE_TABLE[3]]


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_the_audit_writes_its_pages(command, visits):
    run(command.replace("runs/mine", "runs/visits"), visits[0])
    if "--html" in command:
        page = (visits[0] / command.split()[-1]).read_text(encoding="utf-8")
        assert "Algorithm 1" in page
