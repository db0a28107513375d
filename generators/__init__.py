"""Operators: cases, oracles, comparators' parameters and DirectML operator descriptions.

How to add an operator, say Gather:

1. Write `operators/gather.py`. Nothing else has to be touched: the module is found, its versions and dtypes come from
   `onnx.defs`, its claims from the claims table.
2. Subclass `Sample` with what varies (shapes, attributes, boundary values) and yield one for each situation worth
   testing, with a name that will never change: it is a part of the case id. `every_dtype=True` for those that deserve
   a case in each dtype.
3. `node(sample, binding)` makes the `Node`: its inputs with values (from `binding.rng` alone, in `binding.dtype`),
   marked `parameter=True` where exporters write initializers, and its attributes.
4. `truth(node)` is the text of the ONNX standard: `Outputs` with a bound for each, `Selection`, or `Refusal` with the
   rule that the node breaks. Floating point is evaluated in float64 and rounded once; a bound names its source.
5. `variants(sample, since_version, dtypes)` says where a sample applies; `operator.spread` is the usual answer.
6. `lower(node)` gives the DirectML description that the DML EP turns the node into (`generators/directml/`), or None.
7. `OPERATORS = (Operator("Gather", samples, variants, node, truth, lower),)`. `epcheck list --op Gather` shows the
   cases, `epcheck run --op Gather` runs them. Add mutants to `tests/mutants/` that only your samples can catch.
"""
