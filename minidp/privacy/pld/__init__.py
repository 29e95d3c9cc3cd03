"""The distribution of the privacy loss. Masses of events are registered here."""

from . import balls, cells, variants  # noqa: F401
