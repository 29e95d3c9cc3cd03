"""The distribution of the privacy loss. Masses of events are registered here."""

from . import cells, variants  # noqa: F401
