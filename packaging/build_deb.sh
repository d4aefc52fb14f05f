#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_deb.sh - the Debian packages libfedkt0, libfedkt-dev, fedkt-models and fedkt, and where MPI is installed
# fedkt-mpi, from a checkout, in build/deb/packages.
#
# Usage: packaging/build_deb.sh       needs packages.txt [build], dpkg-dev and file; lintian checks, where installed
#
# DEBFULLNAME and DEBEMAIL, where both are set, name the maintainer. Times in the packages
# come from SOURCE_DATE_EPOCH, or else from the last entry of packaging/deb/changelog.
set -eu
cd -- "$(dirname -- "$0")/.."
. tools/setup.sh

for tool in dpkg-shlibdeps file; do
    command -v "$tool" >/dev/null 2>&1 || { say "'$tool' is not installed; Debian packages: dpkg-dev, file"; exit 1; }
done
umask 022 # folders and files of the packages get their modes from it
if [ -n "${DEBFULLNAME:-}" ] && [ -n "${DEBEMAIL:-}" ]; then
    maintainer="$DEBFULLNAME <$DEBEMAIL>"
else
    maintainer="fedkt maintainers <maintainers@fedkt.example>"
    say "DEBFULLNAME and DEBEMAIL are not set: the packages name a maintainer without a real address"
fi
: "${SOURCE_DATE_EPOCH:=$(dpkg-parsechangelog -l packaging/deb/changelog -S Timestamp)}"
export SOURCE_DATE_EPOCH

out=$(pwd)/build/deb/packages
cmake --preset deb -DFEDKT_MAINTAINER="$maintainer" >/dev/null
build_preset deb fedkt fedkt_static fedkt_cli fedkt_help fedkt_deb
rm -rf "$out"
(cd build/deb && cpack -G DEB -B "$out" >cpack.log 2>&1) || { cat build/deb/cpack.log >&2; exit 1; }
rm -rf "$out/_CPack_Packages"
for package in "$out"/*.deb; do
    say "$package"
done
if command -v lintian >/dev/null 2>&1; then
    say "checking with lintian"
    lintian --fail-on error,warning "$out"/*.deb
else
    say "lintian is not here: the packages are not checked"
fi
