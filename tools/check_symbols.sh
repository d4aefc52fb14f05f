#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh - the shared library exports exactly what the public headers declare, and both are as listed.
#
# A function that a header of include/fedkt marks FKT_API belongs to the stable tier, one of include/fedkt/advanced to
# the advanced tier (docs/abi.md). tools/symbols/stable.txt and advanced.txt hold the names, so that a change of the
# interface is a change of a file that somebody reviews.
#
# Usage: check_symbols.sh [--bless] LIBRARY [ROOT]      --bless writes both lists anew; review the diff
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
bad=0

# violations TEXT: each line of $work/found is one; TEXT says of what.
violations() {
    [ -s "$work/found" ] || return 0
    sed "s/^/$1/" "$work/found"
    bad=1
}

# declared FOLDER: the functions that its headers mark FKT_API. Comments go first: they may hold brackets.
declared() {
    cat "$1"/*.h 2>/dev/null | tr '\n' ' ' | sed 's:/\*[^*]*\*\**\([^/*][^*]*\*\**\)*/: :g' |
        grep -o 'FKT_API [^;(]*(' | grep -o 'fkt_[a-z0-9_]* *($' | tr -d ' (' | sort -u
}

nm -D --defined-only "$library" >"$work/nm" || exit 2
awk '$2 != "w" && $2 != "A" { sub(/@.*/, "", $3); print $3 }' "$work/nm" | sort -u >"$work/exported"
[ -s "$work/exported" ] || { echo "'$library' exports nothing" >&2; exit 2; }
declared "$root/include/fedkt" >"$work/stable"
declared "$root/include/fedkt/advanced" >"$work/advanced" || :
sort -u "$work/stable" "$work/advanced" >"$work/declared"

grep -v '^fkt_' "$work/exported" >"$work/found" || :
violations 'exported name does not begin with fkt_: '
comm -12 "$work/stable" "$work/advanced" >"$work/found"
violations 'declared in both tiers: '
comm -23 "$work/declared" "$work/exported" >"$work/found"
violations 'declared FKT_API but not exported: '
comm -13 "$work/declared" "$work/exported" >"$work/found"
violations 'exported but declared in no public header: '
for tier in stable advanced; do
    list=tools/symbols/$tier.txt
    if [ "$bless" = yes ]; then
        mkdir -p "$root/tools/symbols"
        cp "$work/$tier" "$root/$list"
    elif ! diff -u --label "$list" --label "$tier headers" "$root/$list" "$work/$tier"; then
        echo "the $tier interface differs from $list; if that is meant: tools/check_symbols.sh --bless $library"
        bad=1
    fi
done
exit $bad
