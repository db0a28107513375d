"""A Transformers model, exported by Optimum, goes out only if the provider is right on every file of it.

    python optimum_export.py distilbert-base-uncased out --task feature-extraction --target dml

Optimum writes one file or several (an encoder, a decoder); each is validated with made-up token ids, for one sequence
and for a batch. The folder is written beside its place, and moved only if all pass. The page is out.html.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer
from optimum.exporters.onnx import main_export

from epcheck import api


def main(model: str, folder: Path, task: str = "auto", target: str | None = None) -> None:
    """Export a model, by its name on the Hub or from a folder, that is right on the target, or none.

    The task is as `optimum-cli export onnx --task` takes it. The target is the best of this machine, unless named.
    """
    draft, page = folder.with_name(f"{folder.name}.draft"), folder.with_name(f"{folder.name}.html")
    main_export(model, draft, task=task)
    targets = (target,) if target else ()
    gate = api.validate(api.ValidateOptions((draft,), targets=targets, html=page))
    print(gate.headline)
    for checked in gate.checked:
        print(f"{checked.name}: {checked.validation.headline if checked.validation else checked.trouble}")
    if gate.result != "passes":
        sys.exit(f"not exported, see {page}")
    if folder.exists():
        shutil.rmtree(folder)
    draft.rename(folder)
    print(f"exported: {folder}")


if __name__ == "__main__":
    typer.run(main)
