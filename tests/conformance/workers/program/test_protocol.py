"""Frames: every dtype and shape comes through, and what is no frame is named."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from epcheck.conformance.workers.program import protocol

DTYPES = [*(np.dtype(code) for code in "?bBhHiIlLqQefdFD"), np.dtype(ml_dtypes.bfloat16)]


def through_a_pipe(header: dict[str, Any], tensors: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    stream = io.BytesIO()
    protocol.write_frame(stream, protocol.encode(header, tensors))
    stream.seek(0)
    frame = protocol.read_frame(stream)
    assert frame is not None
    assert protocol.read_frame(stream) is None
    return frame[0], dict(protocol.decode(*frame))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 4), (2, 3, 4), (1,) * 8], ids=str)
def test_every_bit_of_every_dtype_and_shape_comes_through(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    bits = np.random.default_rng(1).integers(0, 2 if dtype.kind == "b" else 256, (*shape, dtype.itemsize), np.uint8)
    array = bits.view(dtype).reshape(shape)
    _, received = through_a_pipe({}, {"x": array})
    assert (received["x"].dtype, received["x"].shape) == (dtype, shape)
    assert received["x"].tobytes() == array.tobytes()


def test_several_tensors_keep_their_names_and_order() -> None:
    sent = {"b": np.arange(3), "": np.zeros((0, 2)), "a\0[red]": np.array(True)}
    header, received = through_a_pipe({"op": "x", "id": "ü"}, sent)
    assert (header["op"], header["id"], list(received)) == ("x", "ü", ["b", "", "a\0[red]"])


@pytest.mark.parametrize("view", [np.arange(12.0).reshape(3, 4).T, np.arange(6.0)[::-2], np.arange(3, dtype=">i4")])
def test_values_come_through_whatever_the_memory_layout(view: np.ndarray[Any, Any]) -> None:
    _, received = through_a_pipe({}, {"x": view})
    assert np.array_equal(received["x"], view)
    assert received["x"].dtype == view.dtype.newbyteorder("=")


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([None]), np.zeros(1, "i4,f4"), np.array([b"a"])], ids=str)
def test_what_is_no_number_is_not_sent(value: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypeError, match=r"'x' has the dtype .*, which is no tensor of numbers"):
        protocol.encode({}, {"x": value})


@pytest.mark.parametrize(
    ("tensors", "body"),
    [
        ([["x", "float32", [-1]]], b"1234"),
        ([["x", "float32", [2]]], b"1234"),
        ([["x", "float32", [1 << 70]]], b"1234"),
        ([["x", "float32", [1]]], b"12345678"),
        ([["x", "float32", [1.0]]], b"1234"),
        ([["x", "object", [1]]], b"12345678"),
        ([["x", "nonsense", []]], b""),
        ([["x", "a", [1]]], b"1"),
        ([["x", "f4", [1]]], b"1234"),
        ([["x", "str_", [1]]], b"1234"),
        ([["x", "void", [1 << 60]]], b""),
        ([["x", 4, []]], b""),
        ([["x", "float32", 4]], b"1234"),
        ([["x"]], b""),
        ([7], b""),
    ],
    ids=str,
)
def test_a_header_that_does_not_describe_its_body_is_refused(tensors: list[Any], body: bytes) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        list(protocol.decode({"tensors": tensors}, body))


@pytest.mark.parametrize(
    "content",
    [
        b"Welcome to this machine!",
        b"EPC1",
        b"EPC2" + bytes(12),
        protocol.PREFIX.pack(b"EPC1", protocol.MAX_HEADER + 1, 0),
        protocol.PREFIX.pack(b"EPC1", 2, protocol.MAX_BODY + 1),
        protocol.PREFIX.pack(b"EPC1", 2, 0) + b"[]",
        protocol.PREFIX.pack(b"EPC1", 2, 0) + b"\xff\xff",
        protocol.PREFIX.pack(b"EPC1", 0, 0),
    ],
)
def test_what_is_no_frame_is_named_with_its_first_bytes(content: bytes) -> None:
    with pytest.raises(protocol.NotAFrame) as caught:
        protocol.read_frame(io.BytesIO(content))
    assert content.endswith(caught.value.received) or content.startswith(caught.value.received)
    assert str(caught.value) == f"{len(caught.value.received)} bytes that are no frame: {caught.value.received!r}"


@pytest.mark.parametrize("kept", [16, 20, 30])
def test_a_frame_that_is_cut_short_is_the_end_of_the_stream(kept: int) -> None:
    frame = b"".join(protocol.encode({"op": "x"}, {"x": np.arange(4)}))
    assert protocol.read_frame(io.BytesIO(frame[:kept])) is None


def test_a_length_that_lies_costs_no_memory() -> None:
    stream = io.BytesIO(protocol.PREFIX.pack(b"EPC1", 2, protocol.MAX_BODY) + b"{}" + bytes(1000))
    tracemalloc.start()
    assert protocol.read_frame(stream) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * protocol.CHUNK


def test_half_of_a_surrogate_pair_in_a_name_is_written_out() -> None:
    """What is kept of an answer is UTF-8: a run ended when it compared the outputs of two attempts."""
    _, received = through_a_pipe({}, {"\ud800y": np.zeros(1), "\U0001f600": np.ones(1)})
    assert list(received) == ["\\ud800y", "\U0001f600"]


def test_tensors_stand_at_aligned_addresses_whatever_is_before_them() -> None:
    body = bytes(range(64))
    odd = np.frombuffer(body, np.float32, 6, 3).reshape(2, 3)
    aligned = protocol.align_all([("odd", odd), ("scalar", odd[:1, :1].reshape(())), ("nothing", odd[:0])])
    assert aligned["odd"].ctypes.data % protocol.ALIGNMENT == 0
    assert aligned["odd"].tobytes() == odd.tobytes()
    assert [aligned[name].shape for name in aligned] == [(2, 3), (), (0, 3)]
    again = protocol.align_all(aligned.items())
    assert again["odd"] is aligned["odd"]


@pytest.mark.parametrize("shape", [[2, 3], [3, 5], [1, 4], [0, 2], [12]])
def test_elements_are_repeated_to_a_shape(shape: list[int]) -> None:
    drawn = np.arange(1, 7, dtype=np.float16)
    repeated = protocol.align_all([("x", drawn), ("y", drawn)], {"x": shape})
    np.testing.assert_array_equal(repeated["x"], np.resize(drawn, shape))
    assert (repeated["x"].shape, repeated["y"].shape) == (tuple(shape), (6,))
    assert repeated["x"].ctypes.data % protocol.ALIGNMENT == 0 or not repeated["x"].size
