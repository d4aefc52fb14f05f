#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a card, in one go: tests of the label gpu, compute-sanitizer, benchmarks. docs/results.md, "On
# one H200".
#
# usage: bench/gpu.sh BUILD [OUT]
#
#   BUILD  a build with -DFEDKT_CUDA=ON, maybe of another machine: bin/fedkt, and test binaries t_*_card anywhere below.
#          Shared libraries that this machine lacks are found in BUILD/lib and BUILD/libs.
#   OUT    a folder for the results (default: gpu-results): logs, JSON, and table.txt, which is also printed last.
#
# Environment:
#   PARTS   some of "versions tests weights warm sanitizer peak cost train pair repeat any cpu" (default: all)
#   PYTHON  with PyTorch, safetensors and numpy (default: python3)
#   CODECS  a folder with TAESD's published weights (default: random ones)
#   CORES   for the comparison on the processor (default: 0,1)
#   DEVICE  default: cuda
#   SCRATCH a folder for weights and the compiler's cache (default: a new one); with the same one the parts can be run
#           in several visits, each with its own OUT: bench/gpu_report.py takes several folders
#   QUICK   1: a look whether everything runs, with small sizes
#
# A part that fails or takes too long does not stop the others. While PyTorch's compiler fills its cache (warm), tests
# and compute-sanitizer run: nothing is timed then. Exit 1 when a test failed or the sanitizer found something.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: bench/gpu.sh BUILD [OUT]}" && pwd)
out=${2:-gpu-results}
mkdir -p "$out/logs"
out=$(cd "$out" && pwd)
python=${PYTHON:-python3}
device=${DEVICE-cuda}
scratch=${SCRATCH:-$(mktemp -d)}
parts=${PARTS:-versions tests weights warm sanitizer peak cost train pair repeat any cpu}
fedkt=$build/bin/fedkt
LD_LIBRARY_PATH=$build/lib:$build/libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
begun=$(date +%s)
failed=0
[ -n "${GPU_SH_PART:-}" ] || echo "results in $out, scratch in $scratch"

wanted() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

# part NAME SECONDS COMMAND...: its output goes to a log; how it ended, to parts.csv.
part() {
    name=$1 limit=$2
    shift 2
    since=$(date +%s)
    timeout -k 5 "$limit" "$@" > "$out/logs/$name.log" 2>&1
    rc=$?
    took=$(($(date +%s) - since))
    echo "$name,$rc,$took" >> "$out/parts.csv"
    echo "[$(($(date +%s) - begun)) s] $name: $([ $rc = 0 ] && echo ok || echo "exit $rc") in $took s"
    [ $rc = 0 ] || tail -n 5 "$out/logs/$name.log" | sed 's/^/    /'
    return $rc
}

gpu() {
    only=$1 limit=$2
    part "$only" "$limit" "$python" "$here/gpu.py" "$only" --fedkt "$fedkt" --out "$out" --scratch "$scratch" \
        --device "$device" ${CODECS:+--codecs "$CODECS"} ${QUICK:+--quick}
}

# The binaries of label gpu, which tests/CMakeLists.txt names t_*_card.
gpu_tests() { find "$build" -type f -perm -u+x -name 't_*_card' | sort; }

# Each test binary under its own limit: name,exit,seconds in tests.csv. 77: skipped.
tests() {
    : > "$out/tests.csv"
    bad=0
    for t in $(gpu_tests); do
        since=$(date +%s)
        timeout -k 5 60 "$t" > "$out/logs/$(basename "$t").log" 2>&1
        rc=$?
        echo "$(basename "$t"),$rc,$(($(date +%s) - since))" >> "$out/tests.csv"
        [ $rc = 0 ] || [ $rc = 77 ] && continue
        bad=1
        echo "$(basename "$t"): exit $rc"
        grep -E 'FAILED|ERROR|error' "$out/logs/$(basename "$t").log" | head -n 5
    done
    script=$here/../tests/e2e/test_device.py
    if [ -f "$script" ] && "$python" -c 'import numpy, PIL' 2> /dev/null; then
        since=$(date +%s)
        timeout -k 5 200 "$python" -B "$script" "$fedkt" > "$out/logs/e2e_device_card.log" 2>&1
        rc=$?
        echo "e2e_device_card,$rc,$(($(date +%s) - since))" >> "$out/tests.csv"
        [ $rc = 0 ] || { bad=1; echo "e2e_device_card: exit $rc"; tail -n 5 "$out/logs/e2e_device_card.log"; }
    else
        echo "e2e_device_card is left out: it needs tests/e2e, numpy and Pillow"
    fi
    [ -s "$out/tests.csv" ] || { echo "no test of label gpu (t_*_card) below $build"; bad=1; }
    return $bad
}

# compute-sanitizer on the same binaries, some at once, each under its own limit: tool,name,exit,errors. Exit 99: it
# found something. Kernels of cuDNN and cuBLAS are checked like our own; a log names the kernel.
sanitizer() {
    : > "$out/sanitizer.csv"
    for check in memcheck racecheck; do
        gpu_tests | sed "s/^/$check /"
    done | GPU_SH_PART=sanitize xargs -L 1 -P "${JOBS:-6}" sh "$here/gpu.sh" "$build" "$out"
    sort -o "$out/sanitizer.csv" "$out/sanitizer.csv"
    [ -s "$out/sanitizer.csv" ] && ! grep -v ',0,0$' "$out/sanitizer.csv"
}

sanitize() {
    tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    log=$out/logs/$1-$(basename "$2").log
    timeout -k 5 "${SANITIZER_SECONDS:-150}" "$tool" --tool "$1" --error-exitcode 99 "$2" > "$log" 2>&1
    rc=$?
    found=$(sed -n 's/.*SUMMARY: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    echo "$1,$(basename "$2"),$rc,${found:-?}" >> "$out/sanitizer.csv"
}

repeat() {
    weights=$scratch/taesd_encoder.safetensors
    [ -z "${CODECS:-}" ] || weights=$CODECS/taesd_encoder.safetensors
    "$python" "$here/gpu_repeat.py" --fedkt "$fedkt" --weights "$weights" --out "$out/repeat.json" --device "$device" \
        ${QUICK:+--images 60}
}

cpu() {
    data=
    [ -z "${CODECS:-}" ] || data="--data $(dirname "$CODECS")"
    pinned="taskset -c ${CORES:-0,1} $python"
    usual="--quick --fedkt $fedkt --threads 2"
    $pinned "$here/codec.py" $usual --scratch "$scratch" $data --json "$out/cpu_codec.json"
    $pinned "$here/train.py" $usual --json "$out/cpu_train.json"
}

# Functions of this file, run by `part`.
case ${GPU_SH_PART:-} in
    tests | sanitizer | repeat | cpu)
        "$GPU_SH_PART"
        exit
        ;;
    sanitize)
        sanitize "$3" "$4"
        exit 0
        ;;
esac
own() {
    GPU_SH_PART=$1 SCRATCH=$scratch part "$1" "$2" sh "$here/gpu.sh" "$build" "$out"
}
: > "$out/parts.csv"

wanted versions && gpu versions 90
wanted weights && gpu weights 120
if wanted warm; then
    gpu warm 200 &
    warming=$!
fi
if wanted tests; then own tests 240 || failed=1; fi
if wanted sanitizer; then own sanitizer 300 || failed=1; fi
[ -z "${warming:-}" ] || wait "$warming"
wanted peak && gpu peak 60
wanted cost && gpu cost 360
wanted train && gpu train 360
wanted pair && gpu pair 150
wanted repeat && { own repeat 120 || failed=1; }
wanted any && gpu any 120
wanted cpu && own cpu 300
"$python" "$here/gpu_report.py" "$out" > "$out/table.txt" 2>&1 || failed=1
cat "$out/table.txt"
echo "all of it took $(($(date +%s) - begun)) s"
exit $failed
