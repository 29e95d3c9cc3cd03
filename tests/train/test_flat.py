"""On a device, training with all parameters in one array gives the bits of one by one."""

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from minidp.fast import flat
from minidp.fast.flat_sums import FlatSums
from minidp.grads import Explicit
from minidp.mechanism import Sanitizer, flat_group, per_layer_groups
from minidp.streams import Streams
from minidp.train import OPTIMIZERS, SGD, Averaged
from tests.support import counting, shim
from tests.support.guarded import guarded_backend
from tests.support.training import make_data, make_network, make_plan, make_trainer, values

pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernel of noise was not executed"
)
BACKEND = guarded_backend()


def trained(optimizer, monkeypatch, one_array=True, backend=BACKEND, **named):
    """(parameters, slots) after ten steps."""
    with monkeypatch.context() as patch:
        if not one_array:
            patch.setattr(flat, "fits", lambda *parts: False)
        trainer = make_trainer(backend, optimizer, **named)
        trainer.train(*make_data(backend, named.get("dtype", "float64")), Streams(1))
    slots = {
        (name, key): to_host(array).copy()
        for name, slot in optimizer.slots.items()
        for key, array in slot.items()
    }
    return values(trainer.network) | slots


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", [flat_group, per_layer_groups])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_and_slots_have_the_same_bits(name, layout, dtype, monkeypatch):
    def made():
        return Averaged(OPTIMIZERS[name](0.1), 0.9)

    more = {"layout": layout, "dtype": dtype}
    one = trained(made(), monkeypatch, **more)
    each = trained(made(), monkeypatch, one_array=False, **more)
    assert one.keys() == each.keys()
    for key, array in each.items():
        assert one[key].tobytes() == array.tobytes()


@pytest.mark.parametrize("noise", [(0.0, 2.0), (2.0, 0.0), (1.0, 3.0), (0.0, 0.0)])
def test_groups_of_their_own_noise_have_the_same_bits(noise, monkeypatch):
    def layout(params, *named):
        groups = per_layer_groups(params, 1.0, 1.0)
        return [
            type(group)(group.name, group.keys, 1.0, sigma) for group, sigma in zip(groups, noise)
        ]

    one = trained(SGD(0.1), monkeypatch, layout=layout)
    each = trained(SGD(0.1), monkeypatch, one_array=False, layout=layout)
    assert all(one[key].tobytes() == each[key].tobytes() for key in each)


def test_arrays_that_were_kept_change_when_training_ends_and_are_the_layers_again():
    trainer, data = make_trainer(BACKEND), make_data(BACKEND)
    kept, seen = trainer.network.params, []
    before = values(trainer.network)

    def look(progress):
        seen.append({key: to_host(array).copy() for key, array in kept.items()})
        now = values(trainer.network)
        assert any(now[key].tobytes() != before[key].tobytes() for key in now)

    trainer.train(*data, Streams(1), on_block=look)
    assert all(seen[0][key].tobytes() == before[key].tobytes() for key in before)
    assert all(trainer.network.params[key] is array for key, array in kept.items())
    assert any(to_host(array).tobytes() != before[key].tobytes() for key, array in kept.items())


def test_two_trainers_of_one_network_go_on_from_each_other(monkeypatch):
    def twice(one_array):
        with monkeypatch.context() as patch:
            if not one_array:
                patch.setattr(flat, "fits", lambda *parts: False)
            first, second = make_trainer(BACKEND), make_trainer(BACKEND, SGD(0.2))
            second.network = first.network
            for trainer, seed in ((first, 1), (second, 2), (first, 3)):
                trainer.train(*make_data(BACKEND), Streams(seed))
        return values(first.network)

    one, each = twice(True), twice(False)
    assert all(one[key].tobytes() == each[key].tobytes() for key in each)


def test_an_exception_leaves_the_weights_of_the_last_step_and_no_lot_in_the_next(monkeypatch):
    def run(one_array, fails):
        with monkeypatch.context() as patch:
            if not one_array:
                patch.setattr(flat, "fits", lambda *parts: False)
            trainer = make_trainer(BACKEND)
            right, calls = nn.SoftmaxCrossEntropy.__call__, []

            def failing(self, z, y):
                if trainer.ledger.items():  # after the trial
                    calls.append(0)
                if len(calls) == 4 and fails:
                    raise KeyError("in the middle of a lot")
                return right(self, z, y)

            patch.setattr(nn.SoftmaxCrossEntropy, "__call__", failing)
            trainer.batch_size = trainer.batching.batch_size = 3
            if fails:
                with pytest.raises(KeyError):
                    trainer.train(*make_data(BACKEND), Streams(1))
            trainer.train(*make_data(BACKEND), Streams(2))
        return values(trainer.network)

    one, each = run(True, True), run(False, True)
    assert all(one[key].tobytes() == each[key].tobytes() for key in each)


class Kept(nn.Dense):
    """A layer that keeps its weights by another name, as a user's may."""


Kept.__module__ = "somebody"


def test_what_is_not_known_to_use_the_views_keeps_its_arrays():
    network = make_network(BACKEND)
    assert flat.fits(network, SGD(0.1)) and flat.fits(network, Averaged(SGD(0.1), 0.5))
    assert not flat.fits(make_network(), SGD(0.1))  # on the host
    assert not flat.fits(network, type("Mine", (SGD,), {})(0.1))
    shared = make_network(BACKEND)
    shared.layers[2].params["b"] = shared.layers[0].params["b"][1:4]
    assert not flat.fits(shared, SGD(0.1))
    mixed = make_network(BACKEND)
    mixed.layers[0].params["b"] = mixed.layers[0].params["b"].astype("float32")
    assert not flat.fits(mixed, SGD(0.1))
    other = nn.Sequential([Kept(5, 3, rng=np.random.default_rng(0))], (5,)).to(BACKEND)
    assert not flat.fits(other, SGD(0.1))


def test_what_a_step_left_in_the_raw_sum_is_in_no_release():
    params = make_network(BACKEND, "float32").params
    layout = flat.Layout.of(params, [*params])
    raw = BACKEND.asarray(np.full(layout.size, np.nan))
    sums = FlatSums(layout, raw, BACKEND.asarray(np.zeros(layout.size, "float32")))
    sanitizer = Sanitizer(flat_group(params, 1.0, 0.0))
    for rows in (3, 0):  # of zeros
        grads = {
            key: Explicit(BACKEND.asarray(np.zeros((rows, *array.shape), "float32")))
            for key, array in params.items()
        }
        total = sums.begin()
        assert total == {}
        sanitizer.add_clipped(grads, total)
        sanitizer.release_flat(sums, total, Streams(0).noise(0), 1.0)
        views = layout.views(sums.out)
        assert not any(to_host(array).any() for array in views.values())
        assert [view.shape for view in views.values()] == [params[key].shape for key in views]
        raw.fill(np.nan)


def test_release_and_descent_start_the_one_kernel_for_any_number_of_layers():
    found = []
    for layers in (2, 6):
        rng = np.random.default_rng(0)
        network = nn.Sequential(
            [nn.Dense(5, 5, rng=rng, dtype="float64") for _ in range(layers)], (5,)
        ).to(BACKEND)
        trainer = make_trainer(BACKEND)
        trainer.network, trainer.plan = network, make_plan(network)
        with flat.flattened(trainer):
            sanitizer, raw_sum = trainer.plan.sanitizer, trainer.flat.sums.begin().views
            with counting.counting() as counted:
                trainer.flat.descend(sanitizer, raw_sum, Streams(0).noise(1), 1.0, 1)
        found.append(counted.launches)
    assert found == [1, 1]
