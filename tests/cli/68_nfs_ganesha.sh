# A real server: the same folder read by pread and io_uring from the file system, and by nfs and pread through the server, makes
# the same batches, whole files and files of many requests alike.
. "$CLI/lib.sh"
write_config
sed -i -e '/^\[sweep\]/,$d' tiny.ini
printf '[run]\nverify = on\n' >>tiny.ini
mkdir exported
expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=exported/small
expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=exported/large --set dataset.width=1500 --set dataset.height=1500 --set dataset.samples=12 --set batch.size=4
sed -i -e 's/^recipe = .*/recipe = none/' -e 's/^samples = .*/samples = 0/' tiny.ini
cat >reads.sh <<'READS'
. "$CLI/lib.sh"
run() { # DATA FOLDER ARGUMENT ...
	local data=$1 folder=$2
	shift 2
	expect_measured "$MLBENCH" run tiny.ini --set batch.size=4 --set measure.repeats=1 --set measure.epochs=1 --set "dataset.path=$data" \
		--out "$folder" "$@"
	grep -o '"epoch_checksum":"[0-9a-f]*"' "$folder/points.jsonl" >"$folder.sum" || fail "no checksum: $folder"
}
for set in small large; do
	run "exported/$set" "$set.pread" --set read.engine=pread
	run "exported/$set" "$set.io_uring" --set read.engine=auto
	run "$NFS_URL/$set" "$set.nfs" --set read.engine=nfs
	run "$NFS_URL/$set" "$set.many" --set read.engine=nfs --set read.connections=4 --set read.depth=64
	run "$NFS_URL/$set" "$set.store" --set read.engine=pread
	for how in io_uring nfs many store; do
		cmp -s "$set.pread.sum" "$set.$how.sum" || fail "other batches: $set, $how"
	done
done
READS
port=$((21000 + $$ % 9000))
"$ROOT/tests/nfs/with_server.sh" --folder exported --port $port bash -u reads.sh >log 2>&1
status=$?
[ $status -ne 77 ] || skip "$(tail -n 1 log)"
[ $status -eq 0 ] || { cat log; fail "exit $status"; }

# The same of NFSv3, where the machine allows a server of it.
rm -rf small.* large.*
"$ROOT/tests/nfs/with_server.sh" --folder exported --port $port --v3 bash -u reads.sh >log 2>&1
status=$?
case $status in
0) grep -q '"protocol":"NFSv3"' small.nfs/points.jsonl || fail "another version than 3" ;;
77) tail -n 1 log ;;
*) cat log && fail "exit $status with NFSv3" ;;
esac
