"""The loss of sequences."""

from numpy.typing import NDArray

from ..nn.loss import SoftmaxCrossEntropy
from ..util.validate import same_batch, shape


class SequenceCrossEntropy:
    r"""Cross-entropy of a sequence: the sum over its positions, divided by their public number T.

    Shapes
        z (B, T, K)   target (B, T) integers, -1 after the end of a sequence   losses (B,)   dz as z

    Forward
        [F1]  loss_b = sum_t m_bt (log sum_k exp(z_btk) - z_bt(target_bt)) / T,
              m_bt = [target_bt in 0..K - 1]

    Backward
        [B1]  dz_btk = m_bt (exp(z_btk) / sum_j exp(z_btj) - [k = target_bt]) / T

    Source
        [F1]  own derivation: SoftmaxCrossEntropy of each position; division by T, and not by the
              private length of a sequence, keeps a short one from counting as much as a long one

    Guarantees
        Example b of losses and dz depends on example b only, and nothing is divided by a count over
        the lot. A position whose target is not in 0..K-1 contributes zero.

    Raises
        ShapeError   z is not (B, T, K), target is not (B, T)
        DtypeError   z is not floating point, target is not integer
    """

    def __call__(self, z: NDArray, target: NDArray) -> tuple[NDArray, NDArray]:
        shape("SequenceCrossEntropy", "z", z, ("B", "T", "K"))
        shape("SequenceCrossEntropy", "target", target, ("B", z.shape[1]))
        same_batch("SequenceCrossEntropy", z=z, target=target)
        b, t, k = z.shape
        each, dz = SoftmaxCrossEntropy()(z.reshape((b * t, k)), target.reshape((b * t,)))
        losses = each.reshape((b, t)).sum(axis=1) / t  # [F1]
        return losses, dz.reshape(z.shape) / t  # [B1]
