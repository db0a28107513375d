"""A harvested node as one line of JSON, in the form of `serialization.node_json`; an input of which only the spread of
its values is kept has `spread` in place of `values`.

    {"op_type": "Relu", "domain": "", "since_version": 14, "dtypes": ["float32"], "outputs": ["Y"], "attributes": {},
     "inputs": [{"name": "X", "dtype": "float32", "shape": [1, 64, 56, 56], "parameter": false,
                 "spread": {"quantiles": [...], "zeros": 0.0, "nans": 0.0, "above": 0.0, "below": 0.0}}],
     "models": {"resnet.onnx": 16}, "crc32": "89abcdef"}

The checksum is of the text before it. Whoever changes a line deletes it.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.harvested.harvested_node import MOST_ELEMENTS, HarvestedInput, HarvestedNode
from epcheck.generators.harvested.value_spread import LEVELS, Spread
from epcheck.generators.serialization.node_json import (
    DocumentError,
    array_fields,
    array_of,
    attribute_fields,
    attribute_of,
    dtype_of,
)

MEMBERS = {"op_type", "domain", "since_version", "dtypes", "inputs", "outputs", "attributes", "models", "crc32"}
CHECKSUM = ', "crc32": "'


def encode(node: HarvestedNode) -> str:
    """The node as one line of JSON."""
    fields: dict[str, Any] = {
        "op_type": node.op_type,
        "domain": node.domain,
        "since_version": node.since_version,
        "dtypes": list(node.dtypes),
        "inputs": [None if each is None else _input(each) for each in node.inputs],
        "outputs": list(node.outputs),
        "attributes": {name: attribute_fields(value) for name, value in node.attributes.items()},
        "models": dict(node.models),
    }
    body = json.dumps(fields, ensure_ascii=True, allow_nan=False)[:-1]
    return f'{body}, "crc32": "{zlib.crc32(body.encode()):08x}"}}'


def decode(line: str) -> HarvestedNode:
    """The node that `encode` wrote. Raises DocumentError."""
    try:
        fields = json.loads(line)
        if strange := fields.keys() - MEMBERS:
            raise ValueError(f"it has the member {min(strange)!r}")
        if "crc32" in fields and fields["crc32"] != f"{zlib.crc32(line.rpartition(CHECKSUM)[0].encode()):08x}":
            raise ValueError("its checksum does not fit, so it was changed; harvest again, or delete its crc32")
        return HarvestedNode(
            str(fields["op_type"]),
            str(fields["domain"]),
            int(fields["since_version"]),
            tuple(map(str, fields["dtypes"])),
            tuple(None if each is None else _input_of(each) for each in fields["inputs"]),
            tuple(map(str, fields["outputs"])),
            {str(name): attribute_of(value) for name, value in fields["attributes"].items()},
            {str(name): int(count) for name, count in fields["models"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise DocumentError(
            f"not a harvested node: {type(error).__name__}: {error}; the line begins with {line[:60]!r}"
        ) from None


def _input(each: HarvestedInput) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": each.name, "parameter": each.parameter}
    if isinstance(each.values, Spread):
        return {**fields, "dtype": each.dtype, "shape": list(each.shape), "spread": dataclasses.asdict(each.values)}
    return {**fields, **array_fields(each.values)}


def _input_of(fields: Mapping[str, Any]) -> HarvestedInput:
    """Raises what `decode` catches; nothing is allocated that is larger than the line or MOST_ELEMENTS."""
    dtype, shape = str(fields["dtype"]), tuple(map(int, fields["shape"]))
    if dtype not in schema.NUMPY_NAMES.values() or any(size < 0 for size in shape):
        raise ValueError(f"no tensor: {dtype} {list(shape)}")
    spread = fields.get("spread")
    values = array_of(fields) if spread is None else _read_spread(spread)
    found = HarvestedInput(str(fields["name"]), dtype_of(dtype).name, shape, values, bool(fields["parameter"]))
    if found.size > MOST_ELEMENTS:
        raise ValueError(f"an input of {found.size:,} elements; {MOST_ELEMENTS:,} are the most")
    return found


def _read_spread(fields: Mapping[str, Any]) -> Spread:
    quantiles = tuple(map(float, fields["quantiles"]))
    shares = [float(fields[name]) for name in ("zeros", "nans", "above", "below")]
    if len(quantiles) not in (0, len(LEVELS)) or not np.isfinite(quantiles).all() or any(np.diff(quantiles) < 0):
        raise ValueError(f"{len(quantiles)} quantiles; {len(LEVELS)} finite ones are wanted, in rising order")
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError("a share is not between 0 and 1")
    return Spread(quantiles, *shares)
