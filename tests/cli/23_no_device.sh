# A device that was asked for by name and is not there: exit status 3 and the reason in one line, before anything is generated or
# measured; and what the node lacks is told by name.
. "$CLI/lib.sh"
write_config
unset MLBENCH_CUDA_PLUGIN
"$MLBENCH" list backends --json >out 2>err || fail "list"
reason=$(json '[b["unavailable"] for b in d["backends"] if b["name"] == "cuda"][0]')
[ "$reason" != None ] || skip "this node has a CUDA device"
case $reason in
*"this build has no CUDA plug-in"* | *"no NVIDIA driver"* | *"driver is too old"* | *"no device"*) ;;
*) fail "no exact reason: $reason" ;;
esac

for command in run check sweep diagnose; do
	expect 3 "$MLBENCH" $command tiny.ini $ONE --set step.backend=cuda
	says "step.backend = cuda: cannot be used here: $reason"
	[ "$(grep -c . err)" -eq 1 ] || fail "$command says it in more than one line"
	[ ! -e data ] || fail "$command generated a data set that nothing can be measured with"
done
# The data set alone needs no device.
expect 0 "$MLBENCH" gen tiny.ini $ONE --set step.backend=cuda

# auto goes on without, and says so.
expect_measured "$MLBENCH" run tiny.ini $ONE --set step.backend=auto --set step.model=resnet50 --set step.device=h100 --json --out auto
grep -qF "no real device" auto/points.jsonl || fail "the record does not say that the device is emulated"
expect 0 "$MLBENCH" doctor
prints "backend cuda"

# A plug-in that is named is taken at its word: each fault by its name.
export MLBENCH_CUDA_PLUGIN=$PWD/none.so
expect 3 "$MLBENCH" run tiny.ini $ONE --set step.backend=cuda
says "none.so: cannot open shared object file"
echo "no instructions" >none.so
expect 3 "$MLBENCH" run tiny.ini $ONE --set step.backend=cuda
says "none.so: file too short"
