#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# selftest_fuzzer.sh - run_fuzzer.sh must report a planted crash, leak and undefined behaviour of a corpus file, find a
# crash that no corpus file has, and refuse an empty corpus.
set -eu
program=$1
run=$(cd "$(dirname "$0")" && pwd)/run_fuzzer.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir Crash Leak Undefined none empty
for fault in Crash Leak Undefined; do printf '%s' "$fault" >$fault/a; done
printf 'x' >none/a

fail() { echo "selftest: $*"; cat log; exit 1; }
reports() { # FOLDER, WORDS THAT MUST BE SAID, KIND OF ARTIFACT
    rm -f found-*
    if "$run" "$program" "$1" 20 >log 2>&1; then fail "no finding with the corpus '$1'"; fi
    grep -q "$2" log || fail "the report of '$1' does not say '$2'"
    ls found-"$(basename "$program")"-$3-* >/dev/null 2>&1 || fail "the input of '$1' was not kept"
}
reports Crash 'deadly signal' crash
reports Leak 'LeakSanitizer: detected memory leaks' leak
reports Undefined 'runtime error: signed integer overflow' crash
reports none 'SUMMARY: ' '*'
if "$run" "$program" empty 1 >log 2>&1; then fail "an empty corpus passed"; fi
