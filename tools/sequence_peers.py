"""Layers of sequences beside PyTorch and Opacus: the same numbers, and the time of a step.

    python -m tools.sequence_peers --json experiments/results/sequence_peers.json

Needs the extra `peers`. Compared in float64, example by example: outputs, the input's gradient and
each parameter's gradient of torch.nn.LSTM (its second bias zero), Embedding and MultiheadAttention
under a causal mask; exits with 1 if one is off by more than 1e-12 of its largest number. Then steps
of an LSTM of 128 with a dense layer, of 14 positions with 27 symbols in lots of 2,000: ours, which
draws the lot, clips and adds noise; PyTorch's without privacy; Opacus' DPLSTM with its hooks. Each
is a process of its own; they take turns. Memory is the peak of a second step less what the
process held before the first (Linux). `--rounds 0` leaves the steps out.
"""

import argparse
import os
import re
import warnings
from importlib.metadata import version
from itertools import count
from pathlib import Path

import numpy as np

from minidp import nn
from minidp.data import LabelledExamples
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from minidp.util.files import write_json
from tools import machine
from tools.benchmark import ContenderError, ratio, serve, take_turns
from tools.benchmark_ours import step_of

TOLERANCE, EXAMPLES = 1e-12, 3
POSITIONS, SYMBOLS, HIDDEN, LOT, ROWS = 14, 27, 128, 2_000, 20_000
NOISE, RATE, SECONDS = 1.0, 0.1, 0.5


def reordered(gates):
    """PyTorch's gates i, f, g, o from ours, i, f, o, g, along the last axis; and back."""
    i, f, o, g = np.split(gates, 4, axis=-1)
    return np.concatenate([i, f, g, o], axis=-1)


def of_lstm(torch, rng):
    """(our layer, x, PyTorch's function of x, {our parameter: (its, their gradient as ours)})."""
    ours, theirs = nn.LSTM(3, 4, rng=rng, dtype="float64"), torch.nn.LSTM(3, 4, batch_first=True)
    theirs = theirs.double()
    W, b = map(reordered, (ours.params["W"], ours.params["b"]))
    values = (W[:3].T, W[3:].T, b, np.zeros_like(b))
    for parameter, value in zip(theirs.parameters(), values):
        parameter.data = torch.from_numpy(value.copy())
    inputs, hidden, bias, _ = theirs.parameters()
    found = {
        "W": ((inputs, hidden), lambda u, h: reordered(np.concatenate([u.T, h.T]))),
        "b": ((bias,), reordered),
    }
    return ours, rng.uniform(-1, 1, (EXAMPLES, 5, 3)), lambda x: theirs(x)[0], found


def of_embedding(torch, rng):
    """As of_lstm."""
    ours = nn.Embedding(6, 4, rng=rng, dtype="float64")
    theirs = torch.nn.Embedding(6, 4).double()
    theirs.weight.data = torch.from_numpy(ours.params["E"].copy())
    found = {"E": ((theirs.weight,), lambda E: E)}
    return ours, rng.integers(0, 6, (EXAMPLES, 5)), theirs, found


def of_attention(torch, rng):
    """As of_lstm."""
    ours = nn.CausalAttention(6, 2, rng=rng, dtype="float64")
    theirs = torch.nn.MultiheadAttention(6, 2, batch_first=True).double()
    for array in ours.params.values():
        array[...] = rng.uniform(-1, 1, array.shape)
    parameters = theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight
    names = dict(zip("WcVb", (*parameters, theirs.out_proj.bias)))
    for name, parameter in names.items():
        parameter.data = torch.from_numpy(ours.params[name].T.copy())
    behind = torch.triu(torch.ones(5, 5, dtype=bool), 1)
    found = {name: ((parameter,), lambda g: g.T) for name, parameter in names.items()}
    x = rng.uniform(-1, 1, (EXAMPLES, 5, 6))
    return ours, x, lambda x: theirs(x, x, x, attn_mask=behind, need_weights=False)[0], found


PAIRS = {"LSTM": of_lstm, "Embedding": of_embedding, "MultiheadAttention": of_attention}


def apart(name):
    """{"y", "dx", parameter: the largest difference over the largest number} of a layer."""
    import torch

    ours, x, theirs, parameters = PAIRS[name](torch, np.random.default_rng(0))
    y, cache = ours.forward(x)
    dy = np.random.default_rng(1).uniform(-1, 1, y.shape)
    given = {"y": y, "dx": ours.backward(dy, cache)}
    for key, grad in ours.param_grads(dy, cache).items():
        given[f"d{key}"] = grad.materialise()
    expected = {key: [] for key in given}
    for b in range(EXAMPLES):
        one = torch.from_numpy(x[b : b + 1]).requires_grad_(not ours.takes_ids)
        found = theirs(one)
        flat = [each for several, _ in parameters.values() for each in several]
        inputs = flat if ours.takes_ids else [one, *flat]
        slopes = torch.autograd.grad(found, inputs, torch.from_numpy(dy[b : b + 1]))
        slopes = [each.numpy() for each in slopes]
        expected["y"].append(found.detach().numpy()[0])
        expected["dx"].append(np.zeros(x.shape[1:]) if ours.takes_ids else slopes.pop(0)[0])
        for key, (several, as_ours) in parameters.items():
            expected[f"d{key}"].append(as_ours(*(slopes.pop(0) for _ in several)))
    return {
        key: float(np.abs(given[key] - each).max() / max(np.abs(each).max(), 1e-300))
        for key, each in expected.items()
    }


def data():
    """x (N, T, 27) float32 rows of 0 and 1, y (N, T) the symbols."""
    y = np.random.default_rng(0).integers(0, SYMBOLS, (ROWS, POSITIONS))
    return np.eye(SYMBOLS, dtype="float32")[y], y


def minidp_step():
    """Ours, private."""
    rng = np.random.default_rng(0)
    layers = [nn.LSTM(SYMBOLS, HIDDEN, rng=rng), nn.Dense(HIDDEN, SYMBOLS, rng=rng)]
    network = nn.Sequential(layers, (POSITIONS, SYMBOLS))
    sanitizer = Sanitizer(flat_group(network.params, 1.0, NOISE))
    plan = Plan(PoissonSampler(LOT / ROWS), sanitizer, 10**9, LOT)
    trainer = Trainer(network, nn.SequenceCrossEntropy(), SGD(RATE), plan)
    return step_of(trainer, LabelledExamples(*data()), Streams())


def torch_step(private):
    """PyTorch's without privacy, or Opacus' private one, on lots that were drawn before."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if private:
                from opacus.layers import DPLSTM as LSTM
            else:
                from torch.nn import LSTM
            self.lstm = LSTM(SYMBOLS, HIDDEN, batch_first=True)
            self.dense = torch.nn.Linear(HIDDEN, SYMBOLS)

        def forward(self, x):
            return self.dense(self.lstm(x)[0]).transpose(1, 2)

    torch.set_num_threads(machine.available_cores())
    warnings.simplefilter("ignore")
    x, y = map(torch.from_numpy, data())
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    if private:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        model = GradSampleModule(model)
        optimizer = DPOptimizer(
            optimizer, noise_multiplier=NOISE, max_grad_norm=1.0, expected_batch_size=LOT
        )
    loss, starts = torch.nn.CrossEntropyLoss(), count()

    def step():
        start = next(starts) * LOT % ROWS
        optimizer.zero_grad()
        loss(model(x[start : start + LOT]), y[start : start + LOT]).backward()
        optimizer.step()

    return step


STEPS = {
    "minidp": minidp_step,
    "torch": lambda: torch_step(private=False),
    "opacus": lambda: torch_step(private=True),
}


def memory(entry):
    """An entry of /proc/self/status, VmRSS or VmHWM, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"{entry}:\s+(\d+) kB", status)[1]) / 1024


def prepared(name):
    """(a contender's step, the MiB that it takes)."""
    step = STEPS[name]()
    before = memory("VmRSS")
    step()  # compiles
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    step()
    return step, memory("VmHWM") - before


def times(rounds):
    """Milliseconds of each round, MiB, and ratios of ours within the rounds."""
    commands = {name: ("tools.sequence_peers", "--serve", name) for name in STEPS}
    mib, turns, left_out = take_turns(commands, rounds, SECONDS)
    if left_out:
        raise ContenderError(f"left out: {left_out}")
    ratios = {
        name: {
            "time": ratio(turns["minidp"], turns[name]),
            "memory": mib["minidp"] / mib[name],
        }
        for name in ("torch", "opacus")
    }
    contenders = {name: {"mib": round(mib[name], 1), "turns_ms": turns[name]} for name in STEPS}
    return {"contenders": contenders, "ratios_of_minidp": ratios}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--serve", choices=STEPS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.serve:
        return serve(lambda: prepared(args.serve))
    found = {"apart": {name: apart(name) for name in PAIRS}}
    worst = max(error for each in found["apart"].values() for error in each.values())
    print(f"largest difference from PyTorch in float64: {worst:.1e}", flush=True)
    if args.rounds:
        found["steps"] = {"rounds": args.rounds, "threads": machine.available_cores()}
        found["steps"] |= times(args.rounds)
        for name, ours in found["steps"]["ratios_of_minidp"].items():
            print(f"ours to {name}: time {ours['time']:.2f}, memory {ours['memory']:.2f}")
    if args.json:
        names = ("numpy", "torch", "opacus")
        found |= {"command": f"python -m tools.sequence_peers --json {args.json}", "device": "cpu"}
        found["load"] = os.getloadavg()[0]
        write_json(args.json, {"versions": {name: version(name) for name in names}, **found})
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    raise SystemExit(main())
