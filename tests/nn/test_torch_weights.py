"""Weights of PyTorch in a network give PyTorch's outputs; the same weights come out again."""

from pathlib import Path

import numpy as np
import pytest

from minidp import nn
from minidp.errors import DataError, ParameterError, ShapeError
from minidp.layers.torch_weights import load_state_dict, state_dict
from minidp.run.safetensors import load_safetensors
from tests.support.make_torch_weights import IMAGE, TOKENS, torch_networks

FIXTURES = Path(__file__).parents[1] / "fixtures" / "torch"
NAMES = {
    "images": {"conv1": "0", "norm1": "1", "norm2": "4", "dense1": "7", "dense2": "9"},
    "text": {"embedding1": "embedding", "lstm1": "lstm", "norm1": "norm", "dense1": "head"},
}


def network_of(name, seed=1):
    """The network of that name with weights of its own."""
    rng = np.random.default_rng(seed)
    if name == "text":
        layers = [
            nn.Embedding(7, 3, rng=rng),
            nn.LSTM(3, 4, states="last", rng=rng),
            nn.LayerNorm(4, name="norm1"),
            nn.Dense(4, 2, rng=rng),
        ]
        return nn.Sequential(layers, (TOKENS,))
    layers = [
        nn.Conv2D(2, 4, 3, rng=rng),
        nn.GroupNorm(4, 2, name="norm1"),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.LayerNorm((3, 4, 4), name="norm2"),
        nn.Flatten(),
        nn.Tanh(),
        nn.Dense(48, 5, rng=rng),
        nn.ReLU(),
        nn.Dense(5, 3, rng=rng),
    ]
    return nn.Sequential(layers, IMAGE)


def stored(name):
    """(state, x, y) of a fixture."""
    with np.load(FIXTURES / f"{name}.npz") as file:
        arrays = dict(file)
    x, y = arrays.pop("x"), arrays.pop("y")
    return {key.removeprefix("state/"): array for key, array in arrays.items()}, x, y


def fresh(name):
    """(state, x, y) of a network of the PyTorch that is installed."""
    pytest.importorskip("torch", reason="needs the extra peers")
    module, x, ours = torch_networks()[name]
    return module.state_dict(), ours, module(x).detach().numpy()


@pytest.mark.parametrize("source", [stored, fresh])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("named", [False, True])
def test_outputs_are_those_of_pytorch(source, name, named):
    state, x, y = source(name)
    network = network_of(name)
    before = network(x)
    load_state_dict(network, state, NAMES[name] if named else None)
    assert np.abs(before - y).max() > 0.1
    np.testing.assert_allclose(network(x), y, rtol=0, atol=1e-6)


@pytest.mark.parametrize("source", [stored, fresh])
@pytest.mark.parametrize("name", NAMES)
def test_weights_come_out_as_they_went_in(source, name):
    state, x, _ = source(name)
    network, again = network_of(name), network_of(name, 2)
    load_state_dict(network, state)
    found = state_dict(network, NAMES[name])
    assert [*found] == [*state]
    for key, array in found.items():
        assert array.shape == tuple(state[key].shape)
        if "bias" not in key or name == "images":
            np.testing.assert_array_equal(array, np.asarray(state[key]))
    load_state_dict(again, state_dict(network))
    np.testing.assert_array_equal(again(x), network(x))


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_computes_the_outputs_of_a_network_of_ours(name):
    torch = pytest.importorskip("torch", reason="needs the extra peers")
    module, x, ours = torch_networks()[name]
    network = network_of(name)
    state = state_dict(network, NAMES[name])
    module.load_state_dict({key: torch.from_numpy(array) for key, array in state.items()})
    np.testing.assert_allclose(module(x).detach().numpy(), network(ours), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_safetensors_file_loads_by_name(name):
    state, x, y = stored(name)
    arrays = load_safetensors(FIXTURES / f"{name}.safetensors")
    assert arrays.keys() == state.keys()
    network = network_of(name)
    load_state_dict(network, arrays, NAMES[name])
    np.testing.assert_allclose(network(x), y, rtol=0, atol=1e-6)
    with pytest.raises(ParameterError, match="sorts its names"):
        load_state_dict(network, arrays)


def test_a_part_of_a_network_keeps_its_other_weights():
    state, x, _ = stored("images")
    network = network_of("images")
    before = {key: array.copy() for key, array in network.state().items()}
    load_state_dict(network, state, {"conv1": "0"})
    changed = {key for key, array in network.state().items() if (array != before[key]).any()}
    assert changed == {"conv1.W", "conv1.b"}


@pytest.mark.parametrize(
    "change, names, error, message",
    [
        ({"7.weight": np.zeros((5, 47))}, None, ShapeError, r"dense1: expected '7' .*\(5, 48\)"),
        ({"1.running_mean": np.zeros(4)}, None, ShapeError, "norm1: expected '1' .*running_mean"),
        ({"11.weight": np.zeros(4)}, None, ParameterError, "expected names="),
        ({}, {"conv2": "0"}, ParameterError, "layers among conv1, norm1"),
        ({}, {"conv1": "features"}, ShapeError, "'features' to hold .* got nothing"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(change, names, error, message):
    state, x, _ = stored("images")
    network = network_of("images")
    before = network(x)
    with pytest.raises(error, match=message):
        load_state_dict(network, state | change, names)
    np.testing.assert_array_equal(network(x), before)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:40],
        lambda content: content[:-8],
        lambda content: b"PK" + content,
        lambda content: content.replace(b'"F32"', b'"F8_"', 1),
        lambda content: content[:8] + b"[" + content[9:],
        lambda content: b"",
    ],
)
def test_a_damaged_safetensors_file_is_refused_by_name(tmp_path, spoil):
    path = tmp_path / "w.safetensors"
    path.write_bytes(spoil((FIXTURES / "text.safetensors").read_bytes()))
    with pytest.raises(DataError, match=r"w\.safetensors: damaged, or a file of another kind"):
        load_safetensors(path)


def test_half_precision_is_read_exactly(tmp_path):
    import json

    values = np.array([1.5, -2.0, 3.140625], np.float32)
    data = (values.view(np.uint32) >> 16).astype("<u2").tobytes() + values.astype("<f2").tobytes()
    entries = {
        "b": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
        "h": {"dtype": "F16", "shape": [3, 1], "data_offsets": [6, 12]},
    }
    header = json.dumps(entries).encode()
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    found = load_safetensors(tmp_path / "w.safetensors")
    assert found["b"].tolist() == values.tolist() and found["h"].shape == (3, 1)
