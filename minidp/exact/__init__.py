"""Exact arithmetic: products, sums and functions whose bits depend on one example alone."""
