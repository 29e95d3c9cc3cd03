"""Training on public data: no clipping, no noise, no ledger; resumable after every epoch."""
import sys
import time

import numpy as np
from minidp import nn
from minidp.backend import namespace_of
from minidp.data import distort, draw_distortions, standardise_images
from minidp.errors import CheckpointError
from minidp.privacy import Ledger
from minidp.run import load_checkpoint, restore_training, save_checkpoint
from minidp.train import Progress, evaluate
from tqdm import tqdm


LAST = 0.1  # standard deviation of the first logits


def scale_initial_values(network, x):
    """Scale the weights layer by layer until each layer's outputs on x (B, *input_shape), public, have deviation 1.

    The last layer's have deviation LAST. Images and pooling are not what common initial values are made for; learning
    starts far faster so. Source: Mishkin and Matas 2016, arXiv:1511.06422, less the orthogonal start.
    """
    weighted = [layer for layer in network.layers if "W" in layer.params]
    for layer in network.layers:
        if layer in weighted:
            deviation = float(layer.forward(x)[0].std())
            layer.params["W"] *= np.float32((LAST if layer is weighted[-1] else 1) / deviation)
        x, _ = layer.forward(x)


def train_public(folder, config, network, optimizer, streams, x, y, x_test, y_test, *, epochs, batch_size,
                 weight_decay, quiet, should_stop):
    """Train on augmented images x (N, 32, 32, 3) uint8; returns (history, True if all epochs are done).

    A checkpoint in `folder` is written after each epoch and taken up again. x_test is ready for the network.
    """
    path, history, first = folder / "checkpoint.npz", [], 0
    if path.exists():
        arrays, header = load_checkpoint(path, config)
        if header["ledger"].items():
            raise CheckpointError(f"{path}: a private run's checkpoint, expected one of pre-training")
        restore_training(path, arrays, header, network, optimizer)
        history, first = header["history"], header["progress"].step
    loss, per_epoch = nn.SoftmaxCrossEntropy(), -(-x.shape[0] // batch_size)
    bar = tqdm(total=epochs * per_epoch, initial=first * per_epoch, unit="batch", disable=True if quiet else None,
               file=sys.stderr, dynamic_ncols=True)
    with bar:
        for epoch in range(first, epochs):
            began, order = time.perf_counter(), streams.sampling(epoch).permutation(x.shape[0])
            for i in range(per_epoch):
                batch = order[i * batch_size : (i + 1) * batch_size]
                number = epoch * per_epoch + i
                views = augmented(x, y, batch, streams.views(number))
                step(network, loss, optimizer, *views, number, streams.dropout(number).rows(batch), weight_decay)
                bar.update()
                if should_stop():
                    return history, False
            metrics = evaluate(network, loss, x_test, y_test, batch_size=512)
            history.append({"epoch": epoch + 1, "test_accuracy": metrics.accuracy, "test_loss": metrics.loss,
                            "seconds": time.perf_counter() - began})
            bar.set_postfix_str(f"epoch {epoch + 1}, accuracy {metrics.accuracy:.2%}")
            save_checkpoint(path, network, optimizer, Ledger(), Progress(epoch + 1, epoch + 1), config, history)
    return history, True


def augmented(x, y, indices, rng):
    """(standardised random views (B, 24, 24, 3), labels) of some images."""
    xp = namespace_of(x)
    indices_there = xp.asarray(indices)
    views = distort(x[indices_there], draw_distortions(len(indices), rng))
    return standardise_images(views), y[indices_there]


def step(network, loss, optimizer, x, y, number, rng, weight_decay):
    """One step of ordinary descent on the mean loss, plus weight_decay / 2 times the squared norm of the weights."""
    xp = namespace_of(x)
    z, caches = network.forward(x, rng=rng)
    _, dz = loss(z, y)
    mean = xp.full((x.shape[0],), np.float32(1 / x.shape[0]), dtype=x.dtype)
    params = network.params
    grads = {key: grad.weighted_sum(mean) for key, grad in network.param_grads(dz, caches).items()}
    for (layer, name), grad in grads.items():
        if name == "W":
            grad += np.float32(weight_decay) * params[layer, name]
    optimizer.update(params, grads, number)
