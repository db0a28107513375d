"""Shader model 6: Wine's own vkd3d, rebuilt from Debian's source package with the DXIL front end that Wine leaves out.

Stock Wine refuses every shader-model-6 kernel; DirectML uses them for int64 and float64 arithmetic, among others.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.graphics.compiler import Compiler, host_compiler, private_compiler
from epcheck.conformance.lab.packages.apt import Archive, describe_other_versions
from epcheck.conformance.lab.process import Say, in_threads, run

HEADERS = ("libwine-dev", "libvulkan-dev")
_COMPILE_S = 600  # the largest file takes 20 on an old core
OURS = "vkd3d"
"""The folder of the C files that are added to vkd3d."""

_WANTED = re.compile(r"[^/]+/(libs/vkd3d/.+|include/wine/(list|rbtree)\.h)")
_D3D_HEADERS = ("d3d12.h", "d3d12sdklayers.h", "d3d12shader.h", "d3dcommon.h", "d3dcompiler.h", "d3d10.h",
                "d3d11shader.h", "d3dx9*.h", "d3dx9*.inl")  # fmt: skip
_GUIDS = """\
#define COBJMACROS
#include <windows.h>
#include <initguid.h>
#include "d3dcommon.h"
#include "d3d12.h"
#include "d3d12sdklayers.h"
"""
_PARSERS = {"hlsl.tab.c": "hlsl.y", "hlsl.yy.c": "hlsl.l", "preproc.tab.c": "preproc.y", "preproc.yy.c": "preproc.l"}


def build(
    layout: Layout, archive: Archive, private: bool, say: Say, keep_open: int | None
) -> tuple[str, dict[str, str]]:
    """Build `layout.dxil`; returns detail and facts. private: do not use the machine's compiler even if it has one.

    Raises LabError when sources do not arrive or do not compile.
    """
    work = layout.scratch / "dxil"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    compiler = None if private else host_compiler()
    # The longest single-core work, unpacking the source, runs beside the download of the compiler.
    tarball, version = archive.fetch_source("wine")
    headers = archive.fetch_only(HEADERS)
    with ThreadPoolExecutor(1) as pool:
        extraction = pool.submit(_extract, tarball, work)
        if compiler is None:
            compiler = private_compiler(layout, archive, say)
        archive.unpack(headers, work / "headers")
        extraction.result()
    say("preparing the sources", None, None)
    sources, flags = _prepare(work, compiler)
    objects = _compile(compiler, sources, flags, work, say, keep_open)
    part = work / layout.dxil.name
    run(
        [
            *compiler.gcc,
            "-shared",
            "-static-libgcc",
            "-s",
            "-o",
            part,
            *objects,
            "-ldxguid",
            "-luuid",
            "-lgdi32",
            "-luser32",
        ],
        what="linking vkd3d",
        env=compiler.env,
    )
    layout.dxil.parent.mkdir(exist_ok=True)
    part.replace(layout.dxil)
    release = re.search(r'#define PACKAGE_VERSION "([^"]+)"', (work / "wine/libs/vkd3d/config.h").read_text())
    shutil.rmtree(work, ignore_errors=True)
    if compiler.root:
        shutil.rmtree(compiler.root, ignore_errors=True)
    detail = "; ".join(
        filter(None, [f"from wine {version}, compiled by {compiler.name}", describe_other_versions(headers)])
    )
    return detail, {"vkd3d": release[1] if release else version}


def own_sources() -> dict[str, str]:
    """The C files that the rebuilt library adds, by name: how it makes a device, and what it does for Vulkan's part."""
    folder = files(__package__).joinpath(OURS)
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith((".c", ".h"))
    }


def _extract(tarball: Path, work: Path) -> None:
    """Unpack the parts of Wine's source that are needed to `work/wine`."""
    with tarfile.open(tarball, "r|*") as tar:
        for member in tar:
            if member.isfile() and (match := _WANTED.fullmatch(member.name)):
                target = work / "wine" / match[1]
                target.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())
            elif "/libs/vkd3d/" not in member.name and (work / "wine/libs/vkd3d").is_dir():
                break  # the archive is sorted, and most of it lies ahead
    if not (work / "wine/include/wine/rbtree.h").is_file():
        raise LabError(f"{tarball.name} lacks libs/vkd3d; install another release of epcheck")


def _prepare(work: Path, compiler: Compiler) -> tuple[list[Path], list[str]]:
    """Lay headers and generated parsers out; returns the C files and the compiler's flags."""
    vkd3d, include, generated = work / "wine/libs/vkd3d", work / "include", work / "generated"
    for folder in (include / "wine", include / "vulkan-headers", generated):
        folder.mkdir(parents=True)
    unpacked = work / "headers/usr/include"
    for pattern in _D3D_HEADERS:
        for header in (unpacked / "wine/wine/windows").glob(pattern):
            shutil.copy(header, include)
    for header in (work / "wine/include/wine").iterdir():
        shutil.copy(header, include / "wine")
    for name in ("vulkan", "vk_video"):
        shutil.copytree(unpacked / name, include / "vulkan-headers" / name)
    # Wine's headers name anonymous unions by macros of its own; mingw's windows.h does not have them.
    d3d12 = (include / "d3d12.h").read_text()
    d3d12 = re.sub(r"__C89_NAMELESSUNIONNAME(\d*)", r"u\1", d3d12)
    d3d12 = re.sub(r"__C89_NAMELESSSTRUCTNAME(\d*)", r"s\1", d3d12)
    d3d12 = re.sub(r"^( *)__C89_NAMELESS (union|struct)", r"\1\2", d3d12, flags=re.MULTILINE)
    (include / "d3d12.h").write_text(d3d12)
    before_all = include / "before_all.h"
    before_all.write_text("#undef DECL_WINELIB_TYPE_AW\n#define DECL_WINELIB_TYPE_AW(x)\n")
    (include / "wine/vulkan.h").write_text(
        "#define VK_USE_PLATFORM_WIN32_KHR\n#include <windows.h>\n#include <vulkan/vulkan.h>\n"
    )
    (work / "guids.c").write_text(_GUIDS)
    ours = work / "epcheck"
    ours.mkdir()
    for name, text in own_sources().items():
        (ours / name).write_text(text, encoding="utf-8")
    for output, grammar in _PARSERS.items():
        source = vkd3d / "libs/vkd3d-shader" / grammar
        command = [compiler.bison, "-d", "-o"] if grammar.endswith(".y") else [compiler.flex, "-o"]
        run([*command, generated / output, source], what=f"generating {output}", env=compiler.env)
    flags = [  # -O2 takes half as long again to compile; the time of a run is the driver's
        "-O1", "-w", "-include", f"{vkd3d}/config.h", "-include", str(before_all),
        *(f"-I{p}" for p in (vkd3d, include, include / "vulkan-headers", generated, vkd3d / "include",
                             vkd3d / "include/private", vkd3d / "libs/vkd3d", vkd3d / "libs/vkd3d-shader", ours)),
        "-DNONAMELESSUNION", "-DNONAMELESSSTRUCT", "-DLIBVKD3D_SOURCE", "-DLIBVKD3D_SHADER_SOURCE",
        "-DLIBVKD3D_UTILS_SOURCE", "-DVKD3D_SHADER_UNSUPPORTED_DXIL", "-D__USE_MINGW_ANSI_STDIO=1",
    ]  # fmt: skip
    return [*(vkd3d / "libs").glob("*/*.c"), *generated.glob("*.c"), *ours.glob("*.c"), work / "guids.c"], flags


def _compile(
    compiler: Compiler, sources: list[Path], flags: list[str], work: Path, say: Say, keep_open: int | None
) -> list[Path]:
    objects = work / "objects"
    objects.mkdir()
    sources = sorted(sources, key=lambda p: -p.stat().st_size)
    total, done = sum(p.stat().st_size for p in sources), 0

    def compile_one(source: Path) -> None:
        target = objects / f"{source.parent.name}-{source.name}.o"
        command: list[str | Path] = [*compiler.gcc, *flags, "-c", source, "-o", target]
        what = f"compiling {source.name}"
        run(command, what=what, env=compiler.env, keep_open=keep_open, timeout=_COMPILE_S)

    for source in in_threads(compile_one, sources):
        done += source.stat().st_size
        say(f"compiling {len(sources)} files", done, total)
    return sorted(objects.iterdir())
