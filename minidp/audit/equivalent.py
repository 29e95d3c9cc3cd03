"""Mutants that no measurement can tell from the original, by name, each with its reason."""
EQUIVALENT = {}
