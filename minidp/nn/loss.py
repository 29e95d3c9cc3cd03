"""Losses: one number for each example. There is no mean and no 1/B."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..arrays import namespace_of, zero_rows_unless
from ..compiled import kernel
from ..errors import DtypeError, ShapeError
from ..util.validate import inexact, same_batch, shape

Loss = Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]  # (z, target) -> (losses (B,), dz)


class SoftmaxCrossEntropy:
    r"""Cross-entropy of softmax(z) against the index of the true class.

    Shapes
        z (B, K)   target (B,) integers in 0..K-1   losses (B,)   dz (B, K)

    Forward
        [F1]  loss_b = log sum_k exp(z_bk) - z_b(target_b)    shifted by max_k z_bk so that nothing
              overflows
        [F2]  loss_b = 0 where target_b not in 0..K-1

    Backward
        [B1]  dz_bk = exp(z_bk) / sum_j exp(z_bj) - [k = target_b]
        [B2]  dz_bk = 0 where target_b not in 0..K-1

    Source
        [F1]  Abadi et al. 2016, Section 5.2, "softmax of 10 classes with cross-entropy loss"

    Guarantees
        Example b of losses and dz depends on example b only. A target outside 0..K-1 contributes
        zero and raises no error, because values of examples never do.

    Raises
        ShapeError   z is not (B, K), target is not (B,)
        DtypeError   z is not floating point, target is not integer

    >>> import numpy as np
    >>> losses, dz = SoftmaxCrossEntropy()(np.zeros((2, 4)), np.array([0, 3]))
    >>> losses.round(4).tolist(), dz.tolist()
    ([1.3863, 1.3863], [[-0.75, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, -0.75]])
    """

    def __call__(self, z: NDArray, target: NDArray) -> tuple[NDArray, NDArray]:
        xp = namespace_of(z, target)
        _check("SoftmaxCrossEntropy", z, target, 1)
        if target.dtype.kind not in "iu":
            raise DtypeError(
                f"SoftmaxCrossEntropy: expected target of an integer dtype, got {target.dtype}"
            )
        twin = kernel("softmax_cross_entropy", z)
        if twin and z.shape[1]:
            losses, dz = xp.empty(z.shape[:1], np.float32), xp.empty(z.shape, np.float32)
            twin(xp.ascontiguousarray(z), xp.ascontiguousarray(target), losses, dz)
            return losses, dz
        shifted = z - z.max(axis=1, keepdims=True)
        e = xp.exp(shifted)
        total = e.sum(axis=1)
        true_class = xp.arange(z.shape[1]) == target[:, None]
        known = (target >= 0) & (target < z.shape[1])
        losses = xp.log(total) - xp.where(true_class, shifted, z.dtype.type(0)).sum(axis=1)  # [F1]
        dz = e / total[:, None] - true_class  # [B1]
        return zero_rows_unless(known, losses), zero_rows_unless(known, dz)  # [F2] [B2]


class SquaredError:
    r"""Half the squared distance of z from a target vector.

    Shapes
        z, target (B, K)   losses (B,)   dz (B, K)

    Forward
        [F1]  loss_b = 1/2 sum_k (z_bk - target_bk)^2

    Backward
        [B1]  dz_bk = z_bk - target_bk

    Source
        [B1]  own derivation: the derivative of (z - t)^2 / 2 is z - t

    Guarantees
        Example b of losses and dz depends on example b only.

    Raises
        ShapeError   z is not (B, K), target has another shape
        DtypeError   z or target is not floating point
    """

    def __call__(self, z: NDArray, target: NDArray) -> tuple[NDArray, NDArray]:
        namespace_of(z, target)
        _check("SquaredError", z, target, 2)
        inexact("SquaredError", target=target)
        if target.shape != z.shape:
            raise ShapeError(
                f"SquaredError: expected target of shape {z.shape}, got {target.shape}"
            )
        dz = z - target  # [B1]
        return 0.5 * (dz * dz).sum(axis=1), dz  # [F1]


def _check(where, z, target, target_ndim):
    inexact(where, z=z)
    shape(where, "z", z, ("B", "K"))
    shape(where, "target", target, ("B", "K")[:target_ndim])
    same_batch(where, z=z, target=target)
