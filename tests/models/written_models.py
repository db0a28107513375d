"""Models of a few nodes for tests, written as text (onnx.parser)."""

from __future__ import annotations

import onnx
from onnx import parser


def model(graph: str, opset: int = 17, imports: str = "", functions: str = "") -> onnx.ModelProto:
    """graph: in ONNX's textual syntax, `g (float[2] x) => (float[2] y) { y = Relu(x) }`.

    imports: further opsets, `, "com.microsoft": 1`. functions: in the same syntax, behind the graph.
    """
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}{imports}]>\n{graph}\n{functions}')
