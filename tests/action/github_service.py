"""Answers as GitHub's API does, made from runs and artifacts that a test declares."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

OURS, FORK = 11, 22
"""Ids of repositories."""

WORKFLOW = ".github/workflows/conformance.yml"
ON_BRANCH, ELSEWHERE = "a" * 40, "b" * 40
"""Commits: one that the default branch has, and one that it has not."""


def packed(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def packed_folder(folder: Path) -> bytes:
    files = (path for path in folder.rglob("*") if path.is_file())
    return packed({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})


def run(number: int, day: int = 20, **changes: Any) -> dict[str, Any]:
    """A run that a push to the default branch started."""
    return {
        "id": number, "created_at": f"2026-11-{day:02}T00:00:00Z", "event": "push", "head_branch": "main",
        "head_sha": ON_BRANCH, "path": WORKFLOW, "status": "completed", "conclusion": "failure",
        "repository": {"id": OURS}, "head_repository": {"id": OURS}, **changes,
    }  # fmt: skip


@dataclass
class Service:
    """Runs, with what their artifact `epcheck-main` holds; a run without has none.

    filters: whether runs are left out as the query asks; without it a test sees that the program looks itself.
    artifact: what differs in the description of artifacts, by the run. attested: digests that have an attestation.
    asked: paths and queries.
    """

    runs: list[dict[str, Any]] = field(default_factory=list)
    archives: dict[int, bytes] = field(default_factory=dict)
    artifact: dict[int, dict[str, Any]] = field(default_factory=dict)
    attested: set[str] = field(default_factory=set)
    filters: bool = True
    asked: list[str] = field(default_factory=list)

    def add(self, made: dict[str, Any], files: Mapping[str, bytes] | None = None, **artifact: Any) -> None:
        """files: of the artifact; as the action uploads them where it is not said."""
        own = {"commit.txt": f"{made['head_sha']}\n".encode(), "runs/20261120-000000-aaaa/run.json": b"{}"}
        self.runs.append(made)
        self.archives[made["id"]] = packed(own if files is None else files)
        self.artifact[made["id"]] = artifact

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """A JSON document or bytes; None where there is nothing."""
        head, *rest = path.removeprefix("/repos/someone/provider/").split("/")
        match head, *rest:
            case "actions", "workflows", "conformance.yml", "runs":
                assert (query["branch"], query["status"], query["per_page"]) == ("main", "completed", "100")
                return {"workflow_runs": self._page(query["event"], int(query["page"]))}
            case "actions", "runs", number, "artifacts":
                assert query["name"] == "epcheck-main"
                return {"artifacts": [self._artifact(int(number))] if int(number) in self.archives else []}
            case "actions", "artifacts", number, "zip":
                return self.archives[int(number) - 1000]
            case "compare", commits:
                return {"status": "diverged" if commits == f"{ELSEWHERE}...main" else "ahead"}
            case "attestations", digest:
                return {"attestations": [{}]} if digest in self.attested else None
        raise AssertionError(path)

    def _page(self, event: str, page: int) -> list[dict[str, Any]]:
        listed = [each for each in self.runs if not self.filters or each["event"] == event]
        newest_first = sorted(listed, key=lambda each: each["created_at"], reverse=True)
        return newest_first[100 * (page - 1) : 100 * page]

    def _artifact(self, number: int) -> dict[str, Any]:
        (made,) = (each for each in self.runs if each["id"] == number)
        by = {"id": number, "head_repository_id": made["head_repository"]["id"], "head_sha": made["head_sha"]}
        digest = f"sha256:{hashlib.sha256(self.archives[number]).hexdigest()}"
        described = {
            "id": number + 1000,
            "name": "epcheck-main",
            "expired": False,
            "digest": digest,
            "workflow_run": by,
        }
        return {**described, **self.artifact[number]}


@contextmanager
def serving(service: Service) -> Iterator[dict[str, str]]:
    """The variables of GitHub's runner that lead to the service."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append(self.path)
            if self.path.startswith("/store/"):  # where GitHub keeps artifacts: another service, which gets no token
                assert "Authorization" not in self.headers
                self.reply(200, service.archives[int(self.path.rpartition("/")[2])])
                return
            assert self.headers["Authorization"] == "Bearer secret"
            address = urlsplit(self.path)
            found = service.answer(address.path, {name: values[0] for name, values in parse_qs(address.query).items()})
            if isinstance(found, bytes):
                number = int(address.path.split("/")[-2]) - 1000
                self.reply(302, b"", Location=f"/store/{number}")
            else:
                self.reply(404 if found is None else 200, json.dumps(found).encode())

        def reply(self, code: int, body: bytes, **headers: str) -> None:
            self.send_response(code)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield variables(f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


def variables(address: str) -> dict[str, str]:
    """Of GitHub's runner, which the action reads. address: of the API."""
    return {
        "GITHUB_API_URL": address, "GITHUB_REPOSITORY": "someone/provider", "GITHUB_REPOSITORY_ID": str(OURS),
        "GITHUB_RUN_ID": "9", "GITHUB_REF_NAME": "main", "GITHUB_SHA": ON_BRANCH,
        "GITHUB_WORKFLOW_REF": f"someone/provider/{WORKFLOW}@refs/pull/5/merge",
    }  # fmt: skip
