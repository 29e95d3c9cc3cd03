"""Attacks on private training that `tools.audit_empirical` runs."""
