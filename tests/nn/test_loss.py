"""Every loss of minidp/audit/cases.py."""
import numpy as np
import pytest

from minidp import nn
from minidp.errors import DtypeError, ShapeError
from minidp.audit import check_loss
from minidp.audit.cases import LOSSES

losses = pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)


@losses
def test_the_tests_for_own_losses_pass(case):
    report = check_loss(case.loss, 4, case.target)
    assert report, str(report)


def test_large_logits_do_not_overflow():
    z = np.array([[1000.0, 0.0], [-1000.0, 1000.0]], dtype=np.float32)
    losses, dz = nn.SoftmaxCrossEntropy()(z, np.array([1, 1]))
    np.testing.assert_allclose(losses, [1000, 0])
    np.testing.assert_allclose(dz, [[1, -1], [0, 0]])


@losses
def test_wrong_shapes_and_dtypes_are_refused(case, rng):
    target = case.target(rng, 3, 4)
    with pytest.raises(ShapeError, match="expected z of shape"):
        case.loss(np.zeros((3, 4, 1)), target)
    with pytest.raises(ShapeError, match="same number of examples"):
        case.loss(np.zeros((2, 4)), target)
    with pytest.raises(ShapeError, match="target of shape"):
        case.loss(np.zeros((3, 4)), np.zeros((3, 4, 2)))
    with pytest.raises(DtypeError):
        case.loss(np.zeros((3, 4), int), target)


def test_class_labels_have_to_be_integers():
    with pytest.raises(DtypeError, match="integer"):
        nn.SoftmaxCrossEntropy()(np.zeros((3, 4)), np.zeros(3))
    with pytest.raises(ShapeError, match="shape"):
        nn.SquaredError()(np.zeros((3, 4)), np.zeros((3, 5)))
