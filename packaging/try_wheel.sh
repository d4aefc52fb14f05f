#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try_wheel.sh - a wheel in a new Debian 12 that has Python and nothing else of ours: no compiler, none of the libraries
# that the wheel must carry. It is installed there with NumPy, and the tutorial runs.
#
# Usage: try_wheel.sh WHEEL [FOLDER]      default FOLDER: a temporary one, removed at the end
# Needs root, debootstrap, a Debian mirror ($MIRROR, or debootstrap's own) and python3 with pip, which fetches NumPy for
# the Python in the folder; nothing in the folder uses a network. A FOLDER that is named stays, and is used again.
set -eu
wheel=${1:?usage: try_wheel.sh WHEEL [FOLDER]}
here=$(cd -- "$(dirname -- "$0")" && pwd)
[ "$(id -u)" -eq 0 ] || { echo "try_wheel.sh: chroot needs root" >&2; exit 2; }
if [ $# -gt 1 ]; then root=$2; else root=$(mktemp -d); fi
say() { printf 'try_wheel.sh: %s\n' "$*" >&2; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/try LANG=C.UTF-8 "$@"; }
clean() {
    umount "$root/proc" 2>/dev/null || true
    [ $# -gt 0 ] || rm -rf -- "$root"
}
trap 'clean ${2:+keep}' EXIT
trap 'exit 1' HUP INT TERM

if [ ! -e "$root/usr/bin/python3" ]; then
    mkdir -p "$root"
    say "making a Debian 12 in $root"
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" ${MIRROR:-} >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; exit 1; }
fi
mount -t proc proc "$root/proc" # oneDNN and OpenBLAS count processors there
found=$(inside sh -c 'for name in cc gcc clang c++ ld make cmake; do command -v $name; done; true')
[ -z "$found" ] || { say "it has a compiler: $found"; exit 1; }
ours='libopenblas* libdnnl* libsodium* libmicrohttpd* libarchive*'
found=$(inside dpkg-query -W -f '${Package}\n' $ours 2>/dev/null || true)
[ -z "$found" ] || { say "it has libraries of ours: $found"; exit 1; }
say "$(inside dpkg-query -W | wc -l) packages, $(inside python3 --version), no compiler"

rm -rf "$root/wheels" "$root/try/venv" "$root/try/tutorial"
mkdir -p "$root/wheels" "$root/try/tutorial"
cp -- "$wheel" "$root/wheels"
cp -- "$here/../bindings/python/tutorial.py" "$root/try/tutorial"
version=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python3 -m pip download --quiet --no-deps --only-binary :all: --python-version "$version" --dest "$root/wheels" numpy
inside python3 -m venv /try/venv
inside /try/venv/bin/pip install --quiet --no-index --find-links /wheels fedkt
installed=$(inside /try/venv/bin/pip list 2>/dev/null | awk 'NR > 2 {printf "%s %s, ", $1, $2}')
say "$installed$(du -sh "$root/try/venv" | cut -f1)"
begin=$(date +%s)
inside sh -c 'cd /try/tutorial && /try/venv/bin/python tutorial.py'
end=$(date +%s)
for name in ledger.db release.safetensors model.safetensors whole.onnx synthetic/grid.png; do
    [ -s "$root/try/tutorial/$name" ] || { say "the tutorial left no $name"; exit 1; }
done
say "the tutorial ran in $((end - begin)) s"
