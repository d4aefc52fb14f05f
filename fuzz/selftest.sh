#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# selftest.sh - replay.c must find a planted crash and a planted leak, in a file and in a mutation of one, the same each
# time.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir good crash leak near empty
printf 'x' >good/a
printf 'Crash' >crash/a
printf 'Leak' >leak/a
printf 'B' >near/a # one bit away from 'C'

fail() { echo "selftest: $*"; exit 1; }
"$program" good 0 >/dev/null || fail "a good corpus was refused"
if "$program" crash 0 2>log; then fail "a crash passed"; fi
grep -q "on 'a', variant -1" log || fail "the crashing file is not named"
cmp -s crash-replay_selftest.bin crash/a || fail "the crashing input was not kept"
if "$program" crash-replay_selftest.bin 2>/dev/null; then fail "the kept input does not crash again"; fi
if "$program" leak 0 2>log; then fail "a leak passed"; fi
grep -q "1 blocks of memory were not given back" log || fail "the leak is not named"
if "$program" near 5000 2>log; then fail "no mutation turned B into C"; fi
grep -o "variant [0-9]*" log >first
if "$program" near 5000 2>log; then fail "the second run found nothing"; fi
grep -o "variant [0-9]*" log | cmp -s - first || fail "two runs differ"
if "$program" empty 10 2>/dev/null; then fail "an empty corpus passed"; fi
