# run.numa: where the buffers lie is in the notes, and a kernel that will not place them fails no run.
# A machine of two nodes is told to hwloc, since few machines that test have them: what the kernel then
# does is this machine's own.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
note() {
	json '[n for n in d["points"][0]["notes"] if "NUMA" in n]'
}
notes() {
	note | grep -qF -- "$1" || fail "no note '$1': $(note)"
}
numa() {
	expect_measured "$@" run tiny.ini $ONE --json --out "run-$((++runs))" "${keys[@]}"
}
runs=0
two_nodes=(env HWLOC_SYNTHETIC="node:2 core:1 pu:1" HWLOC_THISSYSTEM=1)
keys=(--set run.numa=none) && numa "$MLBENCH"
[ "$(note)" = "[]" ] || fail "none says: $(note)"
keys=(--set run.numa=interleave) && numa env HWLOC_SYNTHETIC="node:1 core:64 pu:1" HWLOC_THISSYSTEM=1 "$MLBENCH"
notes "NUMA: one node, nothing to interleave"
keys=(--set run.numa=near) && expect 2 "$MLBENCH" run tiny.ini $ONE "${keys[@]}"
says "run.numa"
# Pages are asked for, and looked at.
keys=(--set run.numa=interleave --set run.affinity=spread --set upload.mode=copy)
numa "${two_nodes[@]}" "$MLBENCH"
notes "NUMA: read buffers "
notes ", batches "
notes ", staging "
# Refused, as in a container.
[ -x "$TOOLS/failing_call" ] || skip "the seccomp helper could not be built"
"$TOOLS/failing_call" mbind EPERM true || skip "seccomp filters cannot be set here"
keys=(--set run.numa=interleave)
numa "${two_nodes[@]}" "$TOOLS/failing_call" mbind EPERM "$MLBENCH"
notes "where the kernel put them (mbind: Operation not permitted)"
numa "${two_nodes[@]}" "$TOOLS/failing_call" move_pages EPERM "$MLBENCH"
if note | grep -qv mbind; then
	notes "not checked: Operation not permitted"
fi
keys=() && numa "$TOOLS/failing_call" mbind EPERM "$MLBENCH"
