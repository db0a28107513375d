"""DirectML's device: operators are created, compiled, initialised, bound and dispatched here.

Places of methods and layouts of structures are DirectML.h's.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .com import CallFailed, Object, Pointer, at, expect, guid
from .d3d12 import (
    COPY_DEST,
    COPY_SOURCE,
    DEFAULT_HEAP,
    READBACK_HEAP,
    UNORDERED_ACCESS,
    UPLOAD_HEAP,
    Buffer,
    DescriptorHeap,
    Device,
)
from .structures import Structures, Tagged, Tensor, total_bytes

IID_DEVICE = "6dbd6437-96fd-423f-a98c-ae5e7c2a573f"
IID_OPERATOR = "26caae7a-3081-4633-9581-226fbe57695d"
IID_COMPILED_OPERATOR = "6b15e56a-bf5c-4902-92d8-da3a650afea4"
IID_INITIALIZER = "427c1113-435c-469c-8676-4d5dd072f813"
IID_RECORDER = "e6857a76-2e3e-4fdd-bff4-5d2ba10fb453"
IID_BINDING_TABLE = "29c687dc-de74-4e3b-ab00-1168f2fc3cfc"

LEVELS = (
    0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300,
    0x6400,
)  # fmt: skip
"""DML_FEATURE_LEVEL: those that a device is asked for."""

DATA_TYPES = (
    "FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8", "FLOAT64", "UINT64", "INT64", "UINT4",
    "INT4",
)  # fmt: skip
"""DML_TENSOR_DATA_TYPE, from 1 on."""

OWNED_BY_DML = 1
"""DML_TENSOR_FLAG_OWNED_BY_DML: the tensor is bound when the operator is initialised, and never after."""

NO_BINDING, BUFFER_BINDING, BUFFERS_BINDING = 0, 1, 2
ALIGNMENT = 256
"""Where tensors begin in a buffer, in bytes: a multiple of every alignment that DirectML asks for."""

PATTERNS = (0x24, 0xDB)
"""Every byte of the outputs before the first dispatch, and before the second."""

LARGEST_COPY = 1 << 31
"""Bytes that go to the device or come back at once: they lie in this process, too. What a tensor may have on the device
is for the device to say."""


class BindingProperties(ctypes.Structure):
    """DML_BINDING_PROPERTIES."""

    _fields_ = (("descriptors", ctypes.c_uint32), ("temporary", ctypes.c_uint64), ("persistent", ctypes.c_uint64))


class BindingTableDesc(ctypes.Structure):
    """DML_BINDING_TABLE_DESC."""

    _fields_ = (
        ("dispatchable", ctypes.c_void_p),
        ("cpu", ctypes.c_size_t),
        ("gpu", ctypes.c_uint64),
        ("descriptors", ctypes.c_uint32),
    )


class BufferBinding(ctypes.Structure):
    """DML_BUFFER_BINDING."""

    _fields_ = (("buffer", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("size", ctypes.c_uint64))


class BufferArrayBinding(ctypes.Structure):
    """DML_BUFFER_ARRAY_BINDING."""

    _fields_ = (("count", ctypes.c_uint32), ("bindings", ctypes.c_void_p))


class FeatureLevels(ctypes.Structure):
    """DML_FEATURE_QUERY_FEATURE_LEVELS."""

    _fields_ = (("count", ctypes.c_uint32), ("levels", ctypes.c_void_p))


@dataclass(frozen=True)
class Span:
    """Where a tensor lies in the buffer that all inputs, or all outputs, share. offset, size: bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Dispatched:
    """What two dispatches of an operator left in its outputs, each of which began with one of PATTERNS."""

    first: list[bytes]
    second: list[bytes]


class DirectML:
    """A DirectML device, and the buffers that one operator after the other uses."""

    def __init__(self, library: Path, adapter: int = 0) -> None:
        """library: DirectML.dll. adapter: its place in DXGI's list. Raises CallFailed, or OSError where one
        of them is missing."""
        self.device = Device(adapter)
        create = ctypes.CDLL(str(library)).DMLCreateDevice1
        create.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        create.restype = ctypes.c_int32
        made, iid = Pointer(), guid(IID_DEVICE)
        expect("DMLCreateDevice1", create(self.device.object.pointer, 0, LEVELS[0], at(iid), at(made)))
        self.object = Object(made)
        self._recorder = self.object.make("IDMLDevice::CreateCommandRecorder", 11, IID_RECORDER)
        self._buffers: dict[tuple[str, int], Buffer] = {}
        self._heap: DescriptorHeap | None = None

    def level(self) -> int:
        """The highest of LEVELS that the device says it supports. Raises CallFailed."""
        asked = (ctypes.c_uint32 * len(LEVELS))(*LEVELS)
        query, answer = FeatureLevels(len(LEVELS), ctypes.addressof(asked)), ctypes.c_uint32()
        self._feature(1, query, answer)
        return answer.value

    def data_types(self) -> tuple[str, ...]:
        """The DATA_TYPES that the device says it supports; one that the query itself refuses is none."""
        found = []
        for number, name in enumerate(DATA_TYPES, start=1):
            query, answer = ctypes.c_uint32(number), ctypes.c_int32()
            with contextlib.suppress(CallFailed):
                self._feature(0, query, answer)
                found += [name] if answer.value else []
        return tuple(found)

    def _feature(self, feature: int, query: Any, answer: Any) -> None:
        sizes = ctypes.c_uint32(ctypes.sizeof(query)), ctypes.c_uint32(ctypes.sizeof(answer))
        arguments = ctypes.c_int32(feature), sizes[0], at(query), sizes[1], at(answer)
        self.object.expect("IDMLDevice::CheckFeatureSupport", 7, *arguments)

    def compile(
        self,
        call: Mapping[str, Any],
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor | None],
        flags: int,
    ) -> Object:
        """The compiled operator of a call. flags: DML_EXECUTION_FLAGS. Raises CallFailed."""
        structures = Structures(call, inputs, outputs)
        root = structures.root
        with self.object.make("IDMLDevice::CreateOperator", 8, IID_OPERATOR, at(root)) as operator:
            compiled = operator.pointer, ctypes.c_int32(flags)
            return self.object.make("IDMLDevice::CompileOperator", 9, IID_COMPILED_OPERATOR, *compiled)

    def dispatch(
        self,
        operator: Object,
        inputs: Sequence[Tensor | None],
        data: Sequence[bytes],
        outputs: Sequence[Tensor | None],
    ) -> Dispatched:
        """Initialise a compiled operator and run it twice.

        data: the bytes of each input's buffer, those of a tensor that is left out empty.
        Raises CallFailed; after DXGI_ERROR_DEVICE_REMOVED nothing else works.
        """
        pointers = (ctypes.c_void_p * 1)(operator.pointer)
        initializer = self.object.make(
            "IDMLDevice::CreateOperatorInitializer", 10, IID_INITIALIZER, ctypes.c_uint32(1), at(pointers)
        )
        with initializer:
            dispatched = _Dispatch(self, operator, initializer, inputs, data, outputs).run()
        expect("IDMLDevice::GetDeviceRemovedReason", self.object.call(15, answer=ctypes.c_int32))
        return dispatched

    def table(self, heap: DescriptorHeap, dispatchable: Object, first: int, count: int) -> Object:
        """A binding table for so many descriptors from `first` on. Raises CallFailed."""
        desc = BindingTableDesc(dispatchable.pointer.value, *heap.handles(first), count)
        return self.object.make("IDMLDevice::CreateBindingTable", 12, IID_BINDING_TABLE, at(desc))

    def record(self, dispatchable: Object, table: Object) -> None:
        """Record a dispatch with what the table binds."""
        self._recorder.call(8, self.device.list.pointer, dispatchable.pointer, table.pointer)

    def buffer(self, name: str, heap: int, size: int) -> Buffer:
        """The buffer of that name, at least so large; made anew when it has to grow. Raises CallFailed, E_OUTOFMEMORY
        above all, and MemoryError."""
        if heap != DEFAULT_HEAP and size > LARGEST_COPY:
            raise MemoryError(f"{size} bytes of {name}; at most {LARGEST_COPY} are copied")
        size = max(size, ALIGNMENT)
        known = self._buffers.get((name, heap))
        if known is None or known.size < size:
            if known is not None:
                del self._buffers[name, heap]
                known.resource.release()
            known = self._buffers[name, heap] = Buffer(self.device.object, heap, 1 << (size - 1).bit_length())
        return known

    def heap(self, count: int) -> DescriptorHeap:
        """A heap of at least so many descriptors."""
        if self._heap is None or self._heap.count < count:
            if self._heap is not None:
                self._heap.heap.release()
            self._heap = DescriptorHeap(self.device.object, max(64, 1 << (count - 1).bit_length()))
        return self._heap


class _Dispatch:
    """One operator, bound: what it needs is allocated, then everything is recorded and run at once."""

    def __init__(
        self,
        directml: DirectML,
        operator: Object,
        initializer: Object,
        inputs: Sequence[Tensor | None],
        data: Sequence[bytes],
        outputs: Sequence[Tensor | None],
    ) -> None:
        self._directml = directml
        self._operator, self._initializer = operator, initializer
        self._inputs, self._outputs = inputs, outputs
        self._data = data
        self._into, in_size = _spans(inputs)
        self._from, self._out_size = _spans(outputs)
        self._needs = operator.structure(8, BindingProperties)
        self._needs_first = initializer.structure(8, BindingProperties)
        self._in = directml.buffer("inputs", DEFAULT_HEAP, in_size)
        self._out = directml.buffer("outputs", DEFAULT_HEAP, self._out_size)
        self._upload = directml.buffer("upload", UPLOAD_HEAP, in_size + len(PATTERNS) * self._out_size)
        self._back = directml.buffer("readback", READBACK_HEAP, len(PATTERNS) * self._out_size)
        temporary = max(self._needs.temporary, self._needs_first.temporary)
        self._temporary = directml.buffer("temporary", DEFAULT_HEAP, temporary)
        self._persistent = directml.buffer("persistent", DEFAULT_HEAP, self._needs.persistent)
        self._heap = directml.heap(self._needs.descriptors + self._needs_first.descriptors + 2)
        self._in_size = in_size
        self._alive: list[Any] = []

    def run(self) -> Dispatched:
        """What the two dispatches wrote. Raises CallFailed."""
        device = self._directml.device
        chunks = [(span.offset, elements) for span, elements in zip(self._into, self._data) if span]
        for place, pattern in enumerate(PATTERNS):
            chunks.append((self._in_size + place * self._out_size, bytes([pattern]) * self._out_size))
        self._upload.write(chunks)
        device.begin()
        device.use(self._heap)
        with contextlib.ExitStack() as tables:
            self._record(tables)
            device.run()
        read = self._back.read()
        halves = [read[place * self._out_size :] for place in range(len(PATTERNS))]
        cut = [[half[s.offset : s.offset + s.size] if s else b"" for s in self._from] for half in halves]
        return Dispatched(*cut)

    def _record(self, tables: contextlib.ExitStack) -> None:
        device, directml = self._directml.device, self._directml
        if self._in_size:
            device.copy(self._in, 0, self._upload, 0, self._in_size)
            device.transition(self._in, COPY_DEST, UNORDERED_ACCESS)
        first = self._needs_first.descriptors
        initial = tables.enter_context(directml.table(self._heap, self._initializer, 0, first))
        self._bind_initializer(initial)
        directml.record(self._initializer, initial)
        device.settle()
        table = tables.enter_context(directml.table(self._heap, self._operator, first, self._needs.descriptors))
        self._bind_operator(table)
        state = COPY_DEST
        for place in range(len(PATTERNS)):
            if place:
                device.transition(self._out, state, COPY_DEST)
            device.copy(self._out, 0, self._upload, self._in_size + place * self._out_size, self._out_size)
            device.transition(self._out, COPY_DEST, UNORDERED_ACCESS)
            directml.record(self._operator, table)
            device.settle()
            device.transition(self._out, UNORDERED_ACCESS, COPY_SOURCE)
            device.copy(self._back, place * self._out_size, self._out, 0, self._out_size)
            state = COPY_SOURCE

    def _bind_initializer(self, table: Object) -> None:
        owned = [
            self._buffer(self._in, span)
            if span and tensor and tensor.get("flags", 0) & OWNED_BY_DML
            else BufferBinding()
            for tensor, span in zip(self._inputs, self._into)
        ]
        if any(binding.buffer for binding in owned):
            array = (BufferBinding * len(owned))(*owned)
            whole = BufferArrayBinding(len(owned), ctypes.addressof(array))
            self._alive += [array, whole]
            self._bind(table, 8, [Tagged(BUFFERS_BINDING, ctypes.addressof(whole))])
        if self._needs_first.temporary:
            self._bind_one(table, 10, self._temporary, self._needs_first.temporary)
        if self._needs.persistent:
            self._bind(table, 9, [self._buffer_binding(self._persistent, Span(0, self._needs.persistent))])

    def _bind_operator(self, table: Object) -> None:
        """Inputs that are left out, and those that DirectML has owned since the start, have a place as well."""
        inputs = [
            Tagged(NO_BINDING, None)
            if span is None or tensor is None or tensor.get("flags", 0) & OWNED_BY_DML
            else self._buffer_binding(self._in, span)
            for tensor, span in zip(self._inputs, self._into)
        ]
        outputs = [self._buffer_binding(self._out, s) if s else Tagged(NO_BINDING, None) for s in self._from]
        self._bind(table, 8, inputs)
        self._bind(table, 9, outputs)
        if self._needs.temporary:
            self._bind_one(table, 10, self._temporary, self._needs.temporary)
        if self._needs.persistent:
            self._bind_one(table, 11, self._persistent, self._needs.persistent)

    def _bind(self, table: Object, place: int, bindings: list[Tagged]) -> None:
        array = (Tagged * len(bindings))(*bindings)
        table.call(place, ctypes.c_uint32(len(bindings)), at(array) if bindings else Pointer())

    def _bind_one(self, table: Object, place: int, buffer: Buffer, size: int) -> None:
        binding = self._buffer_binding(buffer, Span(0, size))
        table.call(place, at(binding))

    def _buffer_binding(self, buffer: Buffer, span: Span) -> Tagged:
        binding = self._buffer(buffer, span)
        self._alive.append(binding)
        return Tagged(BUFFER_BINDING, ctypes.addressof(binding))

    def _buffer(self, buffer: Buffer, span: Span) -> BufferBinding:
        return BufferBinding(buffer.resource.pointer.value, span.offset, span.size)


def _spans(tensors: Sequence[Tensor | None]) -> tuple[list[Span | None], int]:
    """Where the tensors lie in one buffer, and its size. A tensor may ask to begin `offset` bytes later."""
    spans: list[Span | None] = []
    end = 0
    for tensor in tensors:
        if tensor is None:
            spans.append(None)
            continue
        begin = end + tensor.get("offset", 0)
        size = total_bytes(tensor)
        spans.append(Span(begin, tensor.get("bound_bytes", size)))
        end = (begin + size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return spans, end
