"""Calling COM objects: a pointer to a table of functions, of which a method is one, by its place.

Places are counted from IUnknown's three, in the order of the header that declares an interface. On a 64-bit system
there is one calling convention, so ctypes' plain function types are COM's.
"""

from __future__ import annotations

import ctypes
import uuid
from typing import Any

Pointer = ctypes.c_void_p

QUERY_INTERFACE, RELEASE = 0, 2

NAMES = {
    0x80004001: "E_NOTIMPL",
    0x80004002: "E_NOINTERFACE",
    0x80004005: "E_FAIL",
    0x8000FFFF: "E_UNEXPECTED",
    0x80070057: "E_INVALIDARG",
    0x8007000E: "E_OUTOFMEMORY",
    0x887A0001: "DXGI_ERROR_INVALID_CALL",
    0x887A0004: "DXGI_ERROR_UNSUPPORTED",
    0x887A0005: "DXGI_ERROR_DEVICE_REMOVED",
    0x887A0006: "DXGI_ERROR_DEVICE_HUNG",
    0x887A0007: "DXGI_ERROR_DEVICE_RESET",
    0x887A0020: "DXGI_ERROR_DRIVER_INTERNAL_ERROR",
}
"""HRESULT -> its name in winerror.h."""


class CallFailed(OSError):  # noqa: N818  (named for what happened)
    """A call answered an HRESULT that is no success: `what` was called, `result` came back, unsigned."""

    def __init__(self, what: str, result: int) -> None:
        self.what = what
        self.result = result & 0xFFFFFFFF
        name = NAMES.get(self.result, "")
        super().__init__(f"{what} answered {self.result:08X}{f' {name}' if name else ''}")


def expect(what: str, result: int) -> None:
    """Raise CallFailed unless the HRESULT is a success."""
    if result < 0 or result >= 0x80000000:
        raise CallFailed(what, result)


def at(data: Any) -> ctypes.c_void_p:
    """The address of something that ctypes made; whoever passes it keeps the thing alive."""
    return Pointer(ctypes.addressof(data))


def guid(text: str) -> Any:
    """An interface's id, in memory."""
    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


class Object:
    """A COM object that this process holds a reference to, until it leaves the `with` block or is released."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self.pointer = pointer

    def __enter__(self) -> Object:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go of it; once."""
        if self.pointer:
            pointer, self.pointer = self.pointer, Pointer()
            function(pointer, RELEASE, ctypes.c_uint32)(pointer)

    def call(self, place: int, *arguments: Any, answer: Any = None) -> Any:
        """A method that answers `answer`, a type of ctypes, or nothing. The arguments are values of ctypes."""
        types = [type(argument) for argument in arguments]
        return function(self.pointer, place, answer, *types)(self.pointer, *arguments)

    def expect(self, what: str, place: int, *arguments: Any) -> None:
        """A method that answers an HRESULT. Raises CallFailed."""
        expect(what, self.call(place, *arguments, answer=ctypes.c_int32))

    def make(self, what: str, place: int, iid: str, *arguments: Any) -> Object:
        """A method whose last two arguments are the id of the interface wanted and where its pointer goes.

        Raises CallFailed.
        """
        made, wanted = Pointer(), guid(iid)
        self.expect(what, place, *arguments, at(wanted), at(made))
        return Object(made)

    def structure(self, place: int, kind: Any, *arguments: Any) -> Any:
        """A method that answers a structure: C++ has the caller say where it goes, before the other arguments."""
        filled = kind()
        self.call(place, at(filled), *arguments, answer=ctypes.c_void_p)
        return filled


def function(pointer: ctypes.c_void_p, place: int, answer: Any, *types: Any) -> Any:
    """The method at a place of an object's table."""
    table = ctypes.c_void_p.from_address(pointer.value or 0).value or 0
    address = ctypes.c_void_p.from_address(table + place * ctypes.sizeof(ctypes.c_void_p)).value or 0
    return ctypes.CFUNCTYPE(answer, ctypes.c_void_p, *types)(address)
