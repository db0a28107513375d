"""The operators of the suite: a folder for each family, with a module for each operator or group of operators.

How to add an operator, say Compress. `movement/compress.py` and `tests/mutants/faults/movement/compress.py` are what
following these steps gives; of an operator that onnx does not know, `quantized/gather_block_quantized.py`, its mutants
and its test. KEY is `Compress`, in another domain `com.microsoft::GatherBlockQuantized`.

1. Write `FAMILY/compress.py`; the families are the folders here. Nothing has to be registered: the module is
   found by `DECLARES = ("KEY",)`, a tuple of literals with the keys of its operators in the order of `OPERATORS`. One
   that would be too long is a folder, with `operators.py`, `samples.py` and `oracle.py` (`recurrent/recurrent/`).
   Versions and dtypes come from `onnx.defs`, claims from the tables in `../claims/`. What the operators of a family
   share is in `families/`: an operator that only moves data is one call of `movement.movement`, an element-wise one a
   `broadcasting.Rule`; steps 3, 5 and 6 are then done. Of an operator that the installed onnx does not know,
   `python tests/generators/runtime_schemas.py KEY` adds the schema to `runtime_schemas.json` and prints the page, both
   as the installed onnxruntime has them.
2. `samples()` yields the situations worth testing, each a `Sample` with what varies (shapes, attributes, boundary
   values) and a name that never changes: it is a part of the case id. Cover ranks 0 to 8, sizes 0 and 1, sizes beyond a
   thread group of 1024, each attribute absent and at its ends, and the boundary values in `data`. `every_dtype=True`
   marks those that deserve a case in each dtype; the others have one in the first. A sample that breaks a rule is in
   `case.expect_refusal(...)`, which puts `refused_` before its name. `rank` is stated by those that are there for it:
   further dtypes follow from samples of rank 0, 3 and 4, a ninth dimension from those of 8. `without_rank_dtypes` and
   `without_rank_9` of the `Operator` say why they do not. No code reads a name. A type that numpy lacks (int4, float8)
   is no dtype of a case but a field of the sample.
3. `bindings(sample, since_version, dtypes)` says where a sample applies, and how its inputs enter the model there:
   any of `graph.BINDINGS`; an empty tuple where the version or the dtypes have no such case. `operator.spread` is the
   usual answer: `first` compares the dtypes with those in which every sample has a case. Every way is tried in one
   version, `claims.newest_claimed_version`: the newest that the DirectML provider claims. Where it claims none, that is
   the newest of onnx, which may not be released: compare with a version that a runtime has (`established=` of
   `movement`). An operator with one version has `newest=True`. Leave out `graph.RUNTIME` where the page wants
   constants, and for inputs of a type that numpy lacks.
4. `truth(node)` is the text of the ONNX standard, of com.microsoft that of ONNX Runtime's ContribOperators.md:
   `Outputs` with a bound for each, `Selection`, or `Refusal` with the rule that the node breaks. Floating point is
   evaluated in float64 and rounded once, by `bounds.round_output`; a bound cites its sources (`citation.py`):
   `bounds.ulp` with `bounds.D3D` is that of an operation, `bounds.bound_sum` of a sum. Where the page is silent, there
   is no case: say so in the module's docstring.
5. `node(sample, context)` makes the `Node`: its inputs, named as in the schema, with values (from `context.rng` alone,
   in `context.dtype`), marked `parameter=True` where exporters write initializers, and its attributes.
6. `lower(node)` gives the DirectML description that the DML EP turns the node into (`directml/descriptions/FAMILY/`),
   or None where nothing is executed. Where the operator never is a single DirectML operator, it is one of
   `operator.NotLowered`: `GRAPH`, `SHADERS`, `ON_CPU`, `CPU_KERNEL`, one with a reason of its own, or `NO_KERNEL`
   where `../claims/dml_ep_operators.json` has no row of it.
7. `OPERATORS = (Operator("Compress", samples, bindings, node, truth, lower),)`; `domain` is that of the key, `varied`
   names the type constraints that make the dtype axis. `operator.declare` adds what cases are made of besides:
   `PARAMETER_SPACES`, the values of each parameter, of which sizes at borders, empty dimensions and all pairs follow;
   `INTERACTIONS`, nodes in which several conditions meet; `OPTIONAL_IO`, optional inputs and outputs in every
   combination; `UNDEFINED`, nodes for some of whose elements the page defines nothing. `epcheck list --op KEY` shows
   the cases.
8. Add mutants to `tests/mutants/faults/FAMILY/compress.py`: a `MUTANTS` list made with `mutant.attribute`, `misread`,
   `inputs`, `outputs`. Each is a mistake that a provider could make and that a case must tell; a mutant that no case
   tells asks for a sample. `python -m pytest tests/mutants -k Compress` runs them. Where onnx has no node tests of the
   operator, `tests/generators/operators/FAMILY/test_compress.py` has values that were worked out by hand.
9. `nox -s designs -- --op KEY` chooses designed cases, variations of the samples in which pairs and triples of dtype,
   rank, attributes and data meet, and adds them to `designs.txt` of the family. `nox -s case_ids numbers` adds the ids
   to `tests/generators/case_ids.txt`, where every other line stays as it is, and writes the numbers of the suite in
   README and docs. Add a line to the changelog. `python -m pytest tests/generators tests/docs/test_numbers.py` checks
   models, ids, DirectML descriptions and numbers.
10. `epcheck run --target cpu --op KEY --strict`, then `--target dml`, all cases of each: a model can end the process
   of a provider that has no kernel, too. What a provider does not claim is noted, or ok where it refuses:
   `epcheck probe --target cpu --op KEY --each 1000` writes a table with the claims of the operator; copy its lines to
   `../claims/cpu.json`, between their neighbours by domain and name. For each deviation that the standard does not
   allow, write an expectation with its reason (`conformance/expectations/TARGET/FAMILY.toml`) and a row in
   `docs/findings/FAMILY.md`, whose first paragraph names the operators. Versions that the runtime cannot load yet
   belong to the first entry of the file.
"""
