# SPDX-License-Identifier: Apache-2.0
# setup.sh - what quickstart.sh and check.sh share: packages from packages.txt, and one preset's build.
# Sourced, not run, by a POSIX shell with `set -eu`, in the repository's root.

say() { printf 'fedkt: %s\n' "$*" >&2; }

# packages_of SECTION...: the names listed under these sections of packages.txt.
packages_of() {
    for section in "$@"; do
        awk -v want="[$section]" '
            /^\[/ { on = ($1 == want); next }
            on { sub(/#.*/, ""); if ($1 != "") print $1 }' packages.txt
    done
}

# packages_missing NAME...: those that are not installed.
packages_missing() {
    for name in "$@"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) || state=absent
        [ "$state" = installed ] || printf '%s ' "$name"
    done
}

# apt_run ARGUMENT...: apt-get as root; its output goes to build/apt.log and is shown only on failure.
apt_run() {
    $root_prefix env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>build/apt.log 2>&1
}

# install_packages SECTION...: installs what is missing. `apt-get update` runs only when a package is unknown or the
# installation fails: the lists are old then.
install_packages() {
    command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 || {
        say "apt-get is not installed: packages.txt lists what the build needs"
        return 0
    }
    missing=$(packages_missing $(packages_of "$@"))
    [ -n "$missing" ] || return 0
    root_prefix=
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            root_prefix=sudo
            [ ! -t 0 ] || sudo -v || root_prefix=none
        else
            root_prefix=none
        fi
    fi
    if [ "$root_prefix" = none ]; then
        say "packages are missing and only root can install them; run this command, then start again:"
        printf 'apt-get update && apt-get install -y --no-install-recommends %s\n' "$missing" >&2
        return 1
    fi
    say "installing: $missing"
    mkdir -p build
    : >build/apt.log
    fresh=no
    for name in $missing; do
        [ -n "$(apt-cache show --no-all-versions "$name" 2>/dev/null)" ] && continue
        apt_run update || true
        fresh=yes
        break
    done
    apt_run install --no-install-recommends $missing && return 0
    [ "$fresh" = yes ] || { apt_run update && apt_run install --no-install-recommends $missing && return 0; }
    tail -n 20 build/apt.log >&2
    say "the packages could not be installed; the whole log is build/apt.log"
    return 1
}

# build_preset PRESET [TARGET...]: configure and build; output is shown only on failure. $configure_options holds
# options for the configuration, separated by blanks.
build_preset() {
    preset=$1
    shift
    say "building $preset in build/$preset"
    mkdir -p "build/$preset"
    cmake --preset "$preset" ${configure_options:-} >"build/$preset/configure.log" 2>&1 || {
        cat "build/$preset/configure.log" >&2
        return 1
    }
    if [ -t 1 ]; then quiet=; else quiet=--quiet; fi
    cmake --build --preset "$preset" ${1:+--target "$@"} --parallel "$(jobs_wanted)" -- $quiet
}

# install_peer NAME PACKAGE...: Python packages in the virtual environment build/peers/NAME, for tests that compare with
# them. Sets $peer_python, which is empty where they cannot be installed (no network); those tests are then skipped.
install_peer() {
    peer=build/peers/$1
    shift
    peer_python=$(pwd)/$peer/bin/python
    [ ! -e "$peer/ready" ] || return 0
    say "installing $* in $peer"
    mkdir -p build/peers
    if /usr/bin/python3 -m venv "$peer" >build/peers.log 2>&1 &&
        timeout 300 "$peer_python" -m pip install --quiet "$@" </dev/null >>build/peers.log 2>&1; then
        : >"$peer/ready"
    else
        say "$* could not be installed; their tests are skipped (build/peers.log)"
        peer_python=
    fi
}

jobs_wanted() { nproc 2>/dev/null || echo 2; }
