"""What it takes to add something: each of these is added to a copy of the library in the files that
CONTRIBUTING names, and then does there what a newcomer expects of it.
"""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support import additions
from tests.support.scripts import ROOT, environment
from tools import check_imports

# the files of each, and of a line that a list or a page has to have
ADDED = {
    "sampler": (additions.SAMPLER, 2, 0),
    "optimizer": (additions.OPTIMIZER, 2, 0),
    "layer": (additions.LAYER, 1, 1),
    "command": (additions.COMMAND, 1, 1),
    "accountant": (additions.ACCOUNTANT, 2, 2),
}
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "results", "pretrained")


def add(folder, edits):
    """Make the edits of a folder's files; each place to edit is there once."""
    for name, edit in edits.items():
        path = folder / name
        if isinstance(edit, str):
            assert not path.exists()
            path.write_text(edit, encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        for there, instead in edit:
            assert text.count(there) == 1, (name, there)
            text = text.replace(there, instead)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the library, its tests and tools, to which everything was added."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("minidp", "tests", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, folder / name)
    for edits, _, _ in ADDED.values():
        add(folder, edits)
    return folder


@pytest.fixture
def run(copy):
    """Run Python on the copy; returns what it prints."""
    # kernels are cached by their file's path: those of the copy would be compiled
    named = {**environment(), "PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1"}

    def run(*words):
        done = subprocess.run(
            [sys.executable, *words], cwd=copy, env=named, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("kind", ADDED)
def test_it_takes_few_files(kind):
    """Files to write in, and lines in others."""
    edits, files, lines = ADDED[kind]
    lists = (".pyi", ".md", "commands/__init__.py")
    in_lists = [path for path in edits if path.endswith(lists)]
    assert (len(edits) - len(in_lists), len(in_lists)) == (files, lines)
    assert all(len(edits[path]) == 1 for path in in_lists)


def test_imports_point_downward(copy, capsys):
    assert check_imports.main(copy) == 0, capsys.readouterr().out


def test_cards_have_their_lines_and_checks(run):
    assert "check_cards: " in run("-m", "tools.check_cards")


# what the structure and the shared tests ask of each
ASKED = {
    "tests/test_structure.py": "annotated or page_lists or decides or loads or too_long",
    "tests/core/test_plan.py tests/commands/test_accounting.py": "cyclic",
    "tests/core/test_descent.py": "rmsprop",
    "tests/nn/test_layers.py tests/run/test_model.py": "scale",
    "tests/commands/test_commands.py": "lots",
    "tests/privacy/test_names.py tests/core/test_accountant.py": "concentrated",
}


@pytest.mark.slow
@pytest.mark.parametrize("files", ASKED)
def test_the_shared_tests_run_over_it(files, run):
    words = "-m pytest -q -p no:cacheprovider -k".split()
    assert " passed" in run(*words, ASKED[files], *files.split())


AUDITED = """
from minidp.__main__ import main
for card in "CyclicSampler RMSprop Scale ConcentratedAccountant".split():
    assert main(["audit", "--card", card]) == 0
"""


@pytest.mark.slow
def test_the_audit_measures_its_equations(run):
    assert run("-c", AUDITED).count("\ncards ") == 4


TYPED = """
from minidp import mechanism, nn, privacy, train

reveal_type(mechanism.CyclicSampler(3, 2).period)
reveal_type(train.RMSprop(0.1).decay)
reveal_type(nn.Scale(3).factor)
reveal_type(privacy.ConcentratedAccountant().name)
"""


@pytest.mark.slow
def test_a_type_checker_knows_it(copy, run):
    pytest.importorskip("mypy")
    (copy / "typed.py").write_text(TYPED)
    said = run("-m", "mypy", "--follow-imports=silent", "typed.py")
    types = [line.partition('"')[2].partition('"')[0] for line in said.splitlines()]
    assert types[:4] == ["int", "float", "float", "str"]


TRAINED = """
import json, sys
import numpy as np
from minidp import load_model, mechanism, nn, privacy, train
from minidp.mechanism import Plan, Sanitizer, flat_group
from minidp.run import Privacy, Run, Training
from minidp.streams import Streams

streams = Streams(1)
layers = [nn.Scale(5, 2.0), nn.Dense(5, 2, rng=streams.init)]
network = nn.Sequential(layers, (5,))
groups = flat_group(network.params, clip_norm=1.0, noise_multiplier=1.0)
plan = Plan(mechanism.CyclicSampler(60, 20), Sanitizer(groups), steps=6, expected_lot_size=20)
accountant = privacy.ConcentratedAccountant(plan.relation)
budget = privacy.Filter(accountant, epsilon=100.0, delta=1e-5)
training = Training(network, nn.SoftmaxCrossEntropy(), train.RMSprop(0.01), streams)
x = np.random.default_rng(0).normal(size=(80, 5)).astype("float32")
y = (x[:, 0] > 0).astype(int)
run = Run(sys.argv[1], training, Privacy(plan, budget))
run.train(x[:60], y[:60], x[60:], y[60:])
model = load_model(sys.argv[1] + "/model.npz")
layer = model.network.layers[0]
print(json.dumps([type(layer).__name__, layer.factor, len(model.predict(x))]))
"""


def test_it_trains_is_charged_and_is_read_again(run, tmp_path):
    said = run("-c", TRAINED, str(tmp_path / "run"))
    assert json.loads(said.splitlines()[-1]) == ["Scale", 2.0, 80]
    charged = json.loads((tmp_path / "run/ledger.json").read_text(encoding="utf-8"))
    assert sum(entry["count"] for entry in charged["entries"]) == 2  # epochs
    result = json.loads((tmp_path / "run/result.json").read_text(encoding="utf-8"))
    assert result["sampler"] == "CyclicSampler" and result["epsilon"]["concentrated"]["upper"] > 0


def test_the_commands_know_it(run):
    flags = "--noise-multiplier 40 --dataset-size 100 --lot-size 30 --epochs 2 --sampler cyclic"
    said = run("-m", "minidp", "epsilon", *flags.split(), "--delta", "1e-5")
    assert "zcdp" in said and "zero-concentrated" in said
    said = " ".join(run("-m", "minidp", "epsilon", "--help").split())
    assert "cyclic: runs of the rows in their order" in said and ",zcdp," in said
    words = "-m minidp lots --dataset-size 100 --lot-size 30".split()
    assert run(*words) == "4 lots in a pass\n"
    assert "count the lots" in run("-m", "minidp", "--help")
