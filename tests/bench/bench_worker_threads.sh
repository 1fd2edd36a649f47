#!/usr/bin/env bash
# What threads within the decode workers cost (decode.threads): CPU time of a picture, its share in the kernel, and involuntary
# switches for each second of CPU time, of 500 x 375 photographs with a null step.
# Usage: tests/bench/bench_worker_threads.sh BUILD_FOLDER [WORKERSxTHREADS...]      some seconds for each
# No bar: CPU time hardly depends on what others run, the rate does.
set -eu
program=$(readlink -f "${1:-build/release}/mlbench")
shift || true
[ $# -gt 0 ] || set -- 2x1 8x1 8x2 4x16 8x16 8x64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '[dataset]\npath = data\nrecipe = photo\nsamples = 200\n[batch]\nsize = 16\n[step]\nbackend = null\n' >run.ini
printf '[measure]\nwarmup = 300ms\nduration = 2s\nrepeats = 1\ndepths = off\nlimits = off\n' >>run.ini
"$program" gen run.ini >/dev/null 2>&1
echo "workers x threads   pictures/s   us of CPU   in the kernel   switches/s of CPU   others, cores"
for pair in "$@"; do
	rm -rf out
	"$program" run run.ini --set "decode.workers=${pair%x*}" --set "decode.threads=${pair#*x}" --out out >/dev/null 2>&1 || true
	python3 - "$pair" <<'PY'
import json, sys
for line in open("out/points.jsonl"):
    m = json.loads(line)
    if m.get("kind") == "repetition":
        print("%17s %12.0f %11.0f %13.0f %% %19.0f %15.1f" % (sys.argv[1], m["throughput"], 1e6 * m["cpu_seconds"] / m["samples"],
              100 * m["system_seconds"] / m["cpu_seconds"], m["switches"] / m["cpu_seconds"], m["cores_busy_outside"]))
PY
done
