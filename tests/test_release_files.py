"""What is released beside the code: it names the same release, dependencies and files as the code does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tests.programs import checked_run

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OF_CONDA = {"ml-dtypes": "ml_dtypes", "duckdb": "python-duckdb"}
"""Package -> its name in conda-forge, where that is another."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the test extra has hadolint and rattler-build on Linux")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_the_release_and_has_what_the_format_requires() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert f"## [{citation['version']}] - {citation['date-released']}" in text("CHANGELOG.md")


def test_the_conda_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = yaml.safe_load(text("distribution/conda/recipe.yaml"))
    assert recipe["context"]["version"] == PROJECT["version"]
    wanted = {f"python {PROJECT['requires-python']}"}
    for requirement in map(Requirement, PROJECT["dependencies"]):
        if requirement.name != "onnxruntime-directml":
            wanted.add(f"{OF_CONDA.get(requirement.name, requirement.name)} {requirement.specifier}")
    assert set(recipe["requirements"]["run"]) == wanted
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == f"epcheck = {PROJECT['scripts']['epcheck']}"


def test_the_dockerfile_installs_the_lab_as_a_user_without_privileges() -> None:
    lines = [line for line in text("distribution/docker/Dockerfile").splitlines() if line and not line.startswith("#")]
    words = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert set(words) == {"FROM", "RUN", "COPY", "USER", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert words[0] == "FROM"
    assert lines.index("USER 1000") < lines.index("RUN epcheck lab install") < lines.index('ENTRYPOINT ["epcheck"]')
    let_in = {line[1:] for line in text("distribution/docker/Dockerfile.dockerignore").splitlines() if line[0] == "!"}
    packages = {"api", "cli", "conformance", "generators", "models", "reports"}
    assert packages | {"setup.py", "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]} <= let_in
    assert [name for name in let_in if not (ROOT / name).exists()] == []


@on_linux
def test_the_dockerfile_breaks_no_rule_of_hadolint() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or "hadolint"
    done = subprocess.run(
        [program, ROOT / "distribution/docker/Dockerfile"], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@on_linux
def test_the_conda_recipe_is_one_that_rattler_build_reads() -> None:
    """Every field is known, and every expression has a value. Building it needs conda-forge's packages."""
    import rattler_build

    recipe = rattler_build.Stage0Recipe.from_yaml(text("distribution/conda/recipe.yaml"))
    (variant,) = recipe.render(rattler_build.VariantConfig())
    found = variant.recipe.to_dict()
    assert found["package"] == {"name": "epcheck", "version": PROJECT["version"]}
    assert found["build"]["noarch"] == "python"
    with pytest.raises(rattler_build.RattlerBuildError, match="requirments"):
        rattler_build.Stage0Recipe.from_yaml(
            text("distribution/conda/recipe.yaml").replace("requirements", "requirments")
        )


def test_every_extra_is_on_the_page_that_says_how_to_install() -> None:
    page = text("docs/guides/install.md")
    assert set(re.findall(r"\[(\w+)\]\"", page)) == PROJECT["optional-dependencies"].keys()


def test_every_python_that_is_promised_is_tested() -> None:
    promised = set(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
    assert promised == {"3.11", "3.12", "3.13", "3.14"}
    jobs = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]
    tested = {
        *jobs["pythons"]["strategy"]["matrix"]["python"],
        *re.findall(r"python:(3\.\d+)", jobs["linux"]["container"]),
    }
    assert tested == promised


def test_a_release_is_built_once_attested_and_published_from_there() -> None:
    jobs = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]
    assert {"id-token": "write", "attestations": "write"}.items() <= jobs["build"]["permissions"].items()
    used = [step["uses"].partition("@")[0] for step in jobs["build"]["steps"] if "uses" in step]
    assert "actions/attest-build-provenance" in used
    assert (jobs["try"]["needs"], jobs["publish"]["needs"]) == ("build", "try")
    assert "permissions" not in jobs["try"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert not any("run" in step for step in jobs["publish"]["steps"])


def test_what_attests_a_release_installs_only_files_of_known_content() -> None:
    jobs = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]
    installs = [
        step["run"]
        for job in jobs.values()
        if "id-token" in job.get("permissions", {})
        for step in job["steps"]
        if re.search(r"\b(pip|uv|pipx|npm|curl|apt)\b", step.get("run", ""))
    ]
    assert installs == ["python -m pip install --require-hashes --no-deps -r .github/release-requirements.txt"]
    assert "python -m build --no-isolation" in [step.get("run") for step in jobs["build"]["steps"]]
    lines = [line for line in text(".github/release-requirements.txt").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert {line.partition("==")[0] for line in lines} >= {"build", "setuptools"}


def test_every_action_of_others_is_named_by_its_commit() -> None:
    """A tag may be moved; the comment says which release the commit is."""
    files = [ROOT / "action.yml", *(ROOT / ".github" / "workflows").iterdir(), *ROOT.glob("examples/workflows/*")]
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "uses: " in path.read_text(encoding="utf-8")]
    used = [
        (path.name, line.strip())
        for path in (*files, *pages)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(- )?uses: ", line) and "OWNER/epcheck@main" not in line
    ]
    assert len(used) > 15
    pinned = re.compile(r"(?:- )?uses: [\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [found for found in used if not pinned.fullmatch(found[1])] == []
    commits = {line.partition("uses: ")[2] for _, line in used}
    assert len(commits) == len({each.partition("@")[0] for each in commits})  # one release of each


@pytest.mark.parametrize(
    "name", ["docs/images/report.png", "CHANGELOG.md", "examples/README.md", "distribution/conda/recipe.yaml"]
)
def test_the_manifest_names_what_the_sdist_must_have(name: str) -> None:
    lines = [line.split() for line in text("MANIFEST.in").splitlines()]
    grafted = {words[1] for words in lines if words[0] == "graft"}
    included = {word for words in lines if words[0] == "include" for word in words[1:]}
    assert name.partition("/")[0] in grafted or name in included
    assert (ROOT / name).is_file()


def test_git_for_windows_checks_out_the_bytes_of_the_repository(tmp_path: Path) -> None:
    """Tests compare bytes, and digests are of them; the installation of Git for Windows asks for CRLF."""
    names = ["README.md", "noxfile.py", "conformance/lab/packages/wheels.json", "docs/images/report.png"]
    asked = ["-c", "core.autocrlf=true", "checkout-index", f"--prefix={tmp_path.as_posix()}/"]
    checked_run(["git", *asked, *names], ROOT)
    assert [name for name in names if (tmp_path / name).read_bytes() != (ROOT / name).read_bytes()] == []
