"""Real exports: valid, run by the CPU provider, and near the oracle. They need the extra `exports`."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from epcheck.models.feeds import feeds
from epcheck.models.oracle import oracle
from epcheck.models.zoo import Architecture, exports
from epcheck.models.zoo.exports import ExportError

NEEDED = {"export_boosted_trees": ("skl2onnx",), "export_logistic_regression": ("skl2onnx",)}
TORCH = ("torch", "torchvision", "onnxscript")


@pytest.mark.filterwarnings("ignore")  # of the exporters, about themselves
@pytest.mark.parametrize("architecture", exports.all(), ids=lambda export: export.name)
def test_an_export_is_valid_and_the_cpu_provider_is_near_the_oracle(architecture: Architecture) -> None:
    for module in NEEDED.get(architecture.name, TORCH):
        pytest.importorskip(module, reason=f"{module} is not installed; the extra 'exports' has it")
    model = architecture.build()
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for dims in feeds.combinations(model, architecture.dims):
        inputs = feeds.generate(model, 0, dims)
        truth = oracle.evaluate(model, inputs).values
        for output, value in zip(session.get_outputs(), session.run(None, inputs), strict=True):
            np.testing.assert_allclose(value, truth[output.name], rtol=1e-4, atol=1e-5, err_msg=output.name)


def test_an_exporter_that_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports.util, "find_spec", lambda name: None if name == "torchvision" else object())
    with pytest.raises(ExportError, match=r"torchvision not installed; run: pip install 'epcheck\[exports\]'"):
        exports.all()[0].build()
