"""The operators of the suite: a folder for each family, with a module for each operator or group of operators.

How to add an operator, say Compress (`movement/compress.py` and `tests/mutants/faults/movement/compress.py`
are what following these steps gives):

1. Write `FAMILY/compress.py`; the families are the folders here. Nothing has to be registered: the module is
   found by its `DECLARES`, the keys of its operators in the order of `OPERATORS`. Versions and dtypes come from
   `onnx.defs`, claims from the table in `../claims/`. What the operators of a family share is in `families/`: an
   operator that only moves data is one call of `movement.movement`, an element-wise one a `broadcasting.Rule`; steps 3,
   5 and 6 are then done. An operator that the installed onnx does not know (com.microsoft) also needs its schema in
   `runtime_schemas.json`.
2. `samples()` yields the situations worth testing, each a `Sample` with what varies (shapes, attributes, boundary
   values) and a name that never changes: it is a part of the case id. Cover ranks 0 to 8, sizes 0 and 1, sizes beyond a
   thread group of 1024, each attribute absent and at its ends, and the boundary values in `data`. `every_dtype=True`
   marks those that deserve a case in each dtype; the others have one in the first. Samples named `refused_...` break a
   rule.
3. `bindings(sample, since_version, dtypes)` says where a sample applies, and how its inputs enter the model there:
   any of `graph.BINDINGS`; an empty tuple where the version or the dtypes have no such case. `operator.spread` is the
   usual answer. Every way is tried in one version, `claims.newest_claimed_version`: the newest that a provider claims.
   Where no provider claims the operator, name that version yourself (`established=`): the newest of onnx may not be
   released.
4. `truth(node)` is the text of the ONNX standard: `Outputs` with a bound for each, `Selection`, or `Refusal` with the
   rule that the node breaks. Floating point is evaluated in float64 and rounded once; a bound cites its sources
   (`citation.py`; the constants are in `bounds/`). Where the page is silent, there is no case: say so in the module's
   docstring.
5. `node(sample, context)` makes the `Node`: its inputs with values (from `context.rng` alone, in `context.dtype`),
   marked `parameter=True` where exporters write initializers, and its attributes.
6. `lower(node)` gives the DirectML description that the DML EP turns the node into (`directml/descriptions/FAMILY/`),
   or None where nothing is executed. Where the operator never is a single DirectML operator, it is one of
   `operator.NotLowered`: `NO_KERNEL`, `GRAPH`, `SHADERS`, `ON_CPU`, `CPU_KERNEL`, or one with a reason of its own.
7. `OPERATORS = (Operator("Compress", samples, bindings, node, truth, lower),)`; `varied` names the type constraints
   that make the dtype axis. `operator.declare` adds what cases are made of besides: `PARAMETER_SPACES`, the values
   of each parameter, of which sizes at borders, empty dimensions and all pairs follow; `INTERACTIONS`, nodes in which
   several conditions meet; `OPTIONAL_IO`, optional inputs and outputs in every combination; `UNDEFINED`, nodes for some
   of whose elements the page defines nothing. `epcheck list --op Compress` shows the cases.
8. Add mutants to `tests/mutants/faults/FAMILY/compress.py`: a `MUTANTS` list made with `mutant.attribute`, `misread`,
   `inputs`, `outputs`. Each is a mistake that a provider could make and that a case must tell; a mutant that no case
   tells asks for a sample. `python -m pytest tests/mutants -k Compress` runs them.
9. `nox -s case_ids` (or `python tests/generators/case_ids.py`) adds the ids to `tests/generators/case_ids.txt`; every
   other line stays as it is. `python -m pytest tests/generators` checks models, ids and DirectML descriptions.
10. `epcheck run --target cpu --op Compress --strict`, then `--target dml`. For each deviation that the standard does
    not allow, write an expectation with its reason (`conformance/expectations/TARGET/FAMILY.toml`) and a row in
    `docs/findings/FAMILY.md`. Versions that the runtime cannot load yet belong to the first entry of the file.
"""
