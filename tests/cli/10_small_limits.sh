# More workers than cores, a tiny memlock limit, few open files: it runs, and says what it did not get.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
many=$(($(nproc) * 4))
expect_measured "$MLBENCH" run tiny.ini --set decode.workers=$many --set batch.size=8 --json --out many
[ "$(json '[s["workers"] for s in d["points"][0]["stages"] if s["name"] == "decode"][0]')" = "$many" ] || fail "workers"
expect 0 bash -c 'ulimit -l 16 && exec "$0" doctor' "$MLBENCH"
(ulimit -l 16 && "$MLBENCH" run tiny.ini $ONE --set measure.epochs=4 --json --out locked >out 2>err)
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status with a tiny memlock limit"
is_json mlbench.summary/1
[ "$(json 'd["points"][0]["throughput"]["median"] is not None')" = True ] || fail "nothing was measured"
(ulimit -n 40 && "$MLBENCH" run tiny.ini $ONE --set read.depth=8 --json --out files >out 2>err)
status=$?
[ "$status" -ne 139 ] && [ "$status" -ne 134 ] || fail "it crashed with few open files"
python3 -c 'import json; json.load(open("out"))' || fail "no valid document with few open files"
# Few open files: the soft limit is raised to the hard one; where that is not enough, the point fails and names both numbers.
wide="--set read.engine=pread --set read.threads=64"
(ulimit -Sn 40 && exec "$MLBENCH" run tiny.ini $ONE $wide --json --out raised) >out 2>err
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status with a small soft limit of open files"
expect 3 bash -c 'ulimit -n 40 && exec "$0" run tiny.ini "$@"' "$MLBENCH" $ONE $wide --out few
says "read.threads = 64 keeps 64 files open at once and needs"
says "descriptors, but the limit is 40: raise ulimit -n"
# A limit on the size of files: words and not a signal; what was measured before is kept, printed and readable.
expect 3 bash -c 'ulimit -f 24 && exec "$0" sweep tiny.ini --set measure.repeats=30 --out large' "$MLBENCH"
says "File too large (the limit is 24576 bytes: ulimit -f)"
prints "samples/s"
expect_measured "$MLBENCH" show large
expect 3 bash -c 'ulimit -f 1 && exec "$0" gen tiny.ini --set dataset.path=none' "$MLBENCH"
says "File too large (the limit is 1024 bytes: ulimit -f)"
# Little address space: OpenBLAS, which asks for ever for memory that it does not get, is not even opened where nothing needs
# it, and where a step does, the reason is said.
small() { (ulimit -v 250000 && timeout 600 "$MLBENCH" "$@" >out 2>err); }
small --version || fail "--version exits $? with 250 MB of address space"
small help || fail "help exits $? with 250 MB of address space"
small check tiny.ini || fail "check exits $? with 250 MB of address space: $(tail -n 1 err)"
small list backends || fail "list exits $? with 250 MB of address space"
grep -q 'openblas *not here: OpenBLAS needs about .* address space' out || fail "list does not say what OpenBLAS lacks"
small check tiny.ini --set step.backend=openblas --set step.model=mlp
status=$?
[ "$status" -eq 3 ] || fail "a step on OpenBLAS without room for it exits $status"
grep -q "step.backend = openblas: cannot be used here: OpenBLAS needs about" err || fail "it does not say why: $(tail -n 1 err)"
if ldd "$MLBENCH" | grep -i openblas; then fail "the program is linked with OpenBLAS"; fi
