import math

import numpy as np
import pytest

from minidp.backend import to_host
from minidp.data.scattering import Scattering, gaussian, morlet
from minidp.errors import DtypeError, ParameterError, ShapeError


def loop_convolution(x, kernel):
    """Circular convolution by the definition; the kernel is centred on pixel (0, 0)."""
    n = len(x)
    out = np.zeros((n, n), complex)
    for i in range(n):
        for j in range(n):
            for k in range(n):
                for l in range(n):
                    out[i, j] += x[k, l] * kernel[(i - k) % n, (j - l) % n]
    return out


def loop_scattering(x, scattering):
    """The definition for one image, with filters in space, one path at a time; (P, n, n)."""
    J, L = scattering.scales, scattering.angles
    x = np.pad(x, scattering.pad)
    whole = np.fft.ifft2(scattering._wavelets)  # in space; the filters' own tests tell what they are

    def average(u, j):
        pixels = len(u)
        row = gaussian(pixels, 0.8 * 2 ** (J - 1 - j))
        step = 2 ** (J - j)
        return loop_convolution(u, row[:, None] * row)[::step, ::step].real

    def modulus(u, j, k, b):
        psi = whole[k, b][:: 2**j, :: 2**j] * 4**j
        return np.abs(loop_convolution(u, psi))[:: 2 ** (k - j), :: 2 ** (k - j)]

    paths = [average(x, 0)]
    first = {(j, a): np.abs(loop_convolution(x, whole[j, a]))[:: 2**j, :: 2**j] for j in range(J) for a in range(L)}
    paths += [average(first[j, a], j) for j in range(J) for a in range(L)]
    for j in range(J):
        for k in range(j + 1, J):
            paths += [average(modulus(first[j, a], j, k, b), k) for a in range(L) for b in range(L)]
    return np.stack(paths)


@pytest.mark.parametrize("scales, angles, pad", [(1, 2, 0), (2, 3, 2)])
def test_equals_the_definition_by_loops(scales, angles, pad, rng):
    scattering = Scattering(8 if pad == 0 else 4, scales=scales, angles=angles, pad=pad)
    x = rng.random((2, scattering.size, scattering.size))
    y = scattering(x)
    assert y.shape == (2, *scattering.output_shape)
    for one, features in zip(x, y):
        np.testing.assert_allclose(features.transpose(2, 0, 1), loop_scattering(one, scattering), rtol=1e-6, atol=1e-9)


def test_mnist_has_81_channels_of_8_by_8():
    assert Scattering(28).output_shape == (8, 8, 81)
    assert Scattering(28, scales=3).output_shape == (4, 4, 217)  # Bruna and Mallat 2013: 1 + J L + L^2 J (J - 1) / 2


@pytest.mark.parametrize("scale, angle", [(0, 0), (1, 3), (2, 6)])
def test_filters_are_wavelets_of_their_scale_and_angle(scale, angle):
    n, angles = 64, 8
    psi = morlet(n, scale, angle, angles)
    assert abs(psi.sum()) < 1e-12 * np.abs(psi).sum()
    np.testing.assert_allclose(psi[1:, 1:], psi[:0:-1, :0:-1].conj(), atol=1e-12)  # symmetric, so its transform is real
    u = (np.arange(n) + n // 2) % n - n // 2
    turn, width = math.pi * angle / angles, 0.8 * 2**scale
    along = math.cos(turn) * u + math.sin(turn) * u[:, None]
    across = math.cos(turn) * u[:, None] - math.sin(turn) * u
    envelope = np.exp(-(along**2 + (across * 4 / angles) ** 2) / 2 / width**2)
    wave = np.exp(1j * 0.75 * math.pi * 2**-scale * along)
    beta = (envelope * wave).sum() / envelope.sum()
    np.testing.assert_allclose(psi * 4**scale, envelope * (wave - beta), atol=2e-2)  # wrapped around, this is not
    spectrum = np.abs(np.fft.fft2(psi))
    row, column = np.unravel_index(spectrum.argmax(), spectrum.shape)
    peak = 2 * math.pi / n * np.array([u[row], u[column]])
    assert math.hypot(*peak) == pytest.approx(0.75 * math.pi / 2**scale, rel=0.12)
    assert abs(math.remainder(math.atan2(*peak) - turn, math.pi)) < 0.12


def test_the_filters_increase_no_energy_and_use_it_up():
    scattering = Scattering(28)
    phi = np.abs(np.fft.fft(gaussian(32, 1.6))) ** 2
    psi = (scattering._wavelets**2).sum(axis=(0, 1))
    total = phi[:, None] * phi + (psi + np.roll(psi[::-1, ::-1], 1, (0, 1))) / 2
    assert total.max() == pytest.approx(1, abs=1e-12)
    assert (total > 1 - 1e-9).sum() > 1  # the zero frequency, and at least one more


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
