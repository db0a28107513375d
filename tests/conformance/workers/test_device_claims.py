"""What a device says it supports, beside what is documented of the release of DirectML."""

from epcheck.conformance.directml import probing
from epcheck.conformance.directml.client import DirectMLClient
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.device_claims import with_documented
from epcheck.generators.directml import FeatureLevel
from epcheck.generators.directml.probes import probes
from epcheck.reports.page.device_claims import claims

ELEVEN = "FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, FLOAT64, UINT64, INT64"


def facts(release: str, level: str, data_types: str) -> dict[str, str]:
    return {"DirectML.dll": release, "feature_level": level, "tensor_data_types": data_types}


def differences(release: str, level: str, data_types: str) -> tuple[str, ...]:
    found = claims(with_documented(facts(release, level, data_types)))
    assert found is not None
    return found.differences


def test_a_target_that_claims_nothing_has_no_claims() -> None:
    assert claims(with_documented({"DirectML.dll": "1.15.4.0", "onnxruntime": "1.24.4"})) is None


def test_each_release_is_held_to_its_own_level() -> None:
    assert differences("1.15.4.0", "DML_FEATURE_LEVEL_6_4", f"{ELEVEN}, UINT4, INT4") == ()
    assert differences("1.13.1.0", "DML_FEATURE_LEVEL_6_2", ELEVEN) == ()


def test_every_difference_is_named() -> None:
    assert differences("1.15.4.0", "DML_FEATURE_LEVEL_5_0", ELEVEN.replace("FLOAT16", "FLOAT8") + ", UINT4, INT4") == (
        "the device claims DML_FEATURE_LEVEL_5_0; documented is DML_FEATURE_LEVEL_6_4",
        "the device does not claim FLOAT16",
        "the device claims FLOAT8, which is not documented",
    )


def test_the_types_of_four_bits_are_documented_from_level_6_3_on() -> None:
    assert differences("1.13.1.0", "DML_FEATURE_LEVEL_6_2", f"{ELEVEN}, INT4") == (
        "the device claims INT4, which is not documented",
    )


def test_a_release_that_is_not_listed_is_a_difference() -> None:
    found = claims(with_documented(facts("1.14.1.0", "DML_FEATURE_LEVEL_6_3", ELEVEN)))
    assert found is not None
    assert found.documented_level == ""
    assert found.differences == ("DirectML 1.14.1.0 is not in the documented list of releases",)


def test_what_the_device_s_level_lacks_is_left_out_of_the_probes() -> None:
    nothing_is_called = DirectMLClient(Target("directml", (), ()))
    nothing_is_called.worker.facts = facts("1.13.1.0", "DML_FEATURE_LEVEL_6_2", ELEVEN)
    assert nothing_is_called.level() is FeatureLevel.DML_FEATURE_LEVEL_6_2
    (attention,) = [probe for probe in probes() if "MULTIHEAD_ATTENTION1" in probe.id]
    made = probing.run_probe(nothing_is_called, attention)
    assert made.wrong == ""
    assert made.left_out == "DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC came with DML_FEATURE_LEVEL_6_3"
    assert list(probing.borders(nothing_is_called, attention.description)) == []
