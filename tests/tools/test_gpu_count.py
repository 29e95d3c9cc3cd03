"""What a step asks of a device is counted, and stays within its limits."""

import json

import numpy as np
import pytest

from minidp import nn
from minidp.backend import Backend, synchronise, to_host
from minidp.data import LabelledExamples
from tests.support import guarded, launches, shim
from tools.bench.workloads import WORKLOADS
from tools.gpu import count

xp = guarded.guarded_xp


def arrays():
    rng = np.random.default_rng(0)
    return [
        xp.asarray(rng.uniform(1, 2, shape).astype(np.float32))
        for shape in ((6, 4), (6, 3), (6, 4, 3))
    ]


RULES = {  # what is asked, launches, bytes read and written: by CuPy's source
    "ufunc": (lambda a, d, g: a * 2 + 1, 2, 192, 192),
    "in place": (lambda a, d, g: a.__iadd__(1), 1, 96, 96),
    "a row repeated": (lambda a, d, g: a + a[:1], 1, 112, 96),
    "view": (
        lambda a, d, g: (
            a.T,
            a[1:3],
            a.reshape((2, 3, 4)),
            xp.broadcast_to(a[:1], (6, 4)),
            xp.asarray(a),
        ),
        0,
        0,
        0,
    ),
    "reshape that copies": (lambda a, d, g: a.T.reshape((24,)), 1, 96, 96),
    "astype": (lambda a, d, g: (a.astype("float64"), a.astype("float32", copy=False)), 1, 96, 192),
    "reduction": (lambda a, d, g: a.sum(axis=1), 1, 96, 24),
    "memory": (lambda a, d, g: (xp.empty((6,)), xp.zeros((6,))), 1, 0, 48),
    "concatenate": (lambda a, d, g: xp.concatenate([a, d], axis=1), 2, 168, 168),
    "take": (lambda a, d, g: a.take(xp.asarray([0, 5]), axis=0), 1, 48, 32),
    "assign": (lambda a, d, g: a.__setitem__(slice(2), 0.0), 1, 0, 32),
    "assign in place": (lambda a, d, g: exec("a[:2] += 1", {"a": a}), 1, 32, 32),
    "where": (lambda a, d, g: xp.where(a > 1, a, 0), 2, 96 + 24 + 96, 24 + 96),
    "matmul, transposed": (lambda a, d, g: a.T @ d, 1, 168, 48),
    "matmul, of two dtypes": (
        lambda a, d, g: a.T @ d.astype("float64"),
        3,
        72 + 96 + 96 + 144,
        144 + 192 + 96,
    ),
    "matmul, cut from a row": (lambda a, d, g: a[:, :3].T @ d, 2, 72 + 72 + 72, 72 + 36),
    "matmul of each example": (lambda a, d, g: g.transpose(0, 2, 1) @ g, 2, 288 * 3, 288 + 216),
    "einsum, outer": (lambda a, d, g: xp.einsum("bi,bo->bio", a, d), 1, 168, 288),
    "einsum, squares": (lambda a, d, g: xp.einsum("...p,...p->...", g, g), 1, 576, 96),
}


@pytest.mark.parametrize("use, kernels, read, written", RULES.values(), ids=RULES)
def test_rules(use, kernels, read, written):
    given = arrays()
    with launches.counting() as found:
        use(*given)
    assert (found.launches.total(), found.read, found.written) == (kernels, read, written)


def test_copies_waits_and_products():
    with launches.counting() as found:
        x = Backend("guarded", xp).asarray(np.ones((5, 4)))
        xp.matmul(x.T, x)
        to_host(x[:2])
        synchronise(xp)
        with guarded.allow_sync():
            float(x[0, 0])
    assert (found.to_device, found.to_host, found.waits, dict(found.operations)) == (
        [160],
        [64, 8],
        3,
        {"float64": 160},
    )


def test_a_lot_in_several_batches_of_views_with_weights_is_one_copy():
    data = np.arange(40.0).reshape(20, 2), np.arange(20), np.linspace(0, 1, 20)
    lot, there = np.array([3, 4, 9, 11, 19]), [xp.asarray(each) for each in data]
    with launches.counting() as found:
        batches = list(LabelledExamples(*there[:2], 2, there[2]).batches(lot, 2))
    assert found.to_device == [80] and found.to_host == []
    for ours, plain in zip(
        batches, LabelledExamples(*data[:2], 2, data[2]).batches(lot, 2), strict=True
    ):
        assert all(np.array_equal(to_host(one), other) for one, other in zip(ours, plain))


LIMITS = {  # (workload, gradients): launches of a step, those that were reached
    ("W1", "factored"): 20,
    ("W2", "factored"): 20,
    ("W3", "factored"): 29,
    ("W4", "factored"): 59,
    ("W5", "factored"): 53,
    ("W1", "explicit"): 18,
    ("W4", "auto"): 50,
    ("W5", "auto"): 44,
    ("W1", "exact"): 222,
    ("W5", "exact"): 570,
}


def faults(step):
    """What a counted step does more of than it may: the lot's indices go to the device, nothing
    comes back, nobody waits.
    """
    most = {
        "launches": LIMITS[step["workload"], step["gradients"]],
        "copies_to_device": 1,
        "copies_to_host": 0,
        "waits": 0,
        "memory_asked": 0,
        "bytes_to_device": 8 * step["lot"],
    }
    return [name for name, limit in most.items() if step[name] > limit]


pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernels that are counted were not executed"
)


@pytest.mark.parametrize("workload, gradients", LIMITS)
def test_a_step_stays_within_its_limits(workload, gradients):
    step = count.counted(WORKLOADS[workload].small(), gradients)
    assert faults(step) == [] and step["launches"] == sum(step["names"].values())
    assert (
        step["bytes_read"] > 4 * step["lot"] * WORKLOADS[workload].layers[0][1]
        and step["seconds"]["step"] > 0
    )


def test_launches_do_not_depend_on_the_lot():
    assert [faults(count.counted("W1", gradients)) for gradients in ("factored", "explicit")] == [
        [],
        [],
    ]


MUTANTS = {
    "a launch": (lambda x: x + 0, ["launches"]),
    "a copy back": (to_host, ["copies_to_host", "waits"]),
    "a copy to the device": (
        lambda x: xp.asarray(np.zeros(1)),
        ["copies_to_device", "bytes_to_device"],
    ),
    "a wait": (lambda x: synchronise(xp), ["waits"]),
    "a question": (lambda x: xp.cuda.runtime.memGetInfo(), ["memory_asked"]),
}


@pytest.mark.parametrize("mutant, found", MUTANTS.values(), ids=MUTANTS)
def test_what_is_too_much_is_found(mutant, found, monkeypatch):
    forward = nn.Dense.compute_y
    monkeypatch.setattr(
        nn.Dense, "compute_y", lambda self, x, rng: (mutant(x), forward(self, x, rng))[1]
    )
    assert faults(count.counted("W1", "factored")) == found


def test_the_model_is_the_sum_of_what_each_part_costs(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(count, "WORKLOADS", {"W1": WORKLOADS["W1"]})
    monkeypatch.setattr(count, "STRATEGIES", ["exact"])
    assert count.main(["--json", str(tmp_path / "out.json")]) == 0
    assert "predicted, not measured:" in capsys.readouterr().out
    found = json.loads((tmp_path / "out.json").read_text())
    (step,), seconds = found["steps"], found["steps"][0]["seconds"]
    assert seconds["launches"] == 4e-6 * step["launches"] and found["measured"] is False
    assert seconds["step"] == pytest.approx(
        sum(value for name, value in seconds.items() if name != "step")
    )
    assert step["operations_float32"] + step["operations_float64"] >= 2 * 600 * (
        2 * 70_000 + 10_000
    )  # forward, sums; dx
