"""Backends and seeds, for the tests of the core by itself and for all others."""

import contextlib

import numpy as np
import pytest

from minidp.backend import Backend
from minidp.errors import DeviceUnavailableError
from tests.support.guarded import guarded_backend

SEED = 160700133  # any fixed number; this one is the paper's
BACKENDS = {"numpy": Backend.numpy, "guarded": guarded_backend}
with contextlib.suppress(DeviceUnavailableError):
    Backend.cupy()
    BACKENDS["cupy"] = Backend.cupy


@pytest.fixture(scope="session", params=list(BACKENDS))
def backend(request):
    """Each backend that can be used here: NumPy, the guarded arrays that stand for CuPy, CuPy
    itself.
    """
    return BACKENDS[request.param]()


@pytest.fixture
def rng(request):
    """A NumPy generator with a fixed seed, which a failing test prints."""
    request.node.add_report_section("call", "seed", f"rng = numpy.random.default_rng({SEED})")
    return np.random.default_rng(SEED)
