"""The real DirectML provider on Linux: Wine, a Vulkan driver, Windows Python and ONNX Runtime in a private folder.

    install()                       # once; about a minute, no root
    launch = python_launch()        # then, for each worker
    subprocess.Popen([*launch.argv, windows_path(script), ...], env=launch.env)

The script executes the file `prelude()` before it imports onnxruntime. Everything raises `LabError`, and nothing else,
when something is missing. This package can be imported on Windows, where the lab is neither possible nor needed.
"""

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import default_folder
from epcheck.conformance.lab.install import can_install, ensure_runtime, install, remove, stop
from epcheck.conformance.lab.launch import Launch, prelude, python_launch, windows_site_packages, written_folders
from epcheck.conformance.lab.packages.pins import DEFAULT_RUNTIME, is_pinned
from epcheck.conformance.lab.packages.wheels import pip_install_windows
from epcheck.conformance.lab.packing.pack import Packed, pack
from epcheck.conformance.lab.packing.unpack import unpack
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.lab.status import LabStatus, StepStatus, status
from epcheck.conformance.lab.use import in_use, run_script
from epcheck.conformance.lab.vulkan.status import MissingLibrary, VulkanDriver, VulkanStatus, vulkan_status
from epcheck.conformance.windows_path import windows_path

__all__ = [
    "DEFAULT_RUNTIME",
    "LabError",
    "LabStatus",
    "Launch",
    "MissingLibrary",
    "Packed",
    "Progress",
    "StepStatus",
    "VulkanDriver",
    "VulkanStatus",
    "can_install",
    "default_folder",
    "ensure_runtime",
    "in_use",
    "install",
    "is_pinned",
    "pack",
    "pip_install_windows",
    "prelude",
    "python_launch",
    "remove",
    "run_script",
    "status",
    "stop",
    "unpack",
    "vulkan_status",
    "windows_path",
    "windows_site_packages",
    "written_folders",
]
