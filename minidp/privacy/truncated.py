"""The event of a Poisson lot that is cut at a public size; its pair is
`pld.cells.truncated_masses`.
"""

from dataclasses import dataclass

from .events import Event, Gaussian, PoissonSampled, share_and_noise


@dataclass(frozen=True)
class TruncatedPoissonSampled(Event):
    """As PoissonSampled, of at most dataset_size examples; a lot above max_lot_size is cut to so
    many of it, drawn uniformly.
    """

    sampling_probability: float
    dataset_size: int
    max_lot_size: int
    event: Event

    @property
    def untruncated(self) -> PoissonSampled:
        """The event without the cut."""
        return PoissonSampled(self.sampling_probability, self.event)

    @property
    def dominating(self) -> PoissonSampled:
        """Of Gaussian noise, what costs at least as much: every lot may be cut."""
        return PoissonSampled(self.sampling_probability, Gaussian(share_and_noise(self)[1] / 2))

    def tail(self, others: int) -> float:
        """P(more than max_lot_size are drawn), of all examples and `others` = 0; with 1, that all
        but one fill the lot. Rounded up.
        """
        from scipy.special import bdtrc

        size, most = self.dataset_size - others, self.max_lot_size - others
        above = float(bdtrc(most, size, self.sampling_probability)) if most < size else 0.0
        return min(1.0, above * (1 + 1e-6) + 1e-300)
