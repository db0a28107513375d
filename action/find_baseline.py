"""Finds the newest run of a workflow that uploaded an artifact on a branch, for `action.yml`; it needs Python alone.

Reads the variables of GitHub Actions, ARTIFACT, BRANCH and TOKEN; prints `run-id=...`, empty where there is no run.
What keeps it from asking is a notice on stderr, no error: without a run to compare with, the run is judged by itself.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

PATIENCE_S = 30
PAGE = 100
"""Artifacts of one answer, the newest first; GitHub gives no more."""


def newest_run(artifacts: Iterable[Mapping[str, Any]], branch: str, own_run: str) -> str:
    """The id of the run on the branch whose artifact is the newest that has not expired; empty for none.

    own_run: the id of this run, which is not held against itself.
    """
    of_branch = [
        artifact
        for artifact in artifacts
        if not artifact.get("expired")
        and (artifact.get("workflow_run") or {}).get("head_branch") == branch
        and str(artifact["workflow_run"]["id"]) != own_run
    ]
    newest = max(of_branch, key=lambda artifact: str(artifact.get("created_at", "")), default=None)
    return "" if newest is None else str(newest["workflow_run"]["id"])


def main() -> None:
    wanted = os.environ["ARTIFACT"]
    query = urllib.parse.urlencode({"name": wanted, "per_page": PAGE})
    address = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/actions/artifacts?{query}"
    headers = {"Accept": "application/vnd.github+json", "Authorization": f"Bearer {os.environ['TOKEN']}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=PATIENCE_S) as answer:
            artifacts = json.load(answer)["artifacts"]
        branch = os.environ["BRANCH"] or os.environ["GITHUB_REF_NAME"]  # a schedule's event names no repository
        run_id = newest_run(artifacts, branch, os.environ["GITHUB_RUN_ID"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"::warning title=epcheck::the run to compare with cannot be asked for: {error}", file=sys.stderr)
        run_id = ""
    else:
        if not run_id:
            print(f"::notice title=epcheck::no earlier run has the artifact '{wanted}'", file=sys.stderr)
    print(f"run-id={run_id}")


if __name__ == "__main__":
    main()
