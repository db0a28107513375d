"""Providers from a library of their own, registered through ONNX Runtime's plugin API, and the device they use."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import re
from pathlib import Path
from typing import Any

import onnxruntime

REGISTRATION = "epcheck"
"""The name under which a library is registered whose provider has none yet."""

LIBRARY_NAMES = ("get_library_path", "library_path", "EP_LIBRARY")
"""By which names packages give the path of their library: as a function, or as the path itself."""

SUFFIXES, FACTORY = (".so", ".dll", ".dylib"), b"CreateEpFactories"
"""What the files of libraries end in, and the function that a plugin exports (onnxruntime_ep_c_api.h)."""

_ORT_PREFIX = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : ")
_SIGNATURE = r"[^()\n]*\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)(?: const)?(?:::<lambda\([^()]*\)>)?(?: const)?"
_SOURCE = re.compile(rf"/\S+\.(?:cc|cpp|h):\d+ (?:{_SIGNATURE} )?")


_WINDOWS_SOURCE = re.compile(
    r"[A-Z]:\\\S+\.(?:cc|cpp|h)\(\d+\)|\\?onnxruntime\w*\.(?:pyd|dll)![0-9A-Fa-f]+: |\(caller: [0-9A-Fa-f]+\) "
    r"|Exception\(\d+\) tid\([0-9a-f]+\) "
)
"""How DirectML's provider says where in its code an error is from."""


class PluginError(Exception):
    """A plugin cannot be used; the message is one sentence with the reason."""


def reason(message: str) -> str:
    """A message of ONNX Runtime without its codes, source files and C++ signatures, on one line."""
    return " ".join(_WINDOWS_SOURCE.sub("", _SOURCE.sub("", _ORT_PREFIX.sub("", message))).split())


class RegisteredPlugin:
    """A library that is registered in this process.

    provider: the name of its execution provider. registration: the name under which the library is registered. device:
    the one that sessions use, an OrtEpDevice.
    """

    def __init__(self, wanted: dict[str, Any]) -> None:
        """wanted: `package` or `library`, `provider` and `device` as `conformance/targets/plugin.py` describes them.

        Raises PluginError.
        """
        self.wanted = wanted
        self.package = str(wanted["package"])
        self.library, names = str(wanted["library"]), [str(wanted["provider"])]
        if self.package:
            self.library, shipped = _of_package(self.package)
            names += shipped
        if not hasattr(onnxruntime, "register_execution_provider_library"):
            raise PluginError(f"onnxruntime {onnxruntime.__version__} knows no plugin libraries; install 1.23 or later")
        self.provider = next(filter(None, names), "")
        self.registration = self.provider or REGISTRATION
        self._of_others = {id_of(device) for device in onnxruntime.get_ep_devices()}
        self.register()

    def register(self) -> None:
        """Register the library and choose the device. Raises PluginError."""
        try:
            onnxruntime.register_execution_provider_library(self.registration, self.library)
        except Exception as error:
            raise PluginError(f"onnxruntime cannot load {self.library}: {reason(str(error))}") from None
        offered = [device for device in onnxruntime.get_ep_devices() if id_of(device) not in self._of_others]
        self.provider = self.provider or _only_provider(self.library, offered)
        self.device = choose_device(self.provider, offered, dict(self.wanted["device"]))

    def unregister(self) -> None:
        """Take the library away, while no session uses it."""
        self.device = None
        gc.collect()
        onnxruntime.unregister_execution_provider_library(self.registration)

    def register_again(self) -> None:
        """Take the library away, while no session uses it, and register it again. Raises PluginError."""
        self.unregister()
        self.register()

    def facts(self) -> dict[str, str]:
        """Versions of the plugin's package and library, and its device."""
        metadata, device = self.device.ep_metadata, self.device.device
        found = {
            "execution_provider": self.provider,
            "plugin": _distribution(self.package) if self.package else Path(self.library).name,
            "plugin_library": str(metadata.get("version", "")),
            "device": words(self.device),
            "vendor_id": f"{device.vendor_id:#06x}",
            "device_id": f"{device.device_id:#06x}",
        }
        name = str(device.metadata.get("Description", ""))
        return {**found, **({"adapter": name} if name else {})}


def id_of(device: Any) -> tuple[str, str, int, int, str]:
    """Equal for the same device of the same provider."""
    hardware = device.device
    return device.ep_name, str(hardware.type), hardware.vendor_id, hardware.device_id, str(dict(device.ep_metadata))


def words(device: Any) -> str:
    """A device in words: its type, its vendor, and their ids."""
    hardware = device.device
    kind = str(hardware.type).rpartition(".")[2].lower()
    return f"{kind} of {hardware.vendor or 'an unnamed vendor'} ({hardware.vendor_id:#06x}:{hardware.device_id:#06x})"


def choose_device(provider: str, offered: list[Any], wanted: dict[str, str]) -> Any:
    """The device of the provider that is meant. Raises PluginError when there is none."""
    own = [device for device in offered if device.ep_name == provider]
    if not own:
        others = sorted({device.ep_name for device in offered})
        if others:
            raise PluginError(f"the library holds no {provider}; it holds {', '.join(others)}")
        hardware = dict.fromkeys(words(device) for device in onnxruntime.get_ep_devices())
        raise PluginError(
            f"{provider} offers no device on this machine, where onnxruntime sees: {', '.join(hardware) or 'nothing'}"
        )
    left = [device for device in own if _is_meant(device.device, wanted)]
    index = int(wanted.get("index", 0))
    if index >= len(left):
        named = ", ".join(f"{name} = {value}" for name, value in wanted.items())
        offers = ", ".join(f"{place}: {words(device)}" for place, device in enumerate(own))
        raise PluginError(f"{provider} has no device with {named}; it offers {offers}")
    return left[index]


def _is_meant(hardware: Any, wanted: dict[str, str]) -> bool:
    vendor = wanted.get("vendor", "").lower()
    by_id = vendor.startswith("0x")
    return (
        (not vendor or (int(vendor, 16) == hardware.vendor_id if by_id else vendor in hardware.vendor.lower()))
        and ("device_id" not in wanted or int(wanted["device_id"], 0) == hardware.device_id)
        and ("type" not in wanted or str(hardware.type).rpartition(".")[2].lower() == wanted["type"])
    )


def _of_package(name: str) -> tuple[str, list[str]]:
    """The library of a Python package, and the names of its providers."""
    try:
        package = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise PluginError(f"{name} needs the module {error.name}, which is not installed") from None
        raise PluginError(
            f"no module {name}; install {name.replace('_', '-')}, or name the environment that has it "
            f"with 'python' in epcheck.toml"
        ) from None
    except Exception as error:
        raise PluginError(f"the module {name} cannot be imported: {error}") from None
    try:
        return find_library(package), [str(each) for each in _list_providers(package)]
    except Exception as error:
        raise PluginError(f"{name} is no package of a provider: {error}") from None


def find_library(package: Any) -> str:
    """The path that a package gives, or that of the one library in its folder that exports a plugin's function. Raises
    what the package raises, and PluginError."""
    for name in LIBRARY_NAMES:
        if hasattr(package, name):
            found = getattr(package, name)
            return str(found() if callable(found) else found)
    files = sorted(Path(package.__file__).parent.rglob("*")) if hasattr(package, "__path__") else []
    libraries = [file for file in files if file.suffix in SUFFIXES and FACTORY in file.read_bytes()]
    if len(libraries) == 1:
        return str(libraries[0])
    what = f"{len(libraries)} of its libraries export" if libraries else "it has no library that exports"
    raise PluginError(f"it has none of {', '.join(LIBRARY_NAMES)}, and {what} {FACTORY.decode()}")


def _list_providers(package: Any) -> list[Any]:
    """The names that a package gives; none where the library is to tell."""
    if hasattr(package, "get_ep_names"):
        return list(package.get_ep_names())
    return [package.get_ep_name()] if hasattr(package, "get_ep_name") else []


def _only_provider(library: str, offered: list[Any]) -> str:
    names = sorted({str(device.ep_name) for device in offered})
    if len(names) == 1:
        return names[0]
    ending = f"holds {', '.join(names)}; choose one" if names else "offers no device here, and so tells no name; add it"
    raise PluginError(f"{library} {ending} with #NAME")


def _distribution(module: str) -> str:
    """The distribution that a module is from, with its version; the module's name where there is none."""
    top = module.partition(".")[0]
    for name in (top, top.replace("_", "-")):
        try:
            return f"{name.replace('_', '-')} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return module
