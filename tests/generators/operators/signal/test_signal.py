"""DFT and STFT against the transforms of numpy, which are another algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs


def built(case_id: str) -> tuple[dict[str, Array], Array]:
    built = suite.case_by_id(case_id).build()
    assert isinstance(built.truth, Outputs)
    exact = built.truth.outputs[0].exact
    assert exact is not None
    return {o.name: o.value.astype(np.float64) for o in built.node.inputs if o is not None}, exact


def parts(spectrum: Array) -> Array:
    return np.stack([spectrum.real, spectrum.imag], -1)


@pytest.mark.parametrize("length", [5, 16, 31, 1031])
def test_the_sums_are_the_fast_transform(length: int) -> None:
    inputs, exact = built(f"DFT-20/float32/complex_of_{length}[initializer]")
    signal = inputs["input"][..., 0] + 1j * inputs["input"][..., 1]
    assert np.allclose(exact, parts(np.fft.fft(signal, axis=1)), atol=1e-10)


def test_a_longer_inverse_is_padded_with_zeros() -> None:
    inputs, exact = built("DFT-20/float32/complex_length_16_inverse[initializer]")
    signal = inputs["input"][..., 0] + 1j * inputs["input"][..., 1]
    assert np.allclose(exact, parts(np.fft.ifft(signal, n=16, axis=1)), atol=1e-12)


@pytest.mark.parametrize("length", [2, 3, 8, 9, 16, 17])
def test_the_inverse_of_a_one_sided_spectrum_is_real(length: int) -> None:
    inputs, exact = built(f"DFT-20/float32/onesided_inverse_length_{length}[initializer]")
    half = inputs["input"][..., 0] + 1j * inputs["input"][..., 1]
    assert np.allclose(exact[..., 0], np.fft.irfft(half, n=length, axis=1), atol=1e-12)


def test_a_frame_is_windowed_before_it_is_transformed() -> None:
    inputs, exact = built("STFT-17/float32/step_5[initializer]")
    signal, window = inputs["signal"][..., 0], inputs["window"]
    for frame in range((32 - 8) // 5 + 1):
        wanted = np.fft.rfft(signal[:, 5 * frame : 5 * frame + 8] * window, axis=1)
        assert np.allclose(exact[:, frame], parts(wanted), atol=1e-12)
