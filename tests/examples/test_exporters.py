"""The examples for users of PyTorch, Optimum and Olive, each where its package is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.command_line import ENVIRONMENT, Done

EXAMPLES = Path(__file__).parents[2] / "examples"
NEGATED = """
from onnx.reference import ReferenceEvaluator

def run(model, feeds):
    return [-value for value in ReferenceEvaluator(model).run(None, feeds)]
"""
"""A target on which every output has the wrong sign."""

BERT = """
import sys
from transformers import BertConfig, BertModel

BertModel(BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                     max_position_embeddings=32)).save_pretrained(sys.argv[1])
"""


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


def run(*command: str, cwd: Path) -> Done:
    """In a process of its own, which fetches nothing."""
    environment = {**ENVIRONMENT, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(cwd)}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


@needs("torch", "onnxscript")
def test_a_module_is_exported_where_it_is_right(tmp_path: Path) -> None:
    done = run(str(EXAMPLES / "torch_export.py"), "out/model.onnx", "--target", "cpu", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-3:] == [
        "model.draft.onnx runs on CPUExecutionProvider and is right"] * 2 + [
        f"exported: {Path('out/model.onnx')}"]  # fmt: skip
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.onnx", "model.html"}
    assert onnx.load(tmp_path / "out/model.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@needs("torch", "onnxscript")
def test_a_module_is_not_exported_where_the_provider_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "negated.py").write_text(NEGATED, encoding="utf-8")
    done = run(str(EXAMPLES / "torch_export.py"), "model.onnx", "--target", "python:negated:run", cwd=tmp_path)
    assert done.code == 1
    assert done.err.splitlines()[-1] == "not exported, see model.html"
    assert not (tmp_path / "model.onnx").exists()


@needs("optimum.exporters", "transformers") if importlib.util.find_spec("optimum") else needs("optimum")
def test_a_transformers_model_is_exported_where_it_is_right(tmp_path: Path) -> None:
    assert run("-c", BERT, "bert", cwd=tmp_path).code == 0
    command = (str(EXAMPLES / "optimum_export.py"), "bert", "out", "--task", "feature-extraction", "--target", "cpu")
    done = run(*command, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "1 model on 1 target: 1 pass, 0 fail, 0 undecided" in done.out
    assert (tmp_path / "out" / "model.onnx").is_file()
    assert not (tmp_path / "out.draft").exists()


@needs("olive")
def test_what_a_workflow_makes_is_kept_where_it_is_right(tmp_path: Path) -> None:
    first = run(str(EXAMPLES / "export_with_gate.py"), "model.onnx", "--target", "cpu", cwd=tmp_path)
    assert first.code == 0, first.err
    done = run(str(EXAMPLES / "olive_workflow.py"), "model.onnx", "out/model.onnx", "--target", "cpu", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "model.onnx runs on CPUExecutionProvider and is right\n" in done.out  # and the oracle knows it
    (weight, *_) = [t for t in onnx.load(tmp_path / "out/model.onnx").graph.initializer if len(t.dims) == 2]
    assert onnx.numpy_helper.to_array(weight).dtype == np.float16
