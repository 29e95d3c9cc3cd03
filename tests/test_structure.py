"""The project's structure: imports point downward and load nothing heavy, equations have their code
and checks.
"""

import ast
import configparser
import importlib
import inspect
import pkgutil
import re
import shutil
from pathlib import Path

import pytest

import minidp
from minidp.audit import checks
from minidp.privacy.accountants import called, every
from tests.support.scripts import ROOT, python
from tools import check_cards, check_imports

INTERNAL = (
    "minidp.__main__",
    "minidp.arrays",
    "minidp.audit.",
    "minidp.backend",
    "minidp.certified.",
    "minidp.commands.",
    "minidp.fast.",
    "minidp.fitting.rows",
    "minidp.grads",
    "minidp.host.",
    "minidp.fitting.pieces_kernel",
    "minidp.layers.recurrent_kernel",
    "minidp.mpi.",
    "minidp.nn.window",
    "minidp.privacy.moment_kernels",
    "minidp.ranks",
    "minidp.run.curves",
    "minidp.run.figures",
    "minidp.run.folder",
    "minidp.run.progress",
    "minidp.run.run",
    "minidp.run.statement",
    "minidp.run.summary",
    "minidp.run.versions",
    "minidp.steptest.",
    "minidp.train.crowd",
    "minidp.train.selfcheck",
    "minidp.train.tried",
    "minidp.audit.trial",
)
MODULES = [
    found.name
    for found in pkgutil.walk_packages(minidp.__path__, "minidp.")
    if not found.ispkg and not found.name.startswith(INTERNAL)
]


def unannotated(module):
    """Names of the public functions and methods that a module defines which lack the type of a
    parameter, or of what they return; not of those that override another.
    """
    found = []
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        for method, made in (vars(value) if inspect.isclass(value) else {name: value}).items():
            function = inspect.unwrap(getattr(made, "fget", getattr(made, "__func__", made)))
            bases = value.__mro__[1:-1] if inspect.isclass(value) else ()
            if (
                getattr(function, "__module__", "") != module.__name__
                or not inspect.isfunction(function)
                or method.startswith("_")
                and method not in ("__init__", "__call__")
                or any(method in vars(base) for base in bases)
            ):
                continue
            needed = {*inspect.signature(function).parameters} - {"self", "cls"}
            if method != "__init__":
                needed.add("return")
            if needed - {*function.__annotations__}:
                found.append(f"{name}.{method}")
    return found


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_annotated(name):
    assert unannotated(importlib.import_module(name)) == []


def test_imports_point_downward(capsys):
    assert check_imports.main(ROOT) == 0, capsys.readouterr().out


CARRIERS = check_imports.carriers(ROOT / "minidp")
# where a lot is drawn, released and charged; the trainer, which calls them, imports nearly all else
ROOTS = {"mechanism/plan.py", "mechanism/pca.py", "fitting/mean.py", "fitting/column_look.py"}
ROOTS |= {"fast/at_once.py", "fast/flat_sums.py", "mpi/exchange.py"}  # offered to the core
ROOTS |= {"privacy/budget.py", "privacy/accountants.py", "run/folder.py", "run/shared_ledger.py"}
EXCUSED = {  # file: why a fault in it does not make a quoted epsilon false
    "backend.py": "where arrays live, and how much memory to use",
    "compiled.py": "gives compiled twins, each of which tests compare with its definition",
    "fast/device/__init__.py": "twins of a GPU, each compared with its definition before a charge",
    "fast/device/launching.py": "how those twins are started",
    "host/blas.py": "how many threads BLAS uses",
    "host/threads.py": "which part is computed first; each number is a function of its place",
    "privacy/calibrate.py": "proposes noise or steps, whose events are charged like others",
    "run/checkpoint.py": "named beside the list: where a run goes on, never above its charges",
    "util/lazy.py": "loads names on first use; a ring that is not there offers nothing",
    "util/notices.py": "lines on stderr",
    "util/words.py": "what an unknown keyword is answered, which is refused either way",
}


def bounds():
    """{name: the file of its class} of the accountants whose figure may be quoted."""
    return {
        each.name: Path(inspect.getfile(each)).relative_to(ROOT / "minidp").as_posix()
        for each in every()
        if each.kind == "bound"
    }


def unlisted(root=ROOT):
    """The files on the path from a release to a quoted epsilon that are neither listed nor
    excused.
    """
    listed = {file for files in CARRIERS.values() for file in files}
    roots = ROOTS | {*bounds().values()}
    return sorted(check_imports.reached(root / "minidp", roots, EXCUSED) - listed)


def test_the_page_lists_what_carries_the_guarantee():
    listed = [file for files in CARRIERS.values() for file in files]
    assert unlisted() == [] and len(listed) == len({*listed})
    assert all((ROOT / "minidp" / file).is_file() for file in [*listed, *EXCUSED])
    assert not {*EXCUSED} & {*listed}
    assert {*EXCUSED} <= check_imports.reached(ROOT / "minidp", ROOTS | {*listed})


@pytest.mark.parametrize("name", bounds())
def test_what_decides_an_accountants_figure_is_listed_by_the_end_of_its_section(name):
    listed = set()
    for title, files in CARRIERS.items():
        listed.update(files)
        if f"`{called(name)}`" in title:
            break
    else:
        pytest.fail(f"no section of {name}")
    reached = check_imports.reached(ROOT / "minidp", [bounds()[name]], EXCUSED)
    assert reached <= listed


@pytest.mark.parametrize(
    "line, target",
    [
        ("def f():\n    from .sklearn import parameters", "sklearn.py"),
        ("from . import sklearn", "sklearn.py"),
        ("import minidp.sklearn", "sklearn.py"),
        ("if TYPE_CHECKING:\n    from . import sklearn", None),
        ("if not TYPE_CHECKING:\n    from . import sklearn", "sklearn.py"),
        ("__import__('minidp.sklearn')", "sklearn.py"),
    ],
)
def test_an_import_of_a_file_that_is_not_listed_is_found(line, target, tmp_path):
    copied = shutil.copytree(
        ROOT / "minidp", tmp_path / "minidp", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (copied / "streams.py").open("a") as file:
        file.write(line)
    assert (target in unlisted(tmp_path)) == (target is not None)


MOST_LINES, MOST_COLUMNS, MOST_STATED, MOST_PARAMETERS = 400, 100, 50, 10


def too_long(path):
    """What is too long in a file: itself, lines, functions by their lines of code, or by parameters
    that have a position, constructors excepted.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [f"{len(lines)} lines"] if len(lines) > MOST_LINES else []
    found += [f"line {n}" for n, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS]
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not isinstance(node, ast.FunctionDef) or node.name == "__init__":
            continue
        body = node.body[1:] if ast.get_docstring(node) else node.body
        code = lines[body[0].lineno - 1 : node.end_lineno] if body else []
        if len([line for line in code if line.strip(" )").partition("#")[0]]) > MOST_STATED:
            found.append(f"{node.name}: {len(code)} lines of code")
        if len(node.args.posonlyargs + node.args.args) > MOST_PARAMETERS:
            found.append(f"{node.name}: its parameters")
    return found


def test_no_file_function_or_line_is_too_long():
    paths = [
        path for part in check_imports.OUTSIDE | {"minidp"} for path in (ROOT / part).rglob("*.py")
    ]
    found = {path.relative_to(ROOT).as_posix(): too_long(path) for path in paths}
    assert len(found) > 300 and {path: each for path, each in found.items() if each} == {}


def test_comments_stand_above_what_they_explain():
    """Behind a line of closing brackets only labels stand, which belong to the line before."""
    behind = re.compile(r"^[ ]*[])}]+:?[ ]+#(?! (\[[A-Z]\d+\] ?)+$| fmt: skip$)", re.MULTILINE)
    paths = [
        path for part in ("minidp", "tools", "experiments") for path in (ROOT / part).rglob("*.py")
    ]
    found = [path.name for path in paths if behind.search(path.read_text(encoding="utf-8"))]
    assert len(paths) > 200 and found == []


def test_every_equation_has_its_code_and_its_check(capsys):
    assert check_cards.main(ROOT, checks.load()) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "module, heavy",
    [
        ("minidp", ("numba", "scipy", "matplotlib", "cupy", "tqdm")),
        ("minidp.run", ("common", "matplotlib", "tqdm")),
        ("minidp.fitting.fit", ("sklearn", "matplotlib", "cupy")),
        ("minidp.run.plotting", ("matplotlib",)),
    ],
)
def test_importing_loads_no_library_before_it_is_used(module, heavy):
    script = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = python("-c", script, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


PROJECT = configparser.ConfigParser()
PROJECT.read(ROOT / "setup.cfg", encoding="utf-8")
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in (".", ".github", "experiments", "minidp", "minidp/*", "tools")
    for page in ROOT.glob(f"{folder}/*.md")
)


def links(text):
    """The targets of a page's links, without what stands in code."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "`", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r"^\[[^]]+\]: (\S+)", text, re.MULTILINE
    )


def anchors(text):
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def dead(page, text):
    """The links of a page that lead nowhere in a checkout, or to an address of the project."""
    found = []
    for target in links(text):
        if target.startswith("https://"):
            lost = re.search(r"/minidp(/|$)", target)
        else:
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            lost = not file.exists() or (
                anchor and anchor not in anchors(file.read_text(encoding="utf-8"))
            )
        if lost:
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_in_a_checkout(page):
    assert dead(page, (ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_a_page_names_are_there(page):
    file = ""
    for path, name in re.findall(
        r"`(tests/\S+\.py::)?(test_\w+)`", (ROOT / page).read_text(encoding="utf-8")
    ):
        file = path.removesuffix("::") or file
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["metadata"]["version"] == minidp.__version__
    assert f"\nversion: {minidp.__version__}\n" in citation


FACES = "audit data host mechanism nn privacy run train".split()


@pytest.mark.parametrize("package", ["minidp", *(f"minidp.{name}" for name in FACES)])
def test_every_name_that_loads_on_first_use_is_there(package):
    found = importlib.import_module(package)
    assert found.__all__ and len(found.__all__) == len({*found.__all__})
    assert all(getattr(found, name) is not None for name in found.__all__)
    stub = ast.parse(Path(found.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    aliases = [alias for node in stub.body for alias in getattr(node, "names", ())]
    named = {alias.asname for alias in aliases if alias.name != "*"}
    assert named and named <= {*found.__all__}
