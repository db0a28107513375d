"""Finds, fetches and checks the run to compare with, for `action.yml`; it needs Python alone.

That run is the newest one of this workflow on a branch of this repository that uploaded the artifact. Whoever may open
a pull request chooses the name of a branch and the content of an artifact, but neither the repository nor the event of
a run: only runs that this repository itself started are used. What the artifact holds has to be of the commit that
GitHub names for the run, and that commit has to be on the branch. Where GitHub has an attestation of the artifact, it
has to hold.

Reads the variables of GitHub Actions, ARTIFACT, BRANCH, FOLDER and TOKEN. Unpacks the artifact into FOLDER and prints
`run-id=...`, empty where there is no run. What keeps it from that is a notice or a warning on stderr, no error: without
a run to compare with, the run is judged by itself.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 30
PAGE, PAGES = 100, 10
"""Runs of one answer, the newest first, and answers for each event: GitHub gives no more than 1,000 runs."""

RUNS = 50
"""Runs that are asked for the artifact."""

EVENTS = ("push", "schedule", "workflow_dispatch")
"""What only those who may write to the repository start."""

ENDED = ("success", "failure")
"""Conclusions of a run that came to its end; a failure of the suite is one."""

COMMIT = "commit.txt"
"""The file of the artifact that states the commit."""

Json = Mapping[str, Any]


class UnusableError(Exception):
    """Why the artifact that was found is not compared with."""


@dataclass(frozen=True)
class Wanted:
    """Of which run the artifact has to be. workflow: the path of its file in the repository. own_run: the id of this
    run, which is not compared with itself."""

    artifact: str
    branch: str
    repository: str
    repository_id: str
    workflow: str
    own_run: str

    def allows(self, run: Json) -> bool:
        """Whether the API's description of a run is of this workflow, on the branch of this repository, and trusted."""
        return (
            str((run.get("head_repository") or {}).get("id")) == self.repository_id
            and str((run.get("repository") or {}).get("id")) == self.repository_id
            and run.get("event") in EVENTS
            and str(run.get("path", "")).partition("@")[0] == self.workflow
            and run.get("head_branch") == self.branch
            and run.get("status") == "completed"
            and run.get("conclusion") in ENDED
            and str(run["id"]) != self.own_run
        )


@dataclass(frozen=True)
class Found:
    """A run and its artifact. digest: `sha256:...` of its archive; empty where GitHub does not say."""

    run: str
    commit: str
    artifact: str
    digest: str


@dataclass(frozen=True)
class Service:
    """GitHub's API, for one repository. base: its address."""

    base: str
    token: str

    def bytes_of(self, path: str, **query: object) -> bytes:
        """Raises OSError. The token is not sent on to the store of artifacts, to which GitHub redirects."""
        address = f"{self.base}{path}?{urllib.parse.urlencode(query)}" if query else f"{self.base}{path}"
        request = urllib.request.Request(address, headers={"Accept": "application/vnd.github+json"})
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
        return body

    def answer(self, path: str, **query: object) -> Any:
        return json.loads(self.bytes_of(path, **query))


def runs_of(service: Service, wanted: Wanted, event: str) -> Iterator[Json]:
    """The runs of the workflow that the event started on the branch, the newest first; pages as they are wanted."""
    name = urllib.parse.quote(wanted.workflow.rpartition("/")[2])
    for page in range(1, PAGES + 1):
        runs = service.answer(
            f"/actions/workflows/{name}/runs",
            branch=wanted.branch, event=event, status="completed", per_page=PAGE, page=page,
        )["workflow_runs"]  # fmt: skip
        yield from runs
        if len(runs) < PAGE:
            return


def is_on_branch(service: Service, commit: str, branch: str) -> bool:
    """Whether the branch has the commit; after a push that rewrites the branch it may not."""
    base, head = urllib.parse.quote(commit, safe=""), urllib.parse.quote(branch, safe="")
    return service.answer(f"/compare/{base}...{head}", per_page=1)["status"] in ("ahead", "identical")


def find(service: Service, wanted: Wanted) -> Found | None:
    """The newest artifact of a run that `wanted` allows."""
    listed = (runs_of(service, wanted, event) for event in EVENTS)
    newest_first = heapq.merge(*listed, key=lambda run: str(run.get("created_at", "")), reverse=True)
    for run in itertools.islice(filter(wanted.allows, newest_first), RUNS):
        commit = str(run["head_sha"])
        for artifact in service.answer(f"/actions/runs/{run['id']}/artifacts", name=wanted.artifact)["artifacts"]:
            made_by = artifact.get("workflow_run") or {}
            is_of_run = (
                artifact.get("name") == wanted.artifact
                and str(made_by.get("id")) == str(run["id"])
                and str(made_by.get("head_repository_id")) == wanted.repository_id
                and made_by.get("head_sha") == commit
            )
            if is_of_run and not artifact.get("expired") and is_on_branch(service, commit, wanted.branch):
                return Found(str(run["id"]), commit, str(artifact["id"]), str(artifact.get("digest") or ""))
    return None


def fetch(service: Service, wanted: Wanted, found: Found, folder: Path) -> None:
    """Unpack the artifact into the folder. Raises UnusableError where it is not what run and attestation say."""
    archive = service.bytes_of(f"/actions/artifacts/{found.artifact}/zip")
    digest = f"sha256:{hashlib.sha256(archive).hexdigest()}"
    if found.digest not in ("", digest):
        raise UnusableError(f"its digest is {digest}, and not {found.digest} as GitHub says")
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        names = packed.namelist()
        if not any(name.startswith("runs/") for name in names):
            raise UnusableError("it has no run")
        if COMMIT not in names:
            raise UnusableError(f"it does not state its commit: it has no {COMMIT}")
        with packed.open(COMMIT) as file:
            stated = file.read(200).decode("ascii", "replace").strip()
        if stated != found.commit:
            raise UnusableError(f"it states another commit than its run, which is of {found.commit}")
        check_attestation(service, wanted, found, archive, digest)
        packed.extractall(folder)


def check_attestation(service: Service, wanted: Wanted, found: Found, archive: bytes, digest: str) -> None:
    """Raises UnusableError where GitHub has attestations of the artifact, and none is of this repository and commit."""
    try:
        known = service.answer(f"/attestations/{digest}")["attestations"]
    except urllib.error.HTTPError as error:
        if error.code not in (403, 404):  # no permission to read attestations, or none there
            raise
        known = ()
    if not known:
        say("notice", f"GitHub shows no attestation of the artifact '{wanted.artifact}'; it is held by its run alone")
        return
    program = shutil.which("gh")
    if program is None:
        say(
            "notice", f"the attestation of the artifact '{wanted.artifact}' is not checked: there is no program gh here"
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "artifact.zip"
        file.write_bytes(archive)
        done = subprocess.run(
            [
                program, "attestation", "verify", str(file), "--repo", wanted.repository,
                "--source-digest", found.commit, "--source-ref", f"refs/heads/{wanted.branch}",
            ],
            env={**os.environ, "GH_TOKEN": service.token}, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise UnusableError("its attestation does not hold: `gh attestation verify` refuses it")


def say(kind: str, sentence: str) -> None:
    """kind: `notice` or `warning`. A line break would begin a command of its own."""
    sentence = sentence.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{kind} title=epcheck::{sentence}", file=sys.stderr)


def baseline(variables: Mapping[str, str]) -> str:
    """The id of the run whose artifact now lies in FOLDER; empty where there is none."""
    wanted = Wanted(
        artifact=variables["ARTIFACT"],
        branch=variables["BRANCH"] or variables["GITHUB_REF_NAME"],  # a schedule's event names no repository
        repository=variables["GITHUB_REPOSITORY"],
        repository_id=variables["GITHUB_REPOSITORY_ID"],
        workflow=variables["GITHUB_WORKFLOW_REF"].partition("@")[0].split("/", 2)[2],
        own_run=variables["GITHUB_RUN_ID"],
    )
    service = Service(f"{variables['GITHUB_API_URL']}/repos/{wanted.repository}", variables["TOKEN"])
    found = find(service, wanted)
    if found is None:
        say("notice", f"no earlier run of {wanted.workflow} on {wanted.branch} has the artifact '{wanted.artifact}'")
        return ""
    try:
        fetch(service, wanted, found, Path(variables["FOLDER"]))
    except UnusableError as error:
        say("warning", f"the artifact '{wanted.artifact}' of run {found.run} is not compared with: {error}")
        return ""
    return found.run


def main() -> None:
    run_id = ""
    try:
        run_id = baseline(os.environ)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, zipfile.BadZipFile) as error:
        say("warning", f"the run to compare with cannot be asked for: {error!r}")
    print(f"run-id={run_id}")


if __name__ == "__main__":
    main()
