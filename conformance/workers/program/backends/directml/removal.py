"""Why the device below a session of DirectML's provider is gone.

ONNX Runtime gives nobody its ID3D12Device. But a process has one device of an adapter: a further D3D12CreateDevice
answers the same one, as long as it works (https://learn.microsoft.com/windows/win32/api/d3d12/nf-d3d12-d3d12createdevice).
Who has held it since before it was removed can ask it for the reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Mapping, Sequence

from .adapters import open_device
from .com import NAMES, Object

GET_DEVICE_REMOVED_REASON = 37
"""A method of ID3D12Device, d3d12.h."""


class HeldDevice:
    """The device that the sessions of this process share; none before there is a session, and on other systems."""

    def __init__(self) -> None:
        self._device: Object | None = None
        self._was_sought = False

    def hold(self, providers: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """Hold the device of these providers from now on; call it once there is a session."""
        if sys.platform == "win32" and not self._was_sought:
            self._was_sought = True
            with contextlib.suppress(OSError):
                self._device = open_device(providers)

    def describe_removal(self) -> str:
        """`GetDeviceRemovedReason answered 887A0006 DXGI_ERROR_DEVICE_HUNG`; empty while it works, or where none is
        held."""
        reason = int(self._device.call(GET_DEVICE_REMOVED_REASON, answer=ctypes.c_uint32)) if self._device else 0
        return f"GetDeviceRemovedReason answered {reason:08X} {NAMES.get(reason, '')}".strip() if reason else ""
