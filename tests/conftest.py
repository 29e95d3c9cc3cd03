"""What all tests share: backends, seeds, real data, and no trace left outside temporary
directories.
"""

import os
import shutil
import tempfile
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib, and for every subprocess
# before NumPy loads: threads that wait for each other cost time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

from minidp.host import jit
from minidp.run import plotting

pytest.register_assert_rewrite("tests.support")

from tests.support.fixtures import backend, rng  # noqa: F401

hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_configure(config):
    jit.once.told = True  # which test is the first to compile is chance
    config.minidp_cache = None
    if "MINIDP_CACHE" not in os.environ:
        config.minidp_cache = os.environ["MINIDP_CACHE"] = tempfile.mkdtemp(
            prefix="minidp-test-cache-"
        )


def pytest_unconfigure(config):
    if config.minidp_cache:
        del os.environ["MINIDP_CACHE"]
        shutil.rmtree(config.minidp_cache, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before -m selects, so that -m real_data finds the mark
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "mnist_dir" in item.fixturenames:
            item.add_marker("real_data")
    if not config.getoption("--slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def mnist_dir():
    """The folder $MINIDP_DATA, which holds the MNIST files or a folder `mnist` with them."""
    folder = os.environ.get("MINIDP_DATA")
    if not folder:
        pytest.skip("REAL DATA MISSING: set MINIDP_DATA to a folder that holds the MNIST files")
    name = "train-images-idx3-ubyte"
    if not any(
        Path(folder, part, file).is_file()
        for part in ("mnist", "")
        for file in (name, name + ".gz")
    ):
        pytest.skip(f"REAL DATA MISSING: no MNIST files in MINIDP_DATA={folder}")
    return Path(folder)


def pytest_terminal_summary(terminalreporter):
    # deselected: none
    reports = [
        report
        for group in terminalreporter.stats.values()
        for report in group
        if hasattr(report, "when")
    ]
    for mark, missing in (
        ("real_data", "REAL DATA MISSING: {} tests skipped, set MINIDP_DATA"),
        ("cupy", "CUPY MISSING: {} tests skipped, pip install cupy-cuda12x; they need no GPU"),
        ("ptxas", "PTXAS MISSING: {} tests skipped, pip install nvidia-cuda-nvcc-cu12"),
    ):
        marked = [report for report in reports if mark in getattr(report, "keywords", ())]
        if skipped := sum(report.outcome == "skipped" for report in marked):
            terminalreporter.write_line(missing.format(skipped), red=True, bold=True)
        if mark == "real_data":
            ran = sum(report.when == "call" and report.outcome != "skipped" for report in marked)
            terminalreporter.write_line(f"real data: {ran} tests ran on real MNIST")


@pytest.fixture
def drawn(monkeypatch):
    """The figures saved during the test."""
    figures, save = [], plotting.save

    def checked(figure, target):
        save(figure, target)
        figures.append(figure)

    monkeypatch.setattr(plotting, "save", checked)
    return figures
