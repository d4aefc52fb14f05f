# SPDX-License-Identifier: Apache-2.0
"""build_package.py - the build backend: scikit-build-core, and a source distribution that holds the C library too.

The library is two folders above the package, where a source distribution cannot reach. For one, the package is copied
to a temporary folder with the library's sources in `library/`, where CMakeLists.txt looks for them first.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile

from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARY = ["CMakeLists.txt", "LICENSE", "README.md", "include", "src", "proto", "packaging", "models"]
PACKAGE = ["pyproject.toml", "build_package.py", "declare.py", "CMakeLists.txt", "README.md", "src"]


def _copy(source, names, target):
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, place, ignore=shutil.ignore_patterns("__pycache__", "_declarations.py"))
        else:
            shutil.copy2(source / name, place)


@contextlib.contextmanager
def _inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def build_sdist(sdist_directory, config_settings=None):
    if (HERE / "library").is_dir():  # from a source distribution
        return backend.build_sdist(sdist_directory, config_settings)
    target = pathlib.Path(sdist_directory).resolve()
    with tempfile.TemporaryDirectory(prefix="fedkt-sdist-") as name:
        folder = pathlib.Path(name)
        _copy(HERE, PACKAGE, folder)
        _copy(ROOT, LIBRARY, folder / "library")
        with _inside(folder):
            return backend.build_sdist(str(target), config_settings)
