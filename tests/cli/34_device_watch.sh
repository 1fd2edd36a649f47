# The driver's view of a device over a run, from end to end: the plug-in on the CPU, and a driver that follows a script.
. "$CLI/lib.sh"
build=$(dirname "$MLBENCH")
plugin="$build/double/libmlbench-cuda.so"
nvml="$build/nvml/new"
[ -e "$plugin" ] || skip "no test double of the CUDA libraries (make double)"
[ -e "$nvml/libnvidia-ml.so.1" ] || skip "no scripted NVML (make unit-tests)"
export MLBENCH_CUDA_PLUGIN="$plugin"
# A sanitizer has the program load its own first.
export LD_LIBRARY_PATH="$nvml${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
write_config
run() { # SCRIPT OPTION ...
	local script=$1
	shift
	rm -rf out.d
	MLBENCH_FAKE_NVML="$script" "$MLBENCH" run tiny.ini $ONE --verbose --set step.backend=cuda --set step.model=mlp --set batch.size=8 \
		--set measure.duration=800ms --set measure.warmup=100ms --set measure.window=50ms --set measure.repeats=1 \
		--out out.d "$@" >out 2>err
	status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] || fail "exit $status"
}
device() { # EXPRESSION: python over the first device d of the repetition r
	python3 -c 'import json, sys
r = [json.loads(l) for l in open("out.d/points.jsonl")][1]
d = r["devices"][0]
print(eval(sys.argv[1]))' "$1"
}
holds() {
	[ "$(device "$1")" = True ] || fail "not so: $1 ($(device d))"
}
run "span=1000 clock=1980:1400 power=300000:600000 corrected=0:50 throttle=0x4"
holds '"test double" in d["name"] and d["bus"].startswith("0000:")'
holds 'd["samples"] >= 1'
holds '1400 <= d["sm_clock_mhz"][0] <= d["sm_clock_mhz"][1] <= d["sm_clock_mhz"][2] <= 1980'
holds 'd["sm_clock_max_mhz"] == 1980'
holds '300 <= d["power_w"][0] <= d["power_w"][2] <= 600'
holds 'd["ecc_corrected"] >= 0 and d["ecc_uncorrected"] == 0'
holds 'd["peak_flops"] is None and d["model_utilisation"] is None'
column='[w[r["window_columns"].index("device_clock_mhz")] for w in r["windows"]]'
holds "[c for c in $column if c][0] >= [c for c in $column if c][-1]"
if measuring; then
	holds 'd["samples"] >= 3 and d["sm_clock_mhz"][0] < d["sm_clock_mhz"][1] < d["sm_clock_mhz"][2] < 1980'
	holds '300 < d["power_w"][0] < d["power_w"][2] and d["ecc_corrected"] > 0'
	holds 'd["throttles"][0][0] == "power cap" and 0 < d["throttles"][0][1] < 1'
	holds "len([c for c in $column if c]) >= 3"
	holds "[c for c in $column if c][0] > [c for c in $column if c][-1]"
fi
prints 'device 0'
prints 'test double'
prints 'peak unknown'
run "always=1 throttle=0x4"
prints 'throttled: power cap'
# What is missing has a reason, and no run waits for a driver that hangs.
run "deny=power:3 deny=temperature:4"
holds 'd["power_w"] is None and d["temperature_c"] is None and d["sm_clock_mhz"][1] == 1980'
holds 'any("power unknown: not supported by this device" in n for n in r["notes"])'
run "init=9"
holds 'd["sm_clock_mhz"] is None and d["samples"] == 0'
holds 'any("the NVIDIA driver is not loaded" in n for n in r["notes"])'
begun=$SECONDS
run "late=power:300 hang=power:600000"
[ $((SECONDS - begun)) -lt 600 ] || fail "a call that hangs held up the run"
holds 'any("a call did not come back" in n for n in r["notes"])'
run "" --set measure.device=off
holds 'd["sm_clock_mhz"] is None'
holds 'any("measure.device is off" in n for n in r["notes"])'
run "" --set measure.profiler=off
holds 'd["sm_clock_mhz"] is None'
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#"$nvml"} run ""
holds 'd["sm_clock_mhz"] is None'
holds 'any("libnvidia-ml.so.1" in n for n in r["notes"])'
# The doctor and the environment see the same driver.
MLBENCH_FAKE_NVML="width=8 uncorrected=1 span=100000" expect 0 "$MLBENCH" doctor
prints '8 of 16 PCIe lanes'
prints '1 uncorrected errors'
expect 0 "$MLBENCH" list devices
prints 'cuda 0'
prints 'TEST DOUBLE'
prints 'published peak unknown'
