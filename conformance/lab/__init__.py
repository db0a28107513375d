"""The real DirectML provider on Linux: Wine, a Vulkan driver, Windows Python and ONNX Runtime in a private folder.

    install()                       # once; 1.5 minutes, no root
    launch = python_launch()        # then, for each worker
    subprocess.Popen([*launch.argv, windows_path(script), ...], env=launch.env)

The script executes the file `prelude()` before it imports onnxruntime. Everything raises `LabError`, and nothing else,
when something is missing. This package can be imported on Windows, where the lab is neither possible nor needed.
"""

from .errors import LabError
from .folder import default_folder
from .install import can_install, ensure_runtime, install, remove, stop
from .launch import Launch, prelude, python_launch, windows_path, windows_site_packages
from .pins import DEFAULT_RUNTIME
from .process import Progress
from .status import LabStatus, StepStatus, status
from .use import in_use
from .wheels import pip_install_windows

__all__ = [
    "DEFAULT_RUNTIME",
    "LabError",
    "LabStatus",
    "Launch",
    "Progress",
    "StepStatus",
    "can_install",
    "default_folder",
    "ensure_runtime",
    "in_use",
    "install",
    "pip_install_windows",
    "prelude",
    "python_launch",
    "remove",
    "status",
    "stop",
    "windows_path",
    "windows_site_packages",
]
