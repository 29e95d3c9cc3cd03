"""Releases before the first step: principal components, means, scaling."""
