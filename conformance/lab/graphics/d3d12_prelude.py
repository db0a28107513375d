"""Executed by a worker in the lab before it imports onnxruntime.

It patches Direct3D 12 and leaves what it found out in `sys._epcheck_facts`. What it needs to know is in the environment
that `epcheck.conformance.lab.python_launch` gives; epcheck is not imported.
"""

import importlib.util
import os
import sys


def _prepare() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("d3d12_shim", os.environ["EPCHECK_D3D12_SHIM"])
    assert spec is not None
    assert spec.loader is not None
    shim = importlib.util.module_from_spec(spec)
    sys.modules["d3d12_shim"] = shim  # and stays there: Direct3D calls into it from now on
    spec.loader.exec_module(shim)
    shim.install(vkd3d=os.environ.get("EPCHECK_VKD3D"))
    facts: dict[str, str] = shim.adapter()
    stack = [os.environ.get("EPCHECK_GRAPHICS_STACK", "wine"), facts.get("vulkan_driver", "")]
    return {**facts, "graphics_stack": ", ".join(part for part in stack if part)}


sys._epcheck_facts = _prepare()  # type: ignore[attr-defined]
