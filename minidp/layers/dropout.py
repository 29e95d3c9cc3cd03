"""Dropout."""

from ..backend import namespace_of
from ..nn.layer import Layer
from ..util.validate import in_range


class Dropout(Layer):
    r"""Sets each coordinate to zero with probability `rate` while training, and scales up the
    others.

    Shapes
        x, y, m (B, ...)

    Forward
        [F1]  y = x m, m = [u >= rate] / (1 - rate)    u uniform on [0, 1), independent for each
              coordinate
        [F2]  y = x    without a generator: evaluation

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy m

    Source
        [F1]  Srivastava et al. 2014, Journal of Machine Learning Research 15, in the "inverted"
              form that needs no scaling in evaluation

    Guarantees
        The mask does not depend on the data. In training it follows from the step and the example's
        place in the data, not from the batch, the threads or the device.

    Raises
        ParameterError   rate is not in [0, 1)
    """

    kind = "dropout"

    def __init__(self, rate: float, name: str | None = None):
        """rate: the probability with which a coordinate is dropped, in [0, 1)."""
        super().__init__(name)
        in_range(0, 1, open_high=True, rate=rate)
        self.rate = rate

    def compute_y(self, x, rng):
        """(y, m); rng: random numbers of the rows (streams.RowDraws) in training, None in
        evaluation.
        """
        if rng is None:
            return x, None  # [F2]
        kept = namespace_of(x).asarray(rng.random(x.shape) >= self.rate)
        m = kept.astype(x.dtype) * (1 / (1 - self.rate))
        return x * m, m  # [F1]

    def compute_dx(self, dy, m):
        return dy if m is None else dy * m  # [B1]
