"""Feeds of strangers: an .npz with damaged headers or bytes is a sentence, or the arrays that it holds."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import hypothesis
import numpy as np
import onnx.parser
import pytest
from hypothesis import strategies as st

from epcheck.generators.error import EpcheckError
from epcheck.models.feeds import feeds
from epcheck.models.feeds.feed_files import FeedError
from tests.fuzzing.damage import damaged, examples

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
)
VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)
GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

HEADERS = (
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 3), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': ('<f4', (1000000000, 1000000000)), 'fortran_order': False, 'shape': (), }",
    "{'descr': None, 'fortran_order': 3, 'shape': None, }",
    "{'descr': '<f4', 'shape': (2, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 3000 + ", }",
    "__import__('os').system('echo evil')",
    "{'descr': '''", "{", "", "\0", "é" * 20, "x" * 20_000,
)  # fmt: skip


def with_header(header: str, data: bytes = VALUE.tobytes()) -> bytes:
    """An .npz whose only array has this header."""
    text = header.encode("latin1", "replace") + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(text), 65535)) + text + data)
    return buffer.getvalue()


def read(path: Path, data: bytes) -> np.ndarray:
    path.write_bytes(data)
    (only,) = feeds.read(path, MODEL)
    value = only.inputs["x"]
    assert isinstance(value, np.ndarray)
    return value


def test_the_header_that_the_others_are_made_of_is_right(tmp_path: Path) -> None:
    assert np.array_equal(read(tmp_path / "x.npz", with_header(GOOD)), VALUE)


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_a_header_that_is_none_is_a_sentence(tmp_path: Path, header: str) -> None:
    with pytest.raises(FeedError, match=r"is not a readable \.npz file|is \w+, but|has the shape"):
        read(tmp_path / "x.npz", with_header(header))


def test_fewer_bytes_than_the_header_says_are_noticed_before_memory_is_taken(tmp_path: Path) -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000, 3), }"
    with pytest.raises(
        FeedError, match=r"'x\.npy' has 24 bytes of data; \[100000000000, 3\] of float32 needs 1,200,000"
    ):
        read(tmp_path / "x.npz", with_header(header))


RIGHT = with_header(GOOD)
"""Made once: an archive has the time at which it was made, and what is drawn shall not depend on that."""


@examples(200)
@hypothesis.given(data=st.data())
def test_a_damaged_file_is_a_sentence_or_right(tmp_path: Path, data: st.DataObject) -> None:
    sentence = ""
    try:
        value = read(tmp_path / "x.npz", data.draw(damaged(RIGHT)))
    except EpcheckError as error:
        sentence = str(error)
    else:
        assert np.array_equal(value, VALUE)  # a zip has checksums
    assert len(sentence.splitlines()) <= 1
