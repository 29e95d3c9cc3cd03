"""PyTorch's own step, without privacy, and Opacus's private ones, as their documentation has them.

They gather a lot of fixed size that was drawn before: drawing it costs them nothing here.
`torch-in-place` has the same lot in every step and does not even gather it.
"""

import itertools
import warnings

import numpy as np
import torch
from torch import nn

from .workloads import CLIP_NORM, LEARNING_RATE, NOISE_MULTIPLIER, data, same_padding, slices

MODES = {
    "opacus": "hooks",
    "opacus-ghost": "ghost",
    "opacus-ew": "ew",
    "opacus-functorch": "functorch",
}


def make(contender, workload, device):
    """(step, memory): a function without arguments, and None or one that tells the device's peak in
    bytes.
    """
    on = torch.device("cuda" if device == "gpu" else "cpu")
    if device == "gpu" and not torch.cuda.is_available():
        raise SystemExit("error: device gpu: PyTorch finds no GPU")
    x, y = data(workload)
    if workload.convolutional:
        x = np.ascontiguousarray(
            x.transpose(0, 3, 1, 2)
        )  # channels first, as PyTorch's users keep images
    x, y = torch.from_numpy(x).to(on), torch.from_numpy(y).to(on)
    model = nn.Sequential(*_layers(workload)).to(on)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    criterion = nn.CrossEntropyLoss()
    if contender in MODES:
        model, optimizer, criterion = _private(
            MODES[contender], model, optimizer, criterion, x, y, workload.lot
        )
    lots = (torch.from_numpy(lot).to(on) for lot in slices(workload))
    if contender == "torch-in-place":
        lots = itertools.repeat(slice(workload.lot))

    def step():
        lot = next(lots)
        optimizer.zero_grad()
        criterion(model(x[lot]), y[lot]).backward()
        optimizer.step()
        if device == "gpu":
            torch.cuda.synchronize()

    return step, torch.cuda.max_memory_allocated if device == "gpu" else None


def _layers(workload):
    """The workload's layers."""
    size = workload.input_shape[0]
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            yield nn.Linear(inputs, outputs, bias=bias)
        elif kind == "conv":
            inputs, outputs, kernel, stride, padding = sizes
            before, after = same_padding(size, kernel, stride) if padding == "same" else (0, 0)
            if before != after:
                raise ValueError(f"PyTorch pads both sides alike, not by {before} and {after}")
            yield nn.Conv2d(inputs, outputs, kernel, stride, before)
            size = (size + 2 * before - kernel) // stride + 1
        elif kind == "maxpool":
            window, stride = sizes
            yield nn.MaxPool2d(window, stride)
            size = (size - window) // stride + 1
        else:
            yield {"relu": nn.ReLU, "flatten": nn.Flatten}[kind]()


def _private(mode, model, optimizer, criterion, x, y, lot):
    """Model, optimizer and criterion from Opacus's PrivacyEngine."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    warnings.simplefilter("ignore")
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        grad_sample_mode=mode,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=lot),
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=CLIP_NORM,
    )
    return made[:3] if mode == "ghost" else (*made[:2], criterion)
