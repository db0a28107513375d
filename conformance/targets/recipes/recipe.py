"""What each recipe consists of: packages, the provider, and what has to be set for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from epcheck.conformance.comparison.precision import Precision


@dataclass(frozen=True)
class Recipe:
    """An environment for one provider. packages: what pip installs, the one that has the provider last.

    provider: its name in ONNX Runtime. plugin: the module that has its library; empty where the runtime has the
    provider built in. options: of the provider. float32_precision: what it computes float32 in by these options, where
    that is less. software_vulkan: it needs a Vulkan driver, a software one where the machine has none. device: where
    output buffers can be bound. deadline_s: seconds for one case. jobs: workers at most, as in `Target`. about: what it
    is, in a few words.
    """

    name: str
    packages: tuple[str, ...]
    provider: str
    about: str
    plugin: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    float32_precision: Precision | None = None
    software_vulkan: bool = False
    device: str | None = None
    deadline_s: float = 20.0
    jobs: int = 1

    @property
    def distributions(self) -> tuple[str, ...]:
        """The packages without their extras."""
        return tuple(name.partition("[")[0] for name in self.packages)


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "webgpu",
            ("onnxruntime", "onnxruntime-ep-webgpu"),
            "WebGpuExecutionProvider",
            "WebGPU, on the machine's Vulkan driver, or on SwiftShader where there is none",
            plugin="onnxruntime_ep_webgpu",
            software_vulkan=True,
        ),
        Recipe(
            "openvino",
            ("onnxruntime-openvino",),
            "OpenVINOExecutionProvider",
            "OpenVINO on the CPU, built into a runtime of its own",
            options={"device_type": "CPU"},
            jobs=0,
        ),
        Recipe(
            "openvino-plugin",
            ("onnxruntime", "onnxruntime-ep-openvino"),
            "OpenVINOExecutionProvider",
            "OpenVINO as a plugin, which takes CPUs, GPUs and NPUs of Intel only",
            plugin="onnxruntime_ep_openvino",
        ),
        Recipe(
            "qnn",
            ("onnxruntime", "onnxruntime-qnn"),
            "QNNExecutionProvider",
            "QNN on Qualcomm's simulator of an HTP, in float16",
            plugin="onnxruntime_qnn",
            options={"backend_type": "htp", "htp_arch": "75", "soc_model": "57"},
            float32_precision=Precision(
                "float16",
                "onnxruntime.ai/docs/execution-providers/QNN-ExecutionProvider.html: enable_htp_fp16_precision is on",
            ),
            deadline_s=120.0,  # it simulates each instruction: Gelu of 65,537 elements takes longer than 20 s
            jobs=0,
        ),
        Recipe(
            "cuda",
            ("onnxruntime-gpu[cuda,cudnn]",),
            "CUDAExecutionProvider",
            "CUDA on an NVIDIA GPU, with the libraries of its toolkit (3 GB)",
            options={"use_tf32": "0"},  # else matrix products of float32 are TF32 where the GPU has it
            device="cuda",
        ),
    )
}
"""Name -> recipe; the name is that of the target, too."""
