"""A Transformers model, exported by Optimum, goes out only if the provider is right on every file of it.

    python optimum_export.py distilbert-base-uncased out --task feature-extraction --target dml

Optimum writes one file or several (an encoder, a decoder); each is validated with made-up token ids, for one sequence
and for a batch. The folder is written beside its place, and moved only if all pass. The page is out.html.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from optimum.exporters.onnx import main_export

from epcheck import api


def main() -> int:
    parser = argparse.ArgumentParser(description="Export a Transformers model that is right on the provider, or none.")
    parser.add_argument("model", help="its name on the Hub, or a folder")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", default="auto", help="as `optimum-cli export onnx --task` takes it")
    parser.add_argument("--target", help="the best of this machine, unless named")
    chosen = parser.parse_args()
    draft = chosen.folder.with_name(f"{chosen.folder.name}.draft")
    page = chosen.folder.with_name(f"{chosen.folder.name}.html")
    main_export(chosen.model, draft, task=chosen.task)

    targets = (chosen.target,) if chosen.target else ()
    gate = api.validate_models(api.ValidateModelsOptions((draft,), targets=targets, html=page))
    print(gate.headline)
    for checked in gate.checked:
        print(f"{checked.name}: {checked.validation.headline if checked.validation else checked.trouble}")
    if gate.result != "passes":
        print(f"not exported, see {page}", file=sys.stderr)
        return 1
    if chosen.folder.exists():
        shutil.rmtree(chosen.folder)
    draft.rename(chosen.folder)
    print(f"exported: {chosen.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
