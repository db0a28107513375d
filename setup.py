"""An editable install that static tools can follow. Wheels and sdists are built as pyproject.toml alone says.

By itself, setuptools installs a `package-dir` of several folders through an import hook, which type checkers and
editors cannot run. Here an editable install makes a folder of links and installs a `.pth` file that names it:

    .editable/epcheck/generators -> ../../generators      one link for each top-level package
    .editable/epcheck/__main__.py                         a copy: there are junctions of folders alone
    .editable/pyright.json                                where pyright and Pylance look first

A new module is found without another install; a new top-level package needs one. Where the file system has no links,
setuptools' import hook is installed instead.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel

if TYPE_CHECKING:
    from setuptools.command.editable_wheel import EditableStrategy

LINKS = ".editable"
MAIN = "__main__.py"


def make_links(root: Path, package_dir: Mapping[str, str]) -> None:
    """`epcheck.generators = "generators"` of `package-dir` becomes the link `.editable/epcheck/generators`.

    Links of packages that are gone are removed. Raises OSError where there can be no links.
    """
    packages = {name: folder for name, folder in package_dir.items() if "." in name}
    links = {root.joinpath(LINKS, *name.split(".")): root / folder for name, folder in packages.items()}
    for namespace in {link.parent for link in links}:
        namespace.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / package_dir[namespace.name] / MAIN, namespace)
        for old in namespace.iterdir():
            if old.name != MAIN and (old not in links or old.resolve() != links[old].resolve()):
                remove_link(old)
    for link, folder in links.items():
        if not link.exists():
            make_link(link, folder)


def make_link(link: Path, folder: Path) -> None:
    """A symbolic link, or on Windows a junction, which needs no privilege."""
    if sys.platform == "win32":
        from _winapi import CreateJunction

        CreateJunction(str(folder), str(link))
    else:
        link.symlink_to(os.path.relpath(folder, link.parent), target_is_directory=True)


def remove_link(link: Path) -> None:
    """Removes a link or a junction, never what it leads to."""
    if link.is_symlink():
        link.unlink()
    else:
        link.rmdir()  # a junction; raises OSError for a folder that holds files


def write_pyright_settings(root: Path) -> None:
    """What `[tool.pyright]` extends.

    A checkout in a folder named `epcheck` is the namespace itself, seen from the folder above. pyright then finds each
    file under one path; through the links it has two, and looks for references and changes under one of them only.
    """
    environments = [{"root": "../.."}] if root.name == "epcheck" else []
    settings = {"executionEnvironments": environments}
    root.joinpath(LINKS, "pyright.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")


class EditableWheel(editable_wheel):
    """`pip install -e .`: the path to the links instead of the import hook."""

    def _select_strategy(self, name: str, tag: str, build_lib: str) -> EditableStrategy:
        root = Path(self.project_dir).resolve()
        try:
            from setuptools.command.editable_wheel import _StaticPth  # private: nothing but this may depend on it

            make_links(root, self.distribution.package_dir or {})
            write_pyright_settings(root)
        except (ImportError, OSError) as error:
            warnings.warn(f"no links in '{root / LINKS}': {error}; type checkers will not find epcheck", stacklevel=1)
            # The hook takes a folder of `epcheck` for the whole of it: `python -m epcheck` is left out.
            self.distribution.py_modules = []
            (self.distribution.package_dir or {}).pop("epcheck", None)
            return super()._select_strategy(name, tag, build_lib)
        return _StaticPth(self.distribution, name, [root / LINKS])


if __name__ == "__main__":
    setup(cmdclass={"editable_wheel": EditableWheel})
