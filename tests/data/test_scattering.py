
import numpy as np
import pytest

from minidp.backend import to_host
from minidp.data.scattering import Scattering
from minidp.errors import DtypeError, ParameterError, ShapeError


def test_mnist_has_81_channels_of_8_by_8():
    assert Scattering(28).output_shape == (8, 8, 81)
    assert Scattering(28, scales=3).output_shape == (4, 4, 217)  # Bruna and Mallat 2013: 1 + J L + L^2 J (J - 1) / 2


def test_energy_is_not_increased(rng):
    scattering = Scattering(28)
    x = np.zeros((4, 28, 28))
    x[:, 8:20, 8:20] = rng.random((4, 12, 12))
    x[3] = rng.standard_normal((28, 28))
    other = x + 0.1 * rng.standard_normal(x.shape)
    y, moved = scattering(x), scattering(other)
    area = 16  # pixels that one position stands for
    assert (area * (y**2).sum(axis=(1, 2, 3)) < (x**2).sum(axis=(1, 2))).all()
    assert (area * ((y - moved) ** 2).sum(axis=(1, 2, 3)) < ((x - other) ** 2).sum(axis=(1, 2))).all()


def test_shifts_move_the_positions_and_small_ones_change_little(rng):
    scattering = Scattering(28)
    x = np.zeros((1, 28, 28))
    x[0, 8:16, 8:16] = np.add.outer(np.hanning(8), np.hanning(8))
    shifted = np.roll(x, (4, -4), (1, 2))
    y = scattering(x)
    np.testing.assert_allclose(scattering(shifted), np.roll(y, (1, -1), (1, 2)), atol=1e-12)
    stripes = x * np.cos(2 * np.arange(28))
    moved = np.roll(stripes, 1, 2)
    relative = lambda a, b: np.linalg.norm(a - b) / np.linalg.norm(a)
    assert relative(scattering(stripes), scattering(moved)) < 0.25 * relative(stripes, moved)


def test_the_mirror_image_has_mirrored_angles(rng):
    x = rng.random((1, 16, 16))
    scattering = Scattering(16, pad=0, angles=4)
    y, mirrored = (scattering(image)[0] for image in (x, x.transpose(0, 2, 1)))
    other = [(2 - a) % 4 for a in range(4)]  # pi/2 minus the angle; the modulus does not tell it from pi more
    first, back = (features[..., 1:9].reshape(4, 4, 2, 4) for features in (y, mirrored))
    np.testing.assert_allclose(back[:, :, :, other].transpose(1, 0, 2, 3), first, atol=1e-12)
    second, back = (features[..., 9:].reshape(4, 4, 4, 4) for features in (y, mirrored))
    np.testing.assert_allclose(back[:, :, other][:, :, :, other].transpose(1, 0, 2, 3), second, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_backend_and_dtype(dtype, backend, rng):
    scattering = Scattering(12, scales=2, angles=2, pad=0)
    x = rng.random((3, 12, 12))
    y = scattering(backend.asarray(x, dtype=dtype))
    assert y.dtype == dtype
    np.testing.assert_allclose(to_host(y), scattering(x), atol=1e-6)


def test_images_do_not_meet_and_stay_as_they_are(rng):
    scattering = Scattering(8, scales=1, angles=2, pad=0)
    x = rng.random((70, 8, 8)).astype(np.float32)
    before, done = x.copy(), []
    y = scattering(x, done.append)
    np.testing.assert_array_equal(x, before)
    assert sum(done) == 70
    np.testing.assert_allclose(scattering(x[41:42]), y[41:42], rtol=1e-5, atol=1e-7)
    x[0] = 1 - x[0]
    np.testing.assert_array_equal(scattering(x)[1:], y[1:])


def test_an_even_image_has_no_wavelet_coefficients():
    y = Scattering(16, pad=0, angles=2)(np.full((1, 16, 16), 0.5))
    np.testing.assert_allclose(y[..., 0], 0.5)
    np.testing.assert_allclose(y[..., 1:], 0, atol=1e-12)


def test_an_empty_batch_is_empty():
    assert Scattering(28)(np.zeros((0, 28, 28), np.float32)).shape == (0, 8, 8, 81)


@pytest.mark.parametrize("settings, message", [
    ({"size": 0}, "size=0"), ({"scales": 0}, "scales=0"), ({"angles": -1}, "angles=-1"), ({"pad": -1}, "pad=-1"),
    ({"size": 29}, "size + 2 pad = 33 to be a multiple of 2^scales = 4"), ({"size": 2.0}, "size=2.0")])
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ParameterError) as caught:
        Scattering(**{"size": 28, **settings})
    assert message in str(caught.value)


def test_wrong_images_are_refused():
    scattering = Scattering(28)
    with pytest.raises(ShapeError, match=r"scattering: expected x of shape \(B, 28, 28\), got \(2, 28, 28, 1\)"):
        scattering(np.zeros((2, 28, 28, 1), np.float32))
    with pytest.raises(DtypeError, match="scattering"):
        scattering(np.zeros((2, 28, 28), np.uint8))
