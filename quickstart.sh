#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh - from a fresh checkout to the demo: installs missing packages, builds, and runs `fedkt demo` with the
# options given to this script. Relative paths in them start at the folder that you call it from.
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
