#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_fuzzer.sh PROGRAM CORPUS SECONDS - libFuzzer on one target: every file of the corpus, then mutations for so long.
# New inputs go to a scratch folder that is removed. Any finding (crash, leak, undefined behaviour, 20 s without an
# answer, 2 GB of memory) ends with exit 1; its input stays in the working folder as found-<target>-<kind>-<hash>.
set -eu
program=$1 corpus=$2 seconds=$3
name=$(basename "$program")
[ -n "$(ls "$corpus")" ] || { echo "run_fuzzer: the corpus '$corpus' is empty"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$program" -max_total_time="$seconds" -max_len=8192 -timeout=20 -rss_limit_mb=2048 -error_exitcode=1 \
    -artifact_prefix="found-$name-" "$scratch" "$corpus"
