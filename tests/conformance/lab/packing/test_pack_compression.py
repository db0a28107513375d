import io
import lzma
import random

import pytest

from epcheck.conformance.lab.packing import compression
from epcheck.conformance.lab.packing.compression import Decompressed


@pytest.fixture
def content(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Content of several pieces, the last of which is not full."""
    monkeypatch.setattr(compression, "_PIECE", 10_000)
    return random.Random(0).randbytes(45_000)


def packed(content: bytes) -> tuple[bytes, list[int]]:
    target, done = io.BytesIO(), list[int]()
    compression.compress(io.BytesIO(content), target, done.append)
    return target.getvalue(), done


def read(source: bytes, most: int) -> bytes:
    stream = Decompressed(io.BytesIO(source), most)
    return b"".join(iter(lambda: stream.read(7000), b""))


def test_pieces_are_read_as_one_file_by_us_and_by_others(content: bytes) -> None:
    file, done = packed(content)
    assert done == [10_000, 20_000, 30_000, 40_000, 45_000]
    assert read(file, len(content)) == content
    assert lzma.decompress(file) == content


@pytest.mark.parametrize("cut", [1, 5_000, 20_000])
def test_a_file_that_is_not_whole_is_noticed(content: bytes, cut: int) -> None:
    with pytest.raises(EOFError, match="the file ends in the middle"):
        read(packed(content)[0][:-cut], len(content))


def test_more_content_than_is_allowed_is_refused(content: bytes) -> None:
    file = packed(content)[0]
    with pytest.raises(ValueError, match="more content than it may have"):
        read(file, len(content) - 1)
    stream = Decompressed(io.BytesIO(file), 5000)
    stream.allow(len(content))
    assert stream.read(8000) == content[:8000]


def test_a_file_that_wants_much_memory_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    file = lzma.compress(b"x", filters=filters)
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        read(file, 100)
