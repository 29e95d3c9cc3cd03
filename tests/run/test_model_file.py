"""A model file that is damaged or crafted does no harm, and the files of earlier versions load."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidp
from minidp import nn
from minidp.errors import CheckpointError, ParameterError
from minidp.run import load_model, save_model
from minidp.run.checkpoint import load_arrays, save_arrays
from tests.support.scripts import ROOT
from tests.support.sealed import places


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """(path, arrays, header) of a model with layers of every kind of setting."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("model") / "m.npz"
    network = nn.Sequential(
        [
            nn.Conv2D(1, 2, 3, rng=rng, stride=2),
            nn.GroupNorm(2, 1),
            nn.MaxPool2D(2, 1, "same"),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Project(np.ones((18, 4), np.float32)),
            nn.Standardise(np.ones(4, "f4"), np.ones(1, "f4")),
            nn.LayerNorm(4),
            nn.Tanh(),
            nn.Dense(4, 3, rng=rng),
        ],
        (5, 6, 1),
    )
    facts = {"classes": [1, 2, 3], "ledger_sha256": "0" * 64, "image_shape": (5, 6)}
    save_model(path, network, {"a": 1}, **facts)
    return path, *load_arrays(path)


def refused_or_whole(path):
    """Whatever is in the file: a CheckpointError of one line, or a model."""
    try:
        return load_model(path)
    except CheckpointError as error:
        assert "\n" not in str(error) and str(path) in str(error)


odd = st.one_of(
    st.integers(-3, 9),
    st.lists(st.integers(0, 2**40), max_size=3),
    st.sampled_from(
        [
            None,
            True,
            10**30,
            -1.0,
            "",
            "nn.Dense",
            "os.system",
            "x" * 9999,
            "a\nb",
            "same",
            "W",
            {},
            [[[]]],
        ]
    ),
)


def crafted(example, edit):
    """The file with its header edited."""
    path, arrays, header = example
    header = json.loads(json.dumps(header))
    edit(header)
    save_arrays(path.with_name("crafted.npz"), arrays, header)
    return path.with_name("crafted.npz")


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_edits_of_the_header_are_refused_in_one_line(example, data):
    def edit(header):
        for _ in range(data.draw(st.integers(1, 2))):
            *way, last = data.draw(st.sampled_from([way for way, _ in places(header)]))
            inner = header
            for key in way:
                inner = inner[key]
            if data.draw(st.integers(0, 3)):
                inner[last] = json.loads(json.dumps(data.draw(odd)))
            else:
                del inner[last]

    refused_or_whole(crafted(example, edit))


def test_a_chain_of_too_many_layers_is_refused_before_one_is_made(example, monkeypatch):
    row = {"class": "nn.ReLU", "settings": {}, "constants": {}}
    rows = [{**row, "name": f"more{k}"} for k in range(991)]
    path = crafted(example, lambda header: header["architecture"]["layers"].extend(rows))
    network = nn.Sequential([nn.ReLU() for _ in range(1001)], (3,))
    monkeypatch.setattr(minidp.run.model_file, "_layer", lambda *given: pytest.fail("made one"))
    with pytest.raises(CheckpointError, match="expected at most 1000 layers, got 1001"):
        load_model(path)
    with pytest.raises(ParameterError, match="expected at most 1000 layers, got 1001"):
        save_model(path, network)


@pytest.mark.parametrize("name", ["cifar_transfer_deep", "strokes_features-1"])
def test_model_files_of_earlier_versions_load(name):
    """These files are committed, and written by the versions that their `about` names."""
    path = ROOT / "experiments" / "pretrained" / f"{name}.npz"
    network = load_model(path).network
    with np.load(path) as stored:
        assert network.state().keys() == {*stored.files} - {"header"}
        for key, array in network.state().items():
            np.testing.assert_array_equal(array, stored[key], strict=True)


def test_bytes_changed_and_cut_are_refused_or_harmless(example):
    path, cut = example[0], example[0].with_name("cut.npz")
    content, kept = path.read_bytes(), load_model(path).network.state()
    for place in range(0, len(content), 37):
        cut.write_bytes(
            content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :]
        )
        found = refused_or_whole(cut)
        assert found is None or all(
            np.array_equal(array, found.network.state()[name]) for name, array in kept.items()
        )
        cut.write_bytes(content[:place])
        assert refused_or_whole(cut) is None


@pytest.mark.parametrize(
    "kind, setting",
    [
        ("Dense", {"inputs": 10**9, "outputs": 10**9}),
        ("LayerNorm", {"shape": [2**40] * 3}),
    ],
)
def test_huge_sizes_are_refused_before_they_take_memory(kind, setting, example, monkeypatch):
    def enlarge(header):
        for row in header["architecture"]["layers"]:
            if row["class"] == f"nn.{kind}":
                row["settings"].update(setting)

    path = crafted(example, enlarge)
    made, full = [], np.full
    monkeypatch.setattr(
        nn.init.np, "full", lambda shape, *more: made.append(shape) or full(shape, *more)
    )
    with pytest.raises(CheckpointError, match="crafted.npz"):
        load_model(path)
    assert set(made) <= {()}
