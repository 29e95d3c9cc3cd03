"""Several views of each example of a lot: one gradient, averaged over them before it is clipped."""
import numpy as np
import pytest

from minidp import nn
from minidp.audit.reference import single_example_grads
from minidp.backend import namespace_of
from minidp.data import LabelledExamples
from minidp.errors import ParameterError
from minidp.streams import Streams
from tests.support.training import CLASSES, EXAMPLES, LOT, make_network, make_trainer, values


class Views:
    """Inputs that give the rows of one view after another each time examples are taken."""

    ndim = 2

    def __init__(self, views):
        """views (K, N, F): row r of what is taken shows its example in view r mod K."""
        self._views, self.shape, self.xp = views, views.shape[1:], namespace_of(views)

    def take(self, indices, axis=0):
        view = self.xp.arange(len(indices)) % self._views.shape[0]
        return self._views[view, indices]


@pytest.mark.parametrize("strategy", ["auto", "explicit", "factored"])
@pytest.mark.parametrize("batch_size", [2, 4096])
def test_views_of_an_example_are_averaged_before_clipping(strategy, batch_size, backend):
    views, lot = np.random.default_rng(4).standard_normal((3, EXAMPLES, 5)), np.array([1, 7, 8, 30, 2])
    y = np.arange(EXAMPLES) % CLASSES
    network, loss = make_network(), nn.SoftmaxCrossEntropy()
    each = [single_example_grads(network, loss, view[lot], y[lot]) for view in views]
    mean = {key: sum(one[key] for one in each) / 3 for key in each[0]}
    norms = np.sqrt(sum((g.reshape((len(lot), -1)) ** 2).sum(axis=1) for g in mean.values()))
    clip_norm = float(np.median(norms)) * 1.01
    assert norms.min() < clip_norm < norms.max()  # some are clipped, which hides their scale, and some are not
    trainer = make_trainer(backend, clip_norm=clip_norm, noise_multiplier=0, layout="flat", strategy=strategy,
                           batch_size=batch_size, augmentation_multiplicity=3)
    before = values(trainer.network)
    examples = LabelledExamples(Views(backend.asarray(views)), backend.asarray(y), 3)
    trainer.step(examples, lot, 0, Streams(1))
    after = values(trainer.network)
    for key, g in mean.items():
        step = np.einsum("b,b...->...", np.minimum(1, clip_norm / norms), g)
        np.testing.assert_allclose(before[key] - after[key], 0.5 * step / LOT, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("bad", [0, 1.5])
def test_a_multiplicity_is_a_number_of_views(bad):
    with pytest.raises(ParameterError, match="multiplicity"):
        make_trainer(augmentation_multiplicity=bad)
