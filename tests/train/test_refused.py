"""What training does not take, with every conversion of rows at hand."""

import pytest

from minidp.errors import MinidpError
from tests.support.training import make_data, make_trainer


def test_what_is_not_taken_is_refused_before_a_charge():
    (x, y), trainer = make_data(), make_trainer(sampler="shuffle")
    for arguments, words in (
        ((x, y, "seed"), "expected streams='seed' to be Streams"),
        ((iter(x), y, 1), "Trainer.train: x: expected an array, a memory map, data.Examples"),
        ((x, [[1], [1, 2]], 1), "Trainer.train: y: expected rows of one length"),
        ((x.astype(int), y, 1), "ids are for a network that begins with nn.Embedding"),
        ((x.astype("uint8"), y, 1), r"got uint8; convert it with .astype\(numpy.float32\)$"),
        ((x[:39], y[:39], 1), "expected 40 examples"),
        ((x[:, :4], y, 1), r"Trainer.train: expected x of shape \(N, 5\)"),
    ):
        with pytest.raises(MinidpError, match=words):
            trainer.train(*arguments)
    assert trainer.ledger.items() == []
