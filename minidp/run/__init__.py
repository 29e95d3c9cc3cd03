"""A private run on disk."""
