"""The operators of DirectML: what their pages demand and what they define.

A description is one frozen dataclass with the members of its C struct. `validate(level)` names every constraint of
the operator's page that it breaks at a feature level, `evaluate(...)` is the page's own definition in numpy,
`as_dict()` is what a report shows.

How to add an operator, say DML_GATHER_OPERATOR_DESC:

1. Write `descriptions/FAMILY/gather.py` with one class on OperatorDesc, decorated with `@dataclass(frozen=True)`, and
   `NAME: ClassVar[str] = "DML_GATHER_OPERATOR_DESC"`.
2. Give it the struct's members, in their order, in snake_case: `TensorDesc`, `TensorDesc | None` where the page says
   `_Maybenull_`, `int`, `tuple[int, ...]`, a class from `enumerations`. Where the C type is INT instead of UINT, the
   field has `metadata=INT`. DimensionCount is `field(init=False)`, set in `__post_init__` from the length of
   an array.
3. `constraints()` yields `self.violation(name, sentence)` for whatever the page demands beyond its tables. Feature
   levels, dimension counts, data types, optional tensors, sizes of 0 and the ranges of C types need no code: they
   come from `feature_levels.json`, from DML_BUFFER_TENSOR_DESC and from the fields.
4. `evaluate()` begins with `self.require_defined()` and `self.require_arrays(...)`, takes an array for each input
   tensor (as `*input_tensors` where they are more than eight), and returns a tuple with one for each output tensor.
   What the page leaves open its docstring decides.
5. Write its tests from the page in `tests/generators/directml/descriptions/FAMILY/`: every example with its numbers,
   every constraint on both sides. What turns nodes and arrays into descriptions is in `lowering`.
"""

from epcheck.generators.directml.constraint import ConstraintViolation, Violation
from epcheck.generators.directml.descriptions.movement.slice1 import Slice1
from epcheck.generators.directml.descriptions.quantized.quantized_linear_convolution import QuantizedLinearConvolution
from epcheck.generators.directml.descriptions.reduction.top_k1 import TopK1
from epcheck.generators.directml.enumerations import AxisDirection
from epcheck.generators.directml.feature_level import FeatureLevel, TensorSupport, find_level, tensor_support
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc

__all__ = [
    "AxisDirection",
    "ConstraintViolation",
    "DataType",
    "FeatureLevel",
    "OperatorDesc",
    "QuantizedLinearConvolution",
    "Slice1",
    "TensorDesc",
    "TensorSupport",
    "TopK1",
    "Violation",
    "find_level",
    "tensor_support",
]
