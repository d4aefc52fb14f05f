#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh - the shared library exports exactly the names of tools/symbols.txt, all of them fkt_ names, and each
# function that a public header marks FKT_API is among them.
#
# Usage: check_symbols.sh [--bless] LIBRARY [ROOT]      --bless writes the list; review the diff
set -eu
bless=no
if [ "${1:-}" = --bless ]; then
    bless=yes
    shift
fi
[ $# -ge 1 ] || { echo "usage: check_symbols.sh [--bless] libfedkt.so [ROOT]" >&2; exit 2; }
library=$1
root=${2:-$(dirname -- "$0")/..}
LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --without-symbol-versions --defined-only "$library" >"$work/nm" || exit 2
awk '$2 != "w" && $2 != "A" { print $3 }' "$work/nm" | sort -u >"$work/have"
[ -s "$work/have" ] || { echo "'$library' exports nothing" >&2; exit 2; }
bad=0
if grep -v '^fkt_' "$work/have" >"$work/foreign"; then
    sed 's/^/exported name does not begin with fkt_: /' "$work/foreign"
    bad=1
fi
cat "$root"/include/fedkt/*.h | tr '\n' ' ' | grep -o 'FKT_API [^;(]*(' | grep -o 'fkt_[a-z0-9_]* *($' | tr -d ' (' |
    sort -u >"$work/declared"
if comm -23 "$work/declared" "$work/have" | grep . >"$work/absent"; then
    sed 's/^/declared FKT_API but not exported: /' "$work/absent"
    bad=1
fi
if [ "$bless" = yes ]; then
    cp "$work/have" "$root/tools/symbols.txt"
elif ! diff -u --label tools/symbols.txt --label exported "$root/tools/symbols.txt" "$work/have"; then
    echo "exported names differ from tools/symbols.txt; if that is meant: tools/check_symbols.sh --bless $library"
    bad=1
fi
exit $bad
