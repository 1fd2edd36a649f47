# The inventory of mlbench accept on a node that is made of files: each planted difference is found and named at its place, with
# the class of action and the remedy; what the node hides is ERROR, or SKIP where the plan allows it; and nothing else fails.
. "$CLI/lib.sh"

root=$PWD/root
# put PATH TEXT: a file below the root.
put() {
	mkdir -p "$root$(dirname "$1")"
	printf '%s\n' "$2" >"$root$1"
}
cpus=/sys/devices/system/cpu
for cpu in 0 1 2 3; do
	put $cpus/cpu$cpu/topology/physical_package_id 0
	put $cpus/cpu$cpu/topology/thread_siblings_list $cpu
	put $cpus/cpu$cpu/cpufreq/scaling_governor performance
	put $cpus/cpu$cpu/microcode/version 0xa101148
	[ $cpu = 0 ] || put $cpus/cpu$cpu/online 1
done
put $cpus/vulnerabilities/spectre_v2 'Mitigation: Retpolines'
for node in 0 1; do
	put /sys/devices/system/node/node$node/meminfo "Node $node MemTotal: 67108864 kB"
	put /sys/devices/system/node/node$node/distance '10 21'
done
put /proc/meminfo 'MemTotal: 134217728 kB'
put /proc/cpuinfo "$(printf 'model name\t: Test CPU 9000\nflags\t\t: avx2')"
put /proc/self/mountinfo '22 1 259:1 / / rw,noatime - xfs /dev/nvme0n1p1 rw'
put /sys/devices/system/clocksource/clocksource0/current_clocksource tsc
put /sys/block/nvme0n1/device/model 'Fast Disk'
put /sys/block/nvme0n1/device/firmware_rev F7
put /sys/devices/system/edac/mc/mc0/ce_count 0
put /sys/devices/system/edac/mc/mc0/ue_count 0
put /sys/devices/system/edac/mc/mc0/dimm3/dimm_label DIMM_B2
put /sys/devices/system/edac/mc/mc0/dimm3/dimm_ce_count 0
put /sys/bus/pci/devices/0000:41:00.0/class 0x010802
put /sys/bus/pci/devices/0000:41:00.0/current_link_width 4
put /sys/bus/pci/devices/0000:41:00.0/max_link_width 4
cp -r root good

cat >plan.ini <<'INI'
[plan]
name = bought
[inventory]
kind = expect
tier = quick
cpu.model = is Test CPU 9*
cpu.cores = >= 4
cpu.offline = = 0
memory.total = >= 120 GiB
memory.numa = >= 60 GiB
numa.nodes = = 2
numa.distance = <= 21
disk.model = is Fast*
disk.firmware = is one of F7, F8
pcie.lost_width = = 0
[settings]
kind = expect
tier = quick
cpu.governor = is performance
cpu.microcode = equal
cpu.mitigation = is not Vulnerable*
clock.source = is one of tsc, kvm-clock
mount.options = has noatime
[errors]
kind = expect
tier = quick
if_missing = skip
errors.corrected = <= 10
errors.uncorrected = = 0
INI
export MLBENCH_ACCEPT_ROOT=$root

# judged STATUS: of the plan on the node as it is now, as JSON in ./out.
number=0
judged() {
	number=$((number + 1))
	expect "$1" "$MLBENCH" accept plan.ini --tier quick --json --out "result$number"
	is_json mlbench.accept/1
}
# Findings of a verdict, as "figure @ place".
findings() {
	json "sorted(f['figure'] + ' @ ' + f['place'] for c in d['checks'] for f in c['findings'] if f['verdict'] == '$1')"
}

judged 0
[ "$(findings FAIL)" = "[]" ] && [ "$(findings ERROR)" = "[]" ] || fail "the good node does not pass"
[ "$(json 'd["verdict"]')" = PASS ] || fail "the good node is $(json 'd["verdict"]')"

# plant WHAT FIGURE@PLACE ACTION: that one finding, and no other, fails.
plant() {
	judged 1
	[ "$(findings FAIL)" = "['$2']" ] || fail "$1: found $(findings FAIL)"
	[ "$(json 'd["action"]')" = "$3" ] || fail "$1: the action is $(json 'd["action"]')"
	[ "$(json 'all(f["remedy"] for c in d["checks"] for f in c["findings"] if f["verdict"] == "FAIL")')" = True ] ||
		fail "$1: what to do is not said"
	rm -rf root && cp -r good root
}
put $cpus/cpu2/cpufreq/scaling_governor powersave
plant "one core of another governor" "cpu.governor @ CPUs 2" configure
put $cpus/cpu3/online 0
judged 1
[ "$(findings FAIL)" = "['cpu.cores @ ', 'cpu.offline @ ']" ] || fail "an offline core: $(findings FAIL)"
rm -rf root && cp -r good root
put /sys/devices/system/node/node1/meminfo 'Node 1 MemTotal: 33554432 kB'
plant "a socket that lacks a module" "memory.numa @ NUMA node 1" "return to vendor"
put /sys/devices/system/node/node0/distance '10 32'
plant "sub-NUMA clustering" "numa.distance @ NUMA node 0" configure
put $cpus/vulnerabilities/mds 'Vulnerable'
plant "no mitigation" "cpu.mitigation @ mds" configure
put /proc/self/mountinfo '22 1 259:1 / / rw,relatime - xfs /dev/nvme0n1p1 rw'
plant "a mount option" "mount.options @ " configure
put /sys/block/nvme0n1/device/firmware_rev F6
plant "an old firmware" "disk.firmware @ nvme0n1" configure
put /sys/bus/pci/devices/0000:41:00.0/current_link_width 2
plant "a narrow link" "pcie.lost_width @ PCI 0000:41:00.0" "return to vendor"
put /sys/devices/system/edac/mc/mc0/dimm3/dimm_ce_count 57
put /sys/devices/system/edac/mc/mc0/ce_count 57
plant "a module with corrected errors" "errors.corrected @ memory (EDAC): DIMM_B2 (mc0)" isolate
put /sys/devices/system/edac/mc/mc0/dimm3/dimm_ue_count 1
put /sys/devices/system/edac/mc/mc0/ue_count 1
plant "a module with an uncorrected error" "errors.uncorrected @ memory (EDAC): DIMM_B2 (mc0)" "return to vendor"
put /dev/kmsg '3,7,100,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.'
judged 1
json "[f['sentence'] for c in d['checks'] for f in c['findings']]" | grep -qF "GPU has fallen off the bus" || fail "the line itself is not told"
plant "a line of the kernel's log" "errors.uncorrected @ kernel log: PCI 0000:3b:00" "return to vendor"

# What is hidden is no PASS: ERROR with the reason, unless the plan lets it be.
rm -r root/sys/devices/system/cpu/vulnerabilities
judged 3
[ "$(findings ERROR)" = "['cpu.mitigation @ ']" ] || fail "hidden mitigations: $(findings ERROR)"
grep -qF "vulnerabilities' is not there" out || fail "the reason is not said"
sed -i '/^\[settings\]/a if_missing = skip' plan.ini
judged 0
[ "$(json "'cpu.mitigation @ ' in [f['figure'] + ' @ ' + f['place'] for c in d['checks'] for f in c['findings'] if f['verdict'] == 'SKIP']")" = True ] ||
	fail "what may be missing is not skipped"

# Somebody else's load, on the node itself: it is seen, and where the process can be seen, it is named.
unset MLBENCH_ACCEPT_ROOT
printf '[plan]\nname = idle\n[idle]\nkind = expect\ntier = quick\nnode.busy = <= 0.05\n' >plan.ini
(exec -a hog bash -c 'while :; do :; done') &
hog=$!
trap 'kill $hog 2>/dev/null' EXIT
judged 3
[ "$(findings ERROR)" = "['node.busy @ ']" ] || fail "a busy node is judged: $(findings FAIL)"
json "[f['sentence'] for c in d['checks'] for f in c['findings']]" | grep -qF "the busiest, in shares of a core" || fail "nobody is named"
expect 3 "$MLBENCH" accept plan.ini --tier quick --format terminal
reads "not judged, the node is busy: stop other work and test it again"
! grep -qE "not fit|use it" out || fail "a busy node is not fit, or to be used"
exit 0
