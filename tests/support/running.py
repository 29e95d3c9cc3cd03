"""A small private run on arrays of one's own, as a user of the library makes it."""

import os
import signal
from dataclasses import fields

import numpy as np

from minidp import nn
from minidp.backend import Backend
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, per_layer_groups
from minidp.privacy import Filter, Gaussian, MomentsAccountant
from minidp.run import About, Privacy, Run, Training
from minidp.streams import Streams
from minidp.train import SGD, Averaged

SIZE, LOT, STEPS = 60, 12, 10


def make_arrays():
    """x (60, 4), y (60,), and 20 more to test on."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((80, 4)).astype("float32"), rng.integers(0, 3, 80)
    return x[:SIZE], y[:SIZE], x[SIZE:], y[SIZE:]


def make_run(
    folder,
    seed=None,
    *,
    steps=STEPS,
    sigma=4.0,
    clip_norm=1.0,
    epsilon=float("inf"),
    sampler=None,
    optimizer=None,
    accountant=MomentsAccountant,
    backend=Backend.numpy(),
    loss=nn.SoftmaxCrossEntropy(),
    **named,
):
    """A Run on `make_arrays`, before its first charge."""
    rng = np.random.default_rng(1)
    network = nn.Sequential([nn.Dense(4, 5, rng=rng), nn.ReLU(), nn.Dense(5, 3, rng=rng)], (4,)).to(
        backend
    )
    sanitizer = Sanitizer(per_layer_groups(network.params, clip_norm, sigma))
    plan = Plan(sampler or PoissonSampler(LOT / SIZE), sanitizer, steps, LOT)
    budget = Filter(accountant(plan.relation), epsilon, 1e-5)

    def given(part):
        names = {each.name for each in fields(part)} & named.keys()
        return {name: named.pop(name) for name in names}

    training = Training(
        network,
        loss,
        optimizer or Averaged(SGD(0.5), 0.9),
        Streams(seed),
        **given(Training),
    )
    privacy = Privacy(plan, budget, **given(Privacy))
    return Run(folder, training, privacy, About(quiet=True, **named))


def train(folder, seed=None, about=None, stop=None, arrays=None, **named):
    """The result of a run that releases a noisy mean first; None where `stop`, called after each
    charge, interrupts it.
    """
    run, (x, *others) = make_run(folder, seed, **named), arrays or make_arrays()
    charge = run.folder.charge

    def charge_and_stop(ledger):
        charge(ledger)
        stop(run)

    if stop is not None:
        run.folder.charge = charge_and_stop
    mean = run.release_first(
        "mean",
        Gaussian(5.0),
        "mean of the rows",
        lambda: (
            x.clip(-1, 1).mean(axis=0) + run.streams.noise("mean").standard_normal(4) * 10 / SIZE
        ).astype("float32"),
    )
    return run.train(x - mean, *others, about=about)


def interrupt(run):
    """Ctrl-C while lots run."""
    if run.ledger.count_of("step"):
        os.kill(os.getpid(), signal.SIGINT)


class Crash(Exception):
    pass


def crash_after(charges):
    """A stop that ends the process, as a kill would, at that charge."""
    left = [charges]

    def stop(run):
        left[0] -= 1
        if left[0] == 0:
            run.folder.close()
            raise Crash

    return stop


def weights(folder):
    with np.load(folder / "model.npz") as file:
        return {name: file[name] for name in file.files if name != "header"}
