#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh - from a fresh checkout to the demo: install what is missing, build, run `fedkt demo` with the options
# given here. Paths among the options are those of the folder you call it from.
set -eu
caller=$(pwd)
cd -- "$(dirname -- "$0")"
root=$(pwd)
. tools/setup.sh

install_packages build
build_preset release fedkt_cli
cd -- "$caller"
say "running fedkt demo $*"
"$root/build/release/bin/fedkt" demo --force "$@"
say "the binary is $root/build/release/bin/fedkt"
