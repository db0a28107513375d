"""Models in float16 and in int8, converted from the published ones of `real_models.py`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

from benchmarks.real_models import MODELS, fetched
from epcheck.conformance.test_data import model_file
from epcheck.models.feeds import feeds

FLOAT16 = (
    "nmp.onnx", "nsnet2-20ms-baseline.onnx", "320n.onnx", "open-nsfw.onnx", "layout_cdla.onnx", "magika.onnx",
    "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "PP-OCRv6_det_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx", "ch_ppocr_mobile_v2.0_cls_infer.onnx", "Run_1663915512_Stage_0.onnx",
    "Run_1668423760_Stage_0.onnx", "model_v8.onnx", "plcmos_v2.onnx",
)  # fmt: skip
INT8 = (
    "nsnet2-20ms-baseline.onnx", "320n.onnx", "open-nsfw.onnx", "layout_cdla.onnx", "whisper80_conv.onnx",
    "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "PP-OCRv6_det_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx", "Run_1663915512_Stage_0.onnx", "Run_1668423760_Stage_0.onnx",
    "model_v8.onnx", "plcmos_v2.onnx",
)  # fmt: skip
INT8_PUBLISHED = ("smart-turn-v3.2-cpu.onnx", "common_old.onnx")
"""In int8 as they are."""


def build_models(folder: Path) -> Iterator[Path]:
    """The models, which are made in FOLDER/narrow where they are not there yet."""
    target = folder / "narrow"
    target.mkdir(parents=True, exist_ok=True)
    sources = {"magika.onnx" if "magika" in model.package else model.name: model for model in MODELS}
    for name in INT8_PUBLISHED:
        yield fetched(sources[name], folder)
    for suffix, names in (("float16", FLOAT16), ("int8", INT8)):
        for at, name in enumerate(names):
            made = target / f"{name.removesuffix('.onnx')}_{suffix}.onnx"
            if not made.is_file():
                source = fetched(sources[name], folder)
                if suffix == "float16":
                    onnx.save(_to_float16(source), made)
                else:
                    _quantize(source, made, of_operators=at % 2 == 1)
            yield made


def _to_float16(path: Path) -> onnx.ModelProto:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with warnings.catch_warnings(action="ignore"):
        found: onnx.ModelProto = convert_float_to_float16(onnx.load(path), keep_io_types=True)
    return found


def _quantize(path: Path, made: Path, of_operators: bool) -> None:
    """Statically, after basic optimisations, with the feeds of two seeds. of_operators: with QLinearConv and the like,
    else in QDQ format."""
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    model = model_file.load(path)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = [feeds.generate(model, seed=seed) for seed in (2, 3)]

        def get_next(self) -> Mapping[str, Any] | None:
            return self._left.pop() if self._left else None

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(made.with_suffix(".basic"))
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    has_axis = next(each.version for each in model.opset_import if not each.domain) >= 13
    form = QuantFormat.QOperator if of_operators else QuantFormat.QDQ
    quantize_static(made.with_suffix(".basic"), made, Reader(), quant_format=form, per_channel=has_axis)
    made.with_suffix(".basic").unlink()
