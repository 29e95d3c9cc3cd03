"""Arrays of a device in any order, dtype and number are computed as the host's are."""

import numpy as np
import pytest

from minidp import backend
from minidp.backend import Backend, to_host
from minidp.errors import DeviceUnavailableError
from minidp.grads import Explicit
from minidp.mechanism import Sanitizer, flat_group
from minidp.mechanism.noise import add_gaussian, on_host
from minidp.streams import Streams
from minidp.train import SGD
from tests.support.guarded import guarded_backend

BOTH = (Backend.numpy(), guarded_backend())
A, B = ("a", "g"), ("b", "g")


def test_a_gradient_in_another_order_is_clipped_beside_one_of_another_dtype(rng):
    g = np.asfortranarray(rng.standard_normal((6, 8)).astype("float32"))
    g[0] *= 1e6
    sanitizer = Sanitizer(flat_group({A: np.empty(8), B: np.empty(2)}, 1.0, 1.0), "explicit")
    sums = [
        sanitizer.add_clipped(
            {A: Explicit(place.asarray(g)), B: Explicit(place.asarray(np.zeros((6, 2))))}
        )
        for place in BOTH
    ]
    np.testing.assert_allclose(to_host(sums[1][A]), sums[0][A], rtol=1e-12)


def test_parameters_in_another_order_descend_along_their_own_gradients(rng):
    g, found = rng.standard_normal((3, 4)).astype("float32"), []
    for place in BOTH:
        theta = place.asarray(np.zeros((4, 3), "float32")).T
        SGD(1.0).update({A: theta}, {A: place.asarray(g)}, 0)
        found.append(to_host(theta))
    np.testing.assert_array_equal(*found)


def test_noise_of_a_part_of_an_array_has_the_places_of_the_part():
    whole = add_gaussian(np.zeros(9000), 1.0, Streams(1).noise(0))
    for place in BOTH:
        zeros, draws = place.asarray(np.zeros(5000)), Streams(1).noise(0)
        part = on_host([zeros], 1.0, draws, 1.0, "float64", (1024, 9000))
        np.testing.assert_array_equal(part, whole[1024:6024])


@pytest.mark.parametrize("name", backend.FEWER_BITS)
def test_products_of_fewer_bits_are_refused(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    with pytest.raises(DeviceUnavailableError, match=f"{name} is set"):
        Backend.cupy()
