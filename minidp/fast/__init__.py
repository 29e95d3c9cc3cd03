"""Twins of the core's definitions, compiled for the host and for a GPU; they change no result."""
