"""Fixtures for the tests of the core, which in a copy of it have no other conftest."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads

from tests.support.fixtures import backend, rng  # noqa: E402, F401
