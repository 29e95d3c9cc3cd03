"""The distribution of the privacy loss."""
