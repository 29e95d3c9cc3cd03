"""One file from which training goes on: parameters, optimizer, ledger, progress; no pickle.

The generators' states are in it for seeded runs only. Who holds the state of an unseeded run's noise could
subtract the noise, so such a run goes on with fresh entropy.
"""
import json
import zipfile
import zlib

import numpy as np

from ..backend import namespace_of, to_host
from ..errors import CheckpointError, DataError, ParameterError
from ..files import atomic_write
from ..privacy.ledger import Ledger
from .trainer import Progress

FORMAT = 1


def save_arrays(path, arrays, header):
    """Write {name: array} and a JSON-able header into one .npz, whole or not at all."""
    host = {name: to_host(array) for name, array in arrays.items()}
    text = np.array(json.dumps({"format": FORMAT, **header}, allow_nan=False))
    with atomic_write(path, "wb") as file:
        np.savez(file, header=text, **host)


def load_arrays(path):
    """({name: array}, header) of what `save_arrays` wrote. Raises CheckpointError, naming the file."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop("header")))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except (OSError, KeyError, TypeError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        why = "no .npz" if "pickle" in str(error) else error  # NumPy's advice is to load it all the same
        raise CheckpointError(f"{path}: not a file that minidp wrote, or damaged ({why})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path}: expected format {FORMAT}, got {header!r:.80}")
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise CheckpointError(f"{path}: expected finite floating-point numbers in {name}")
    return arrays, header


def restore(path, stored, target):
    """Copy stored {name: array} into the arrays of `target`, after checking names, shapes and dtypes of all.

    Raises CheckpointError for an array that is missing, extra, of another shape or of more precision.
    """
    missing, extra = sorted(set(target) - set(stored)), sorted(set(stored) - set(target))
    if missing or extra:
        what = [f"{name} is missing" for name in missing] + [f"{name} is not expected" for name in extra]
        raise CheckpointError(f"{path}: {'; '.join(what)}")
    for name, array in target.items():
        if stored[name].shape != tuple(array.shape):
            raise CheckpointError(
                f"{path}: expected {name} of shape {tuple(array.shape)}, got {stored[name].shape}")
        if not np.can_cast(stored[name].dtype, array.dtype):
            raise CheckpointError(f"{path}: expected {name} of dtype {array.dtype}, got {stored[name].dtype}")
    for name, array in target.items():
        array[...] = namespace_of(array).asarray(stored[name].astype(array.dtype))


def save_model(path, network, about=None):
    """Write a network's parameters and constants, with a dictionary `about` of facts on how it was made."""
    save_arrays(path, network.state(), {"kind": "model", "about": about or {}})


def load_model(path, network):
    """Read `save_model`'s file into a network of the same shape; returns `about`.

    Raises CheckpointError, naming file and array, for anything missing, extra, wrong-shaped or not finite.
    """
    arrays, header = load_arrays(path)
    if header.get("kind") != "model":
        raise CheckpointError(f"{path}: expected a model, got a {header.get('kind')}")
    restore(path, arrays, network.state())
    return header["about"]


def save_checkpoint(path, network, optimizer, ledger, progress, streams, config, history, extra=None):
    """Write all that training needs to go on. config, history and extra (the caller's own) are JSON-able."""
    header = {
        "kind": "checkpoint",
        "config": config,
        "extra": extra,
        "history": history,
        "ledger": ledger.to_json(),
        "progress": [progress.step, progress.charged],
        "streams": streams.state() if streams.reproducible else None,
    }
    save_arrays(path, _arrays(network, optimizer), header)


def load_checkpoint(path, config):
    """(arrays, header with `ledger` and `progress` as objects); raises CheckpointError if `config` differs."""
    arrays, header = load_arrays(path)
    if header.get("kind") != "checkpoint":
        raise CheckpointError(f"{path}: expected a checkpoint, got a {header.get('kind')}")
    try:
        saved = header["config"]
        header["ledger"] = Ledger.from_json(header["ledger"])
        header["progress"] = Progress(*header["progress"])
        differ = sorted(key for key in {*saved, *config} if saved.get(key) != config.get(key))
    except (DataError, ParameterError, AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: damaged ({error})") from error
    if differ:
        named = ", ".join(f"{key} was {saved.get(key)!r} and is {config.get(key)!r}" for key in differ)
        raise CheckpointError(f"{path}: this run has another configuration: {named}")
    return arrays, header


def restore_training(path, arrays, header, network, optimizer, streams):
    """Put a loaded checkpoint into network, optimizer and, for a seeded run, the generators.

    Raises CheckpointError if it does not fit, or has no generators for a seeded run.
    """
    if header["progress"].step > 0:
        optimizer.allocate(network.params)
    restore(path, arrays, _arrays(network, optimizer))
    if streams.reproducible:
        streams.restore(header.get("streams"))


def _arrays(network, optimizer):
    """{name in the file: array} of everything that training changes, and the constants."""
    arrays = {f"network/{name}": array for name, array in network.state().items()}
    for slot, by_key in optimizer.slots.items():
        for (layer, name), array in by_key.items():
            arrays[f"optimizer/{slot}/{layer}.{name}"] = array
    return arrays
