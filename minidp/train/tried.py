"""A copy of a network for the trial, and random numbers to try it with."""

import copy

import numpy as np

from ..backend import to_host
from ..errors import TrialError

JITTER = 0.1  # moves numbers away from the ties and kinks that exact zeros sit on


def host_copy(network, dtype="float64", asarray=np.asarray):
    """A copy of the network with all arrays on the host (or where `asarray` moves them), floats in
    `dtype`. Arrays in the layers' attributes, lists and dictionaries are included.
    """
    moved, seen, todo = {}, set(), [network]
    for value in todo:  # the list grows in the loop
        inner = vars(value) if hasattr(value, "params") else value
        inner = list(inner.values()) if isinstance(inner, dict) else inner
        if isinstance(inner, (list, tuple)):
            todo += [each for each in inner if id(each) not in seen]
            seen.update(map(id, inner))
        elif hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple):
            host = to_host(value)
            kind = dtype if host.dtype.kind == "f" else host.dtype
            moved[id(value)] = asarray(np.array(host, dtype=kind))
    try:
        return copy.deepcopy(network, moved)
    except (TypeError, copy.Error, RecursionError) as error:
        raise TrialError(
            f"the network cannot be copied to be tried ({error}); give its layers __deepcopy__"
        ) from error


def arrays_of(part):
    """{name: bytes} of the arrays of a layer, or of a network's layers, and {name: length} of its
    lists.
    """
    found = {}
    for layer in getattr(part, "layers", [part]):
        held = {**vars(layer), **layer.params, **layer.constants}
        for name, value in held.items():
            if isinstance(getattr(value, "shape", None), tuple):
                found[f"{layer.where}.{name}"] = to_host(value).tobytes()
            elif isinstance(value, list):
                found[f"{layer.where}.{name}"] = len(value)
    return found


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, of which
    the first two are equal, or numbers in (0, 1).
    """
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    if kind not in "iub":
        return np.zeros(shape, y.dtype)
    classes = max(z.shape[-1], 2) if len(shape) == z.ndim - 1 and kind in "iu" else 2
    found = rng.integers(0, classes, shape).astype(y.dtype.name)
    found[1:2] = found[:1]
    return found


def direction(rng, shape):
    """Random numbers of both signs, none close to 0."""
    return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
