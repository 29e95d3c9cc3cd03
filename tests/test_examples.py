"""The examples in docstrings and pages run, and give what they say."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import minidp
from tests.support.scripts import ROOT

MODULES = [
    found.name
    for found in pkgutil.walk_packages(minidp.__path__, "minidp.")
    if not found.name.startswith(("minidp.audit", "minidp.commands", "minidp.__main__"))
] + ["minidp.audit.layer_tests", "minidp.steptest.step"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where examples write
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0 and (tried > 0) == (">>>" in inspect.getsource(module))


PAGES = (
    "README.md",
    "minidp/README.md",
    "minidp/fitting/README.md",
    "minidp/nn/README.md",
    "minidp/privacy/README.md",
    "minidp/run/README.md",
)


def examples(text):
    """(line, code) of each ```python block."""
    return [
        (text[: match.start()].count("\n") + 1, match[1])
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


BLOCKS = [
    (f"{page}, line {line}", code)
    for page in PAGES
    if (ROOT / page).is_file()
    for line, code in examples((ROOT / page).read_text(encoding="utf-8"))
]


def test_the_examples_of_all_pages_run():
    pages = {
        path.relative_to(ROOT).as_posix()
        for folder in (".github", "experiments", "minidp", "tools")
        for path in (ROOT / folder).rglob("*.md")
        if examples(path.read_text(encoding="utf-8"))
    }
    assert {*PAGES} == {"README.md", *pages}


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[where for where, _ in BLOCKS])
def test_example_runs(code, tmp_path):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_the_first_example_prints_what_the_readme_shows(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (_, code), *_ = examples(text)
    shown = [line[4:] for line in text.partition("prints this")[2].split("\n\n")[1].split("\n")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = (done.stdout + done.stderr).splitlines()

    def without_results(lines):
        return [re.sub(r"\d+\.\d+(?=%)|\d\.\d{4}(?=;)", "N", line) for line in lines]

    start = without_results(printed).index(without_results(shown)[0])
    assert without_results(printed)[start : start + len(shown)] == without_results(shown)


@pytest.mark.parametrize("page", sorted(ROOT.glob("**/README.md")), ids=str)
def test_pages_are_short(page):
    if not {".venv", "runs", "shared"} & {*page.parts}:
        limit = 100 if page.parent == ROOT else 200
        assert len(page.read_text(encoding="utf-8").splitlines()) <= limit
