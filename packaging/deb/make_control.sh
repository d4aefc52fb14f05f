#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_control.sh - the control files of a library package, in FOLDER:
#     symbols     every exported name with the version that has it
#     shlibs      the same for the library as a whole
#     depends     the packages of what it is linked with, for the field Depends
#
# Usage: make_control.sh LIBRARY PACKAGE VERSION FOLDER
set -eu
[ $# -eq 4 ] || { echo "usage: make_control.sh LIBRARY PACKAGE VERSION FOLDER" >&2; exit 2; }
library=$1 package=$2 version=$3 folder=$4
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
[ -n "$soname" ] || { echo "'$library' has no soname" >&2; exit 1; }
mkdir -p "$folder/debian"
: >"$folder/debian/control" # dpkg-shlibdeps wants to stand beside one
(cd "$folder" && dpkg-shlibdeps -O -e"$library") | sed 's/^shlibs:Depends=//' >"$folder/depends"
# Before 1.0 the ABI may change with the minor version (docs/abi.md).
major=${version%%.*} minor=${version#*.} minor=${minor%%.*}
next="$major.$((minor + 1))~"
echo "${soname%.so.*} ${soname##*.so.} $package (>= $version), $package (<< $next)" >"$folder/shlibs"
{
    echo "$soname $package #MINVER#, $package (<< $next)"
    echo "* Build-Depends-Package: libfedkt-dev"
    nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@@\?/ /' |
        awk -v v="$version" '{ node = NF > 1 ? $2 : $1; printf " %s@%s %s\n", $1, node, v }' | LC_ALL=C sort
} >"$folder/symbols"
