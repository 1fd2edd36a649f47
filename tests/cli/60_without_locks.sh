# A file system without locks (Lustre without flock, NFS without lockd): everything runs, with a warning; only a lock that
# somebody holds is "another run".
. "$CLI/lib.sh"
[ -x "$TOOLS/failing_call" ] || skip "the seccomp helper could not be built"
"$TOOLS/failing_call" flock ENOLCK true || skip "seccomp filters cannot be set here"
write_config
for errno in ENOSYS ENOTSUP ENOLCK EIO; do
	rm -rf data
	expect 0 "$TOOLS/failing_call" flock $errno "$MLBENCH" gen tiny.ini
	says "'data' cannot be locked ("
	expect_measured "$TOOLS/failing_call" flock $errno "$MLBENCH" run tiny.ini $ONE --out "run-$errno"
	says "'run-$errno' cannot be locked ("
done
expect_measured "$TOOLS/failing_call" flock ENOLCK "$MLBENCH" run --resume run-ENOLCK
says "'run-ENOLCK' cannot be locked ("
expect 2 "$TOOLS/failing_call" flock EWOULDBLOCK "$MLBENCH" run tiny.ini $ONE --out held
says "'held' already holds a run"
expect 3 "$TOOLS/failing_call" flock EWOULDBLOCK "$MLBENCH" run --resume run-EIO
says "another run is writing to 'run-EIO'"
expect 3 "$TOOLS/failing_call" flock EWOULDBLOCK "$MLBENCH" gen tiny.ini
says "another mlbench is generating in 'data'"
expect 0 "$MLBENCH" history .
prints "5 of 5 results"
