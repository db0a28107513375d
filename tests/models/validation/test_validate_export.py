"""An export beside the module that it was made from: the stage and the node that depart first are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

from epcheck import api
from epcheck.api import ExportValidation, ValidateOptions, validate_export
from epcheck.conformance.test_data import model_file
from epcheck.models.feeds.feed_files import write_arrays
from epcheck.models.validation.framework_values import FrameworkError
from tests.models.small_models import floats, model

RNG = np.random.default_rng(5)
X = RNG.standard_normal((16, 12)).astype(np.float32)
W = {f"w{at}": (RNG.standard_normal((12, 12)) / 3).astype(np.float32) for at in range(3)}
ON_CPU = ValidateOptions((), ("cpu",), own_process=False)


def compute(x: Any) -> list[Any]:
    """(matrix product, Relu) three times."""
    for weight in W.values():
        x = np.maximum(x @ weight, 0)
    return [x]


def export(changed: str = "", by: float = 1.0) -> onnx.ModelProto:
    """An export of `compute`. changed: the weight that is multiplied."""
    nodes, value = [], "x"
    for at in range(3):
        nodes += [
            helper.make_node("MatMul", [value, f"w{at}"], [f"product{at}"], name=f"product{at}"),
            helper.make_node("Relu", [f"product{at}"], [f"relu{at}"], name=f"relu{at}"),
        ]
        value = f"relu{at}"
    weights = {name: value * np.float32(by) if name == changed else value for name, value in W.items()}
    return model(nodes, [floats("x", 16, 12)], [value], weights)


def quantize(path: Path, out: Path, changed: str = "") -> Path:
    """The model in QDQ format. changed: the scale that is multiplied by 1.5."""

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [X]

        def get_next(self) -> dict[str, Any] | None:
            return {"x": self.left.pop()} if self.left else None

    quantize_static(path, out, Reader())
    made = onnx.load(out)
    for tensor in made.graph.initializer:
        if tensor.name == changed:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))
    onnx.save(made, out)
    return out


def validated(folder: Path, *exported: Any) -> ExportValidation:
    return validate_export(compute, (X,), exported, options=ON_CPU, folder=folder)


def test_right_stages_are_silent(tmp_path: Path) -> None:
    onnx.save(export(), tmp_path / "a.onnx")
    found = validated(tmp_path, tmp_path / "a.onnx", export(), quantize(tmp_path / "a.onnx", tmp_path / "q.onnx"))
    assert [stage.name for stage in found.stages] == ["exporter", "optimiser", "quantiser"]
    assert [len(stage.comparison.departures) for stage in found.stages] == [0, 0, 0]
    assert (found.departed, found.status) == ("", "right")
    assert found.headline.startswith("q.onnx runs on CPUExecutionProvider and is right; no stage departs (exporter: 1 ")


def test_what_makes_float16_is_a_converter(tmp_path: Path) -> None:
    half = export()
    for tensor in half.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for end in (*half.graph.input, *half.graph.output):
        end.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    found = validated(tmp_path, export(), half)
    assert [stage.name for stage in found.stages] == ["exporter", "converter"]
    assert (found.departed, found.status) == ("", "right")


def test_the_first_stage_that_departs_is_named_with_its_node(tmp_path: Path) -> None:
    onnx.save(export(), tmp_path / "a.onnx")
    onnx.save(export("w1", 1.02), tmp_path / "b.onnx")
    wrong = quantize(tmp_path / "a.onnx", tmp_path / "q.onnx", "w1_scale")
    for exported, stage, node in (
        ((export("w2", 0.5),), "exporter", "`relu2`"),
        ((tmp_path / "a.onnx", tmp_path / "b.onnx"), "optimiser", "`product1`"),
        ((tmp_path / "a.onnx", wrong), "quantiser", "`w1_DequantizeLinear`"),
    ):
        found = validated(tmp_path, *exported)
        assert (found.departed, found.status) == (stage, "wrong")
        assert found.headline.startswith(f"the {stage} departs first: node ")
        assert node in found.headline


def test_weights_of_any_size_stay_in_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that protobuf cannot hold with its weights: here each has more bytes than the limit."""
    for name, changed in (("a", ""), ("b", ""), ("wrong", "w1")):
        onnx.save(export(changed, 1.02), tmp_path / f"{name}.onnx", save_as_external_data=True, location=f"{name}.data",
                  size_threshold=100)  # fmt: skip
    monkeypatch.setattr(model_file, "MAX_BYTES", sum(weight.nbytes for weight in W.values()))
    monkeypatch.setattr(model_file, "MAPPED_BYTES", 100)
    with pytest.raises(model_file.ModelFileError, match="makes the model larger than 1728 bytes"):
        model_file.load(tmp_path / "a.onnx")
    found = validated(tmp_path, tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert (found.departed, found.status) == ("", "right")
    assert [stage.comparison.words.partition(" ")[0] for stage in found.stages] == ["1", "6"]
    found = validated(tmp_path, tmp_path / "a.onnx", tmp_path / "wrong.onnx", tmp_path / "b.onnx")
    assert [[departure.node for departure in stage.comparison.departures] for stage in found.stages] == [
        [], ["node 2 `product1` (MatMul)"], ["node 2 `product1` (MatMul)"],
    ]  # fmt: skip


def test_a_model_that_protobuf_cannot_serialize_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("Failed to serialize proto")

    monkeypatch.setattr(onnx, "save", fail)
    with pytest.raises(api.OptionError, match=r"more than 2 GiB: save it with external data and pass its path"):
        validate_export(compute, (X,), export(), options=ON_CPU)


def test_a_target_that_departs_is_the_target(tmp_path: Path) -> None:
    (tmp_path / "half_as_much.py").write_text(
        "from onnx.reference import ReferenceEvaluator\n"
        "def run(model, feeds):\n    return [value / 2 for value in ReferenceEvaluator(model).run(None, feeds)]\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        options = ValidateOptions((), ("python:half_as_much:run",), culprit=False)
        found = validate_export(compute, (X,), export(), options=options)
    assert (found.departed, found.status) == ("target", "wrong")


def test_what_does_not_belong_together_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FrameworkError, match=r"the export has 1 inputs \('x'\), and 2 arrays are given"):
        validate_export(lambda x, _: x, (X, X), export(), options=ON_CPU)
    with pytest.raises(FrameworkError, match="the export has 1 outputs, and the module gives 2"):
        validate_export(lambda x: (x, x), (X,), export(), options=ON_CPU)
    with pytest.raises(api.OptionError, match="a int is no export"):
        validate_export(compute, (X,), 7, options=ON_CPU)
    onnx.save(export(), tmp_path / "a.onnx")
    write_arrays(tmp_path / "values.npz", {"product0": X @ W["w0"]})
    with pytest.raises(api.OptionError, match=r"are those of some feeds: name these with --feeds"):
        api.validate(ValidateOptions((tmp_path / "a.onnx",), ("cpu",), reference=tmp_path / "values.npz"))


def test_values_of_a_file_are_compared_by_their_names(tmp_path: Path) -> None:
    onnx.save(export("w1", 1.02), tmp_path / "a.onnx")
    write_arrays(tmp_path / "feeds.npz", {"x": X})
    first = np.maximum(X @ W["w0"], 0)
    write_arrays(tmp_path / "values.npz", {"relu0": first, "product1": first @ W["w1"], "file": X})
    options = ValidateOptions((tmp_path / "a.onnx",), ("cpu",), feeds=tmp_path / "feeds.npz")
    found = api.validate(replace(options, reference=tmp_path / "values.npz")).validation
    assert [departure.node for departure in found.departures] == ["node 2 `product1` (MatMul)"]
    assert found.reference is not None
    assert found.reference.words == "2 values of 6 nodes were compared with those of the reference 'values.npz'"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the exporters, about themselves
@pytest.mark.parametrize("dynamo", [True, False], ids=["exported", "traced"])
def test_values_of_a_torch_module_are_compared_node_by_node(tmp_path: Path, dynamo: bool) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'exports' has it")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed; the extra 'exports' has it")
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(144, 8)
    ).eval()
    with torch.no_grad():
        for part in layers[1].parameters():
            part.uniform_(0.5, 1.5)
    x = torch.randn(2, 3, 8, 8)
    path = tmp_path / "export.onnx"
    program = torch.onnx.export(layers, (x,), path, dynamo=dynamo)
    for exported in (path, program) if dynamo else (path,):
        found = validate_export(layers, (x,), exported, options=ON_CPU)
        assert (found.departed, found.status) == ("", "right")
        (stage,) = found.stages
        assert int(stage.comparison.words.partition(" ")[0]) >= 3  # FX nodes as well, not outputs alone
    wrong = onnx.load(path)
    for tensor in wrong.graph.initializer:
        if tensor.name.endswith("4.weight"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))
    found = validate_export(layers, (x,), wrong, options=ON_CPU)
    assert found.departed == "exporter"
    assert "(Gemm) departs from the reference" in found.headline
    for node in wrong.graph.node:
        del node.metadata_props[:]
    again = validate_export(layers, (x,), wrong, options=ON_CPU)  # names of another export take the place of metadata
    assert (again.headline, again.departed) == (found.headline, "exporter")
    assert again.stages[0].comparison.words == found.stages[0].comparison.words


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_modules_have_the_scopes_in_which_they_are_called(tmp_path: Path) -> None:
    """Nobody calls the list and the block that hold these; `first` was taken for one that is folded into `norm`."""
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'exports' has it")

    class Model(torch.nn.Module):  # type: ignore[misc]  # torch need not be installed
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(8)
            block = torch.nn.ModuleDict({"first": torch.nn.Linear(8, 8), "second": torch.nn.Linear(8, 8)})
            self.blocks = torch.nn.ModuleList([block])

        def forward(self, x: Any) -> Any:
            (block,) = self.blocks
            for _ in range(2):
                x = x + torch.relu(block["second"](block["first"](self.norm(x))))
            return x

    torch.manual_seed(0)
    module, x = Model().eval(), torch.randn(2, 3, 8)
    path = tmp_path / "export.onnx"
    torch.onnx.export(module, (x,), path, dynamo=False, opset_version=17)
    found = validate_export(module, (x,), path, options=ON_CPU)
    assert found.departed == ""
    assert found.stages[0].comparison.words.startswith("7 values of ")  # six of modules, and the output
    wrong = onnx.load(path)
    norm = next(node for node in wrong.graph.node if node.name == "/norm_1/LayerNormalization")
    next(attribute for attribute in norm.attribute if attribute.name == "epsilon").f = 0.1
    found = validate_export(module, (x,), wrong, options=ON_CPU)
    assert (found.departed, "`/norm_1/LayerNormalization`" in found.headline) == ("exporter", True)
    assert len(found.stages[0].comparison.departures) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_steps_of_a_pipeline_of_scikit_learn_are_compared() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed; the extra 'exports' has it")
    import skl2onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X[:, 0] > 0)
    made = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    assert validate_export(pipeline, (X,), made, options=ON_CPU).departed == ""
    scaler = next(node for node in made.graph.node if node.op_type == "Scaler")
    for attribute in scaler.attribute:
        if attribute.name == "scale":
            attribute.floats[0] *= 1.1
    found = validate_export(pipeline, (X,), made, options=ON_CPU)
    assert (found.departed, "`Scaler` (Scaler) departs from the reference: 'variable[" in found.headline) == (
        "exporter", True,
    )  # fmt: skip
