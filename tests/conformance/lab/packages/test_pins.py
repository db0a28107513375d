import re
from importlib.resources import files

import pytest

from epcheck.conformance.lab import DEFAULT_RUNTIME, LabError
from epcheck.conformance.lab.packages import pins


@pytest.mark.parametrize(
    ("asked", "folder"),
    [
        ("1.24.4", "onnxruntime-directml-1.24.4"),
        ("directml-1.20.1", "onnxruntime-directml-1.20.1"),
        ("onnxruntime-directml==1.17.3", "onnxruntime-directml-1.17.3"),
        ("1.30.0", "onnxruntime-windowsml-1.30.0.202609102321"),
        ("windowsml-1.30.0", "onnxruntime-windowsml-1.30.0.202609102321"),
        ("windowsml-1.30.0.202609102321", "onnxruntime-windowsml-1.30.0.202609102321"),
    ],
)
def test_a_runtime_is_named_by_its_release(asked: str, folder: str) -> None:
    wheel = pins.runtime(asked)
    assert wheel.folder == folder
    assert wheel.sha256 is not None


def test_a_release_that_is_not_pinned_is_installed_by_version_alone() -> None:
    assert pins.runtime("1.21.0") == pins.Wheel("onnxruntime-directml", "1.21.0")
    assert pins.runtime("1.21.0").requirement == "onnxruntime-directml==1.21.0"


def test_a_pinned_release_is_installed_by_its_hash() -> None:
    wheel = pins.runtime(DEFAULT_RUNTIME)
    assert wheel.requirement == f"onnxruntime-directml==1.24.4 --hash=sha256:{wheel.sha256}"


@pytest.mark.parametrize("asked", ["", "latest", "1.24.4 --index-url=x", "../1.24.4", "openvino-1.0"])
def test_what_cannot_be_a_release_is_refused(asked: str) -> None:
    with pytest.raises(LabError, match="is not a runtime; name a release like"):
        pins.runtime(asked)


def test_every_pin_has_a_whole_hash() -> None:
    packages = [*pins.read("debian.json")["packages"].values(), *pins.read("glvnd.json")["packages"].values()]
    releases = [release for versions in pins.read("wheels.json").values() for release in versions.values()]
    hashes = [
        *(p["sha256"] for p in packages),
        *(r["sha256"] for r in releases),
        *pins.read("debian.json")["sources"].values(),
    ]
    assert len(hashes) > 200
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in hashes)


@pytest.mark.parametrize("name", ["debian.json", "glvnd.json", "wheels.json"])
def test_the_pins_name_no_host(name: str) -> None:
    assert "://" not in files("epcheck.conformance.lab.packages").joinpath(name).read_text()
