"""Several ranks are one run: the same weights, the noise of one process, and an end for all when
one is gone.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from minidp import ranks
from minidp.backend import to_host
from minidp.data import LabelledExamples, examples
from minidp.errors import ParameterError, RanksError
from minidp.mechanism import Sanitizer, flat_group
from minidp.privacy import Ledger
from minidp.streams import Streams
from tests.support import on_ranks
from tests.support.guarded import guarded_backend
from tests.support.running import weights
from tests.support.scripts import MPIEXEC, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="mpich has no wheel for Windows")


def start(size, *what):
    """`mpiexec -n size python on_ranks.py WHAT FOLDER`."""
    return subprocess.Popen(
        [MPIEXEC, "-n", str(size), sys.executable, on_ranks.__file__, *map(str, what)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(
    scope="module",
    params=[3, pytest.param(4, marks=pytest.mark.slow)],  # of 4 ranks, one has no examples
)
def found(request, tmp_path_factory):
    """(number of ranks, the folder that rank 0 wrote into, its arrays)."""
    folder = tmp_path_factory.mktemp("ranks")
    process = start(request.param, "cases", folder)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return request.param, folder, dict(np.load(folder / "found.npz"))


def test_any_number_of_ranks_releases_what_one_process_does(found):
    alone, arrays = on_ranks.cases(), found[2]
    assert {*alone, "noise", "ledger"} == arrays.keys()
    for case, expected in alone.items():
        np.testing.assert_allclose(arrays[case], expected, rtol=0, atol=2e-6, err_msg=case)
    assert (alone["nearly empty"][:-1] != 0).all() and "mpi4py" not in sys.modules


def test_noise_has_the_variance_of_one_process_and_is_drawn_once_for_each_number(found):
    variance, fewest, most = found[2]["noise"]
    assert abs(variance - 1) < 5 * (2 / 2_000_000) ** 0.5 and fewest == most == 1


def test_the_ledger_is_on_disk_before_any_rank_draws_and_rank_0_alone_writes(found):
    size, folder, arrays = found
    assert arrays["ledger"][:2].tolist() == [size, 10]
    assert json.loads((folder / "run" / "result.json").read_text())["ranks"] == size


@pytest.mark.parametrize(
    "how, line",
    [
        ("raise", "rank 1 of 2 ends the run: error: a disk of this rank"),
        pytest.param(
            "fault",
            "rank 1 of 2 ends the run: ZeroDivisionError: of this rank",
            marks=pytest.mark.slow,
        ),
        ("all", "error: not one lot fits"),
    ],
)
def test_a_rank_that_fails_ends_the_run_with_one_line(how, line, tmp_path):
    began, process = time.monotonic(), start(2, how, tmp_path)
    out, err = process.communicate(timeout=60)
    own = [
        each for each in (out + err).splitlines() if each.startswith(("rank", "error", "Traceback"))
    ]
    assert process.returncode and time.monotonic() - began < 30
    assert len(own) == 1 and own[0].startswith(line), err


@pytest.mark.parametrize(
    "kills, steps", [(2, 4000), pytest.param(20, 60_000, marks=pytest.mark.slow)]
)
def test_ranks_killed_at_random_lose_nothing(kills, steps, tmp_path):
    """A seeded run ends with the same weights, on 2, 3 and 1 ranks."""
    (tmp_path / "whole").mkdir()
    on_ranks.long_run(tmp_path / "whole", steps)
    chance, charged, run = random.Random(5), 0, tmp_path / "run"
    for kill in range(kills):
        size, victim = 2 + kill % 2, tmp_path / f"rank{chance.randrange(2)}"
        victim.unlink(missing_ok=True)
        process = start(size, "long", tmp_path, steps)
        while not victim.exists():
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(chance.uniform(0, 0.5))
        os.kill(int(victim.read_text()), signal.SIGKILL)
        began = time.monotonic()
        process.communicate(timeout=60)
        assert time.monotonic() - began < 30
        if (run / "ledger.json").exists():
            before, charged = charged, Ledger.load(run / "ledger.json").count_of("step")
            assert charged >= before
    assert charged < steps  # every kill came in the middle
    process = start(1, "long", tmp_path, steps)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    whole = tmp_path / "whole" / "run"
    assert (run / "ledger.json").read_bytes() == (whole / "ledger.json").read_bytes()
    expected, got = map(weights, (whole, run))
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_processes_of_a_launcher_that_cannot_be_joined_are_refused(monkeypatch):
    monkeypatch.setattr(ranks, "_current", None)
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        ParameterError, match="one of 2 processes .* mpi4py cannot be imported.*MINIDP_RANKS=solo"
    ):
        ranks.current()
    monkeypatch.setenv("MINIDP_RANKS", "solo")
    assert ranks.current() is ranks.SOLO


def test_processes_of_torchrun_are_refused_before_a_second_release(monkeypatch):
    monkeypatch.setattr(ranks, "_current", None)
    for key in ranks.LAUNCHED:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ranks.current() is ranks.SOLO  # a size alone is any program's
    monkeypatch.setattr(ranks, "_current", None)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ParameterError, match="one of 2 processes .*torchrun.*MINIDP_RANKS=solo"):
        ranks.current()
    monkeypatch.setenv("MINIDP_RANKS", "solo")
    assert ranks.current() is ranks.SOLO


@pytest.mark.parametrize("name, value", [("PMI_SIZE", "abc"), ("OMPI_COMM_WORLD_SIZE", "0")])
def test_a_number_of_processes_that_is_none_is_refused(name, value, monkeypatch):
    monkeypatch.setattr(ranks, "_current", None)
    for key in ranks.LAUNCHED:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(ParameterError, match=f"{name}='{value}' in the environment: expected"):
        ranks.current()


class Two(ranks.Solo):
    """Rank 0 of two, of which the other has the values `other`, and nothing to add."""

    size = 2

    def __init__(self, *other):
        self.collect = lambda value, other=iter(other): [value, next(other, value)]

    def scatter_sum(self, flat):
        return flat[: len(flat) // 2]

    def gather(self, part):
        return np.concatenate([part, 0 * part])


def test_ranks_that_hold_other_rows_are_refused():
    x, units, shapes = np.zeros((6, 2)), ("row", 1, 6), [(6, 2)] * 2
    for other, what in [
        ([("person", 2, 6)], "units, rows_per_person or views"),
        ([units, [(4, 2)] * 2], "shapes of the examples"),
        ([units, shapes, []], "examples"),
    ]:
        with pytest.raises(RanksError, match=f"the {what} differ between rank 0 and rank 1"):
            LabelledExamples(x, x).check_shared(Two(*other))


class Recorder(Two):
    """Rank 0 of two that hold the same, which keeps what it says to the other."""

    def __init__(self):
        self.said = []

    def collect(self, value):
        self.said.append(value)
        return [value, value]


class Drawn:
    """Rows computed on demand, row i being i plus a first number; counts the rows asked for."""

    xp, ndim = np, 2

    def __init__(self, size, first=0.0):
        self.shape, self.first, self.asked, self.largest = (size, 2), first, 0, 0

    def take(self, indices, axis=0):
        self.asked += len(indices)
        self.largest = max(self.largest, len(indices))
        return np.repeat(indices[:, None] + self.first, 2, axis=1).astype("float32")

    def __getitem__(self, span):
        return self.take(np.arange(span.start, min(span.stop, self.shape[0])))


def in_order(rows, path):
    np.save(path, rows)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize(
    "held",
    [in_order, lambda rows, path: Drawn(len(rows), float(rows[0, 0]))],
    ids=["memory map", "examples"],
)
def test_ranks_whose_rows_are_in_another_order_are_refused_whatever_holds_them(held, tmp_path):
    rows, labels = np.arange(12, dtype="float32").reshape(6, 2), np.zeros(6, int)
    same, other = (
        LabelledExamples(held(each, tmp_path / f"{name}.npy"), labels)
        for name, each in (("same", rows), ("other", rows[::-1]))
    )
    recorder = Recorder()
    other.check_shared(recorder)
    with pytest.raises(RanksError, match="the examples differ between rank 0 and rank 1"):
        same.check_shared(Two(*recorder.said))
    same.check_shared(recorder)


def test_of_rows_above_the_limit_evenly_spread_ones_are_compared_in_parts(monkeypatch):
    size, row_bytes = 10_000, 8
    labels = np.zeros(size, "int8")
    for limit, at_least, at_most in (
        (size * row_bytes, size, size + 1),
        (1000 * row_bytes, 1000, 1002),
    ):
        monkeypatch.setattr(examples, "COMPARED", limit)
        monkeypatch.setattr(examples, "AT_ONCE", 50 * row_bytes)
        rows = Drawn(size)
        LabelledExamples(rows, labels).check_shared(Recorder())
        assert at_least <= rows.asked <= at_most and rows.largest <= 50


def test_sums_on_a_device_are_released_through_the_host():
    backend, keys = guarded_backend(), [("a", "W"), ("b", "W")]
    sums = {key: np.arange(6.0).reshape(shape) for key, shape in zip(keys, [(2, 3), (6,)])}
    sanitizer = Sanitizer(flat_group(sums, 1.0, 2.0))
    alone = sanitizer.release({key: raw.copy() for key, raw in sums.items()}, Streams(1).noise(0))
    found = sanitizer.release(
        {key: backend.asarray(raw) for key, raw in sums.items()},
        Streams(1).noise(0),
        (),
        1.0,
        None,
        Two(),
    )
    assert (to_host(found[keys[0]]) == alone[keys[0]]).all() and (
        to_host(found[keys[1]]) == 0
    ).all()
