#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_headers.sh - each public header compiles alone, included twice, as C11 and as C++17, without a warning.
#
# Usage: check_headers.sh [ROOT]      CC and CXX choose the compilers; exit 0: all do, 1: a header does not
set -u
root=${1:-$(dirname -- "$0")/..}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

headers=$(cd "$root/include" && find fedkt -name '*.h' | sort)
[ -n "$headers" ] || { echo "no public headers under $root/include"; exit 1; }
bad=0

# compile WHAT COMPILER OPTION...: the source is $work/WHAT; the header's name is in $header.
compile() {
    what=$1
    shift
    if ! "$@" -Wall -Wextra -Werror -pedantic -I"$root/include" -fsyntax-only "$work/$what" 2>"$work/log"; then
        echo "$header: does not compile alone as $what:"
        sed 's/^/    /' "$work/log"
        bad=1
    fi
}

for header in $headers; do
    printf '#include "%s"\n#include "%s"\nint fkt_header_stands_alone;\n' "$header" "$header" >"$work/c11.c"
    cp "$work/c11.c" "$work/cxx17.cpp"
    compile c11.c "${CC:-gcc}" -std=c11
    compile cxx17.cpp "${CXX:-g++}" -std=c++17
done
exit $bad
