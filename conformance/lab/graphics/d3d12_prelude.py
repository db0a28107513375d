"""Executed in the lab before onnxruntime is imported, by a worker or by `sitecustomize`.

It patches Direct3D 12 and leaves a function in `sys._epcheck_facts` that says what it runs on; where modules do not
come from one file yet (`module_store`), it writes that file. What it needs to know is in the environment that
`epcheck.conformance.lab.python_launch` gives; epcheck is not imported.
"""

import importlib.util
import os
import sys
from types import ModuleType


def _load_module(name: str, file: str) -> ModuleType:
    """The module in a file. It stays loaded: Direct3D calls into the shim from now on."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _prepare() -> None:
    shim.install(vkd3d=os.environ.get("EPCHECK_VKD3D"))
    modules = sys.modules.get("module_store")
    if modules and not modules.is_used() and "epcheck_worker" in sys.modules:
        importlib.import_module("epcheck_worker.backends.onnxruntime")
        modules.write(os.environ["EPCHECK_MODULE_STORE"], ("numpy", "onnxruntime", "epcheck_worker"))


def _facts() -> dict[str, str]:
    """What this process runs on: the adapter, and the layers below Direct3D."""
    adapter: dict[str, str] = shim.adapter()
    stack = [os.environ.get("EPCHECK_GRAPHICS_STACK", "wine"), adapter.get("vulkan_driver", "")]
    return {**adapter, "graphics_stack": ", ".join(part for part in stack if part)}


shim = _load_module("d3d12_shim", os.environ["EPCHECK_D3D12_SHIM"])
_prepare()
sys._epcheck_facts = _facts  # type: ignore[attr-defined]
