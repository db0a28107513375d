"""As much of Direct3D 12 as computing with buffers needs: a device, its compute queue, buffers, and lists of commands.

Places of methods and layouts of structures are d3d12.h's.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .adapters import DML, create_device, open_device
from .com import Object, Pointer, at, expect

IID_QUEUE = "0ec870a6-5d7e-4c22-8cfc-5baae07616ed"
IID_ALLOCATOR = "6102dee4-af59-4b09-b999-b44d73f09b24"
IID_LIST = "5b160d0f-ac1b-4185-8ba8-b3ae42a5a455"
IID_FENCE = "0a753dcf-c4d8-4b91-adf6-be5a60d95a76"
IID_RESOURCE = "696442be-a72e-4059-bc79-5b5c98040fad"
IID_DESCRIPTOR_HEAP = "8efb471d-616c-4f49-90f7-127bb763fa51"

TYPE_COMPUTE = 2
UPLOAD_HEAP, DEFAULT_HEAP, READBACK_HEAP = 2, 1, 3
COMMON, UNORDERED_ACCESS, COPY_DEST, COPY_SOURCE, GENERIC_READ = 0, 0x8, 0x400, 0x800, 0xAC3
ALLOW_UNORDERED_ACCESS = 0x4
ALL_SUBRESOURCES = 0xFFFFFFFF
WAIT_S = 0xFFFFFFFF
LOST = (1 << 64) - 1
"""What a fence of a removed device says."""

_STARTING_STATE = {UPLOAD_HEAP: GENERIC_READ, DEFAULT_HEAP: COMMON, READBACK_HEAP: COPY_DEST}


class QueueDesc(ctypes.Structure):
    """D3D12_COMMAND_QUEUE_DESC."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("nodes", ctypes.c_uint32),
    )


class HeapProperties(ctypes.Structure):
    """D3D12_HEAP_PROPERTIES."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("page", ctypes.c_int32),
        ("pool", ctypes.c_int32),
        ("creation_nodes", ctypes.c_uint32),
        ("visible_nodes", ctypes.c_uint32),
    )


class ResourceDesc(ctypes.Structure):
    """D3D12_RESOURCE_DESC."""

    _fields_ = (
        ("dimension", ctypes.c_int32),
        ("alignment", ctypes.c_uint64),
        ("width", ctypes.c_uint64),
        ("height", ctypes.c_uint32),
        ("depth", ctypes.c_uint16),
        ("mip_levels", ctypes.c_uint16),
        ("format", ctypes.c_int32),
        ("samples", ctypes.c_uint32),
        ("quality", ctypes.c_uint32),
        ("layout", ctypes.c_int32),
        ("flags", ctypes.c_int32),
    )


class DescriptorHeapDesc(ctypes.Structure):
    """D3D12_DESCRIPTOR_HEAP_DESC."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("count", ctypes.c_uint32),
        ("flags", ctypes.c_int32),
        ("nodes", ctypes.c_uint32),
    )


class Barrier(ctypes.Structure):
    """D3D12_RESOURCE_BARRIER, of a transition (type 0) or of unordered access (type 2)."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("resource", ctypes.c_void_p),
        ("subresource", ctypes.c_uint32),
        ("before", ctypes.c_int32),
        ("after", ctypes.c_int32),
    )


class Buffer:
    """A committed buffer of so many bytes on one of the three heaps."""

    def __init__(self, device: Object, heap: int, size: int) -> None:
        """Raises CallFailed, E_OUTOFMEMORY above all."""
        properties = HeapProperties(type=heap, creation_nodes=1, visible_nodes=1)
        flags = ALLOW_UNORDERED_ACCESS if heap == DEFAULT_HEAP else 0
        desc = ResourceDesc(dimension=1, width=size, height=1, depth=1, mip_levels=1, samples=1, layout=1, flags=flags)
        self.size = size
        self.resource = device.make(
            f"ID3D12Device::CreateCommittedResource of {size} bytes", 27, IID_RESOURCE, at(properties),
            ctypes.c_int32(0), at(desc), ctypes.c_int32(_STARTING_STATE[heap]), Pointer(),
        )  # fmt: skip

    def write(self, chunks: list[tuple[int, bytes]]) -> None:
        """Write (offset, bytes) pairs into a buffer of the upload heap."""
        address = self._map()
        for offset, data in chunks:
            ctypes.memmove(address + offset, data, len(data))
        self._unmap()

    def read(self) -> bytes:
        """All bytes of a buffer of the readback heap."""
        data = ctypes.string_at(self._map(), self.size)
        self._unmap()
        return data

    def _map(self) -> int:
        data = Pointer()
        self.resource.expect("ID3D12Resource::Map", 8, ctypes.c_uint32(0), Pointer(), at(data))
        return data.value or 0

    def _unmap(self) -> None:
        self.resource.call(9, ctypes.c_uint32(0), Pointer())


class DescriptorHeap:
    """Descriptors that shaders see."""

    def __init__(self, device: Object, count: int) -> None:
        """Raises CallFailed."""
        desc = DescriptorHeapDesc(type=0, count=count, flags=1)
        self.count = count
        self.heap = device.make("ID3D12Device::CreateDescriptorHeap", 14, IID_DESCRIPTOR_HEAP, at(desc))
        self._step = device.call(15, ctypes.c_int32(0), answer=ctypes.c_uint32)
        self._cpu = self.heap.structure(9, ctypes.c_size_t).value
        self._gpu = self.heap.structure(10, ctypes.c_uint64).value

    def handles(self, first: int) -> tuple[int, int]:
        """The CPU's and the GPU's handle of a descriptor."""
        return self._cpu + first * self._step, self._gpu + first * self._step


class Device:
    """A Direct3D 12 device of an adapter, with a compute queue and one list of commands, recorded and run."""

    def __init__(self, adapter: int = 0) -> None:
        """adapter: its place in DXGI's list. Raises CallFailed, or OSError where there is no Direct3D 12, or no such
        adapter."""
        device = open_device([(DML, {"device_id": str(adapter)})]) if adapter else create_device(None)
        if device is None:
            raise OSError(f"this machine has no adapter {adapter}")
        self.object = device
        queue, kind = QueueDesc(type=TYPE_COMPUTE), ctypes.c_int32(TYPE_COMPUTE)
        self._queue = self.object.make("ID3D12Device::CreateCommandQueue", 8, IID_QUEUE, at(queue))
        self._allocator = self.object.make("ID3D12Device::CreateCommandAllocator", 9, IID_ALLOCATOR, kind)
        self.list = self.object.make(
            "ID3D12Device::CreateCommandList",
            12,
            IID_LIST,
            ctypes.c_uint32(0),
            kind,
            self._allocator.pointer,
            Pointer(),
        )
        fence = (ctypes.c_uint64(0), ctypes.c_int32(0))
        self._fence = self.object.make("ID3D12Device::CreateFence", 36, IID_FENCE, *fence)
        self._submitted = 0
        self._is_open = True
        kernel = ctypes.CDLL("kernel32.dll")
        self._wait: Any = kernel.WaitForSingleObject
        self._wait.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
        kernel.CreateEventW.restype = ctypes.c_void_p
        self._event = Pointer(kernel.CreateEventW(None, 0, 0, None))

    def read_removed_reason(self) -> int:
        """The HRESULT that says why the device is gone, unsigned; 0 while it works."""
        return int(self.object.call(37, answer=ctypes.c_uint32))

    def begin(self) -> None:
        """Forget whatever was recorded and not run. Raises CallFailed."""
        if self._is_open:
            self.list.call(9, answer=ctypes.c_int32)
        self._allocator.expect("ID3D12CommandAllocator::Reset", 8)
        self.list.expect("ID3D12GraphicsCommandList::Reset", 10, self._allocator.pointer, Pointer())
        self._is_open = True

    def copy(self, target: Buffer, at_target: int, source: Buffer, at_source: int, size: int) -> None:
        """Record a copy of so many bytes."""
        places = ctypes.c_uint64(at_target), source.resource.pointer, ctypes.c_uint64(at_source), ctypes.c_uint64(size)
        self.list.call(15, target.resource.pointer, *places)

    def transition(self, buffer: Buffer, before: int, after: int) -> None:
        """Record that a buffer is used otherwise from here on."""
        self._barrier(Barrier(0, 0, buffer.resource.pointer.value, ALL_SUBRESOURCES, before, after))

    def settle(self) -> None:
        """Record that all writes of the dispatches before come before all that follows."""
        self._barrier(Barrier(2, 0, None, 0, 0, 0))

    def use(self, heap: DescriptorHeap) -> None:
        """Record which descriptors the dispatches that follow mean."""
        heaps = (ctypes.c_void_p * 1)(heap.heap.pointer)
        self.list.call(28, ctypes.c_uint32(1), at(heaps))

    def run(self) -> None:
        """Run what was recorded, to its end. Raises CallFailed, with the reason where the device was removed."""
        self._is_open = False
        self.list.expect("ID3D12GraphicsCommandList::Close", 9)
        lists = (ctypes.c_void_p * 1)(self.list.pointer)
        self._queue.call(10, ctypes.c_uint32(1), at(lists))
        self._submitted += 1
        value = ctypes.c_uint64(self._submitted)
        self._queue.expect("ID3D12CommandQueue::Signal", 14, self._fence.pointer, value)
        if self._fence.call(8, answer=ctypes.c_uint64) < self._submitted:
            self._fence.expect("ID3D12Fence::SetEventOnCompletion", 9, value, self._event)
            self._wait(self._event, WAIT_S)
        expect("ID3D12Device::GetDeviceRemovedReason", self.read_removed_reason())

    def _barrier(self, barrier: Barrier) -> None:
        self.list.call(26, ctypes.c_uint32(1), at(barrier))
