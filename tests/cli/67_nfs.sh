# NFS without a mount, from a server that does what we want: what it refuses, garbles or forgets comes out in words, within
# read.timeout; what it repeats, splits or puts off changes no sample.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
sed -i -e 's/^recipe = .*/recipe = none/' -e 's/^samples = .*/samples = 0/' -e '/^\[sweep\]/,$d' tiny.ini
printf '[run]\nverify = on\n[read]\ntimeout = 20s\n' >>tiny.ini
one=(--set batch.size=8 --set measure.repeats=1)
server=
end_server() {
	[ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
	server=
}
trap end_server EXIT
# serve [FAULT]...: a server with these faults; $url is its address.
serve() {
	local faults=() fault
	end_server
	for fault; do faults+=(--fault "$fault"); done
	rm -f ready
	python3 "$ROOT/tests/nfs/fake_server.py" . "${faults[@]}" --ready ready &
	server=$!
	until_true test -s ready
	url=nfs://127.0.0.1:$(cat ready)/export/data
}

checksum() {
	grep -o '"epoch_checksum":"[0-9a-f]*"' "$1/points.jsonl" | head -n 1
}
expect_measured "$MLBENCH" run tiny.ini "${one[@]}" --set read.engine=pread --set measure.epochs=2 --out files
[ -n "$(checksum files)" ] || fail "no checksum"
# reads_all ARGUMENT ...: the samples are those of the files themselves.
reads_all() {
	rm -rf got
	expect_measured "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set measure.epochs=2 --out got "$@"
	[ "$(checksum got)" = "$(checksum files)" ] || fail "other samples than from the files: $*"
}

serve
reads_all
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
reads "engine nfs"
reads_all --set read.engine=pread
reads_all --set read.connections=3 --set read.threads=2 --set read.depth=32
reads_all --set read.engine=memory
reads_all --set read.cache=cold
grep -q "the server's cache is not ours to empty" got/points.jsonl || fail "nothing is said of the cache"
expect 3 "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set read.engine=io_uring
says "it reads only files of this node"
expect 3 "$MLBENCH" run tiny.ini "${one[@]}" --set read.engine=nfs
says "it reads from an NFS server"
# Evaluations read from another place than training, either way.
evaluated() {
	rm -rf got
	expect_measured "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$1" --set "evaluate.path=$2" \
		--set evaluate.every=5 --set measure.epochs=3 --out got
	python3 -c 'import json
print([d["evaluation"][0]["checksum"] for d in map(json.loads, open("got/points.jsonl")) if d.get("kind") == "repetition"][0])'
}
near=$(evaluated data data)
grep -qE '^[0-9a-f]{16}$' <<<"$near" || fail "no checksum of an evaluation: $near"
[ "$(evaluated data "$url")" = "$near" ] || fail "evaluations over NFS have other samples"
[ "$(evaluated "$url" data)" = "$near" ] || fail "evaluations beside training over NFS have other samples"
# What the client counted: a call for each sample, and nothing repeated.
network() {
	sed -n 's/.*"network":\({[^]]*\]}\).*/\1/p' got/points.jsonl >out
	[ "$(json "$1")" = True ] || { cat out; fail "not so: $1"; }
}
reads_all --set read.connections=2
network 'd["protocol"] == "NFSv4.0" and d["client"] == "nfs engine" and d["connections"] == 2 and d["request_bytes"] == 65536'
network '[c["name"] for c in d["calls"]] == ["READ"] and d["calls"][0]["calls"] > 8 and d["calls"][0]["retransmits"] == 0'
network '0 < d["calls"][0]["round_trip_ns"] <= d["calls"][0]["execute_ns"] and d["calls"][0]["bytes_received"] > 900 * d["calls"][0]["calls"]'
network '0 <= d["receiving_share"] <= 1'
expect 2 "$MLBENCH" gen tiny.ini --set "dataset.path=$url" --set dataset.recipe=photo --set dataset.samples=96
says "is only read"
expect 2 "$MLBENCH" check tiny.ini --set "dataset.path=${url%data}nothing"
says "No such file or directory"
expect 2 "$MLBENCH" probe --path "$url"
says "only folders of this node are probed"
"$MLBENCH" doctor "$url" >out 2>err
reads "a server is read without a mount"

# What a server may do, and what only a tired one does.
for fault in stale delay short fragments empty-last close=13; do
	serve "$fault"
	reads_all
done
network 'd["calls"][0]["retransmits"] > 0' # of the last

# Files of several READs, which are on the way together: what comes late, short, stale, twice or in another order changes no
# sample, and where a file has become shorter what was asked for behind its end is of no use.
big=(--set dataset.path=big)
expect 0 "$MLBENCH" gen tiny.ini "${big[@]}" --set dataset.recipe=photo --set dataset.samples=12 --set dataset.width=400 \
	--set dataset.height=300 --set dataset.size_sigma=0
expect_measured "$MLBENCH" run tiny.ini "${one[@]}" "${big[@]}" --set read.engine=pread --set measure.epochs=2 --out big_files
reads_big() {
	rm -rf got
	expect_measured "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=${url%data}big" --set measure.epochs=2 --out got "$@"
	[ "$(checksum got)" = "$(checksum big_files)" ] || fail "other samples than from the large files: $*"
}
for fault in "" delay short fragments close=13 v3 "v3 short"; do
	# shellcheck disable=SC2086
	serve $fault
	reads_big --set read.depth=1
	reads_big --set read.depth=5 --set read.connections=3
done
# Handles that go stale once the files are known.
for version in "" v3; do
	# shellcheck disable=SC2086
	serve $version
	reads_big
	rm ready
	end_server
	port=${url#nfs://127.0.0.1:}
	python3 "$ROOT/tests/nfs/fake_server.py" . --port "${port%%/*}" ${version:+--fault $version} --fault stale --fault short --ready ready &
	server=$!
	until_true test -s ready
	reads_big --set read.depth=3
done
serve shrunk
expect 1 "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=${url%data}big" --set measure.epochs=2
says "99985 of 360000 bytes"

# A server of NFSv3 alone, which looks up one part of a path at a time.
serve v3
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
reads_all --set read.depth=32
network 'd["protocol"] == "NFSv3" and {"READ", "LOOKUP"} <= {c["name"] for c in d["calls"]}'
reads_all --set read.engine=pread
expect 2 "$MLBENCH" check tiny.ini --set "dataset.path=${url%data}nothing"
says "No such file or directory"
serve v3 bare delay close=17
export XDG_CACHE_HOME="$PWD/cache.bare"
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
reads_all
# One without READDIRPLUS: its names come alone, and what they are is looked up.
serve v3 noplus
export XDG_CACHE_HOME="$PWD/cache.noplus"
reads_all

# A server that goes away and comes back within its time.
serve
port=${url#nfs://127.0.0.1:}
port=${port%%/*}
rm -rf got
"$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set measure.duration=6s --set read.timeout=1h --out got >out 2>err &
pid=$!
reads() { "$MLBENCH" status "$pid" --json 2>/dev/null | grep -q '"measuring"'; }
until_true reads
end_server
sleep 1
python3 "$ROOT/tests/nfs/fake_server.py" . --port "$port" --ready ready &
server=$!
wait "$pid"
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "exit $status of a run whose server came back"
[ "$(checksum got)" = "$(checksum files)" ] || fail "other samples after a server came back"
! grep -q "Connection" got/points.jsonl || fail "a sample was lost while the server was away"

# What may not be read is a bad sample, or none at all.
for fault in stale-ever long huge cut garbage; do
	serve "$fault"
	export XDG_CACHE_HOME="$PWD/cache.$fault"
	expect 2 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
	says "can be used"
	case $fault in stale-ever) says "Stale file handle" ;; *) says "Bad message" ;; esac
done
file=$(find data -name '*.ppm' | sort | head -n 1)
mv "$file" "${file%.ppm}secret.ppm"
serve secret
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
reads "1 file left out"
reads "Permission denied"
serve names
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
says "a?..?..?etc?passwd.ppm: the server gives it a name with a '/' in it"
serve loop
expect 3 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
says "cannot read the folder"
serve version
expect 3 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
says "speaks neither NFSv4.0 nor NFSv3"

# Nobody there, at once; one that falls silent, when its time is over: while the files are looked at, and while they are read.
end_server
expect 3 "$MLBENCH" check tiny.ini --set "dataset.path=$url" --set read.timeout=1h
says "Connection refused"
serve mute=50
expect 3 "$MLBENCH" check tiny.ini --set "dataset.path=$url" --set read.timeout=1s
says "has not answered for 1.00 s (read.timeout)"
export XDG_CACHE_HOME="$PWD/cache.mute"
serve
expect 0 "$MLBENCH" check tiny.ini --set "dataset.path=$url"
calls=1500
serve "mute=$calls"
expect 3 "$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set read.timeout=1s --set measure.duration=1h --out mute
says "has not answered for 1.00 s (read.timeout)"

# Neither the end of a run nor Ctrl-C waits for it.
serve "mute=$calls"
"$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set read.timeout=1h --set measure.duration=1s --out ends >out 2>err
[ $? -le 3 ] || fail "the end of a run while a server is silent"
! grep -q "hangs in the kernel" err || fail "a reader waited for a silent server"
serve "mute=$calls"
"$MLBENCH" run tiny.ini "${one[@]}" --set "dataset.path=$url" --set read.timeout=1h --set measure.duration=1h --out stopped >out 2>err &
pid=$!
until_true test -e stopped/points.jsonl
sleep 1
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "Ctrl-C while a server is silent"
for answered in 1 60; do # none of the folder, or some of its files
	export XDG_CACHE_HOME="$PWD/cache.silent$answered"
	serve "mute=$answered"
	"$MLBENCH" check tiny.ini --set "dataset.path=$url" --set read.timeout=1h >out 2>err &
	pid=$!
	until_true heeds_interrupts "$pid"
	sleep 1
	kill -INT "$pid"
	until_true sh -c "! kill -0 $pid 2>/dev/null"
	wait "$pid"
	[ $? -eq 130 ] || fail "Ctrl-C while a silent server's files are looked at, after $answered answers"
done
# However many threads wait for it, a server is complained of once.
serve mute=60
expect 3 "$MLBENCH" check tiny.ini --set "dataset.path=$url" --set read.timeout=10s # a stall at its fifth second must not hide the warning
[ "$(grep -c 'has not answered for 5 s' err)" -eq 1 ] || fail "a silent server is warned of by each thread"

# Addresses.
while read -r address words; do
	expect 2 "$MLBENCH" check tiny.ini --set "dataset.path=$address"
	says "$words"
done <<'LIST'
nfs:///export names no server
nfs://host:port/export the port behind the ':'
nfs://host:70000/export the port behind the ':'
nfs://[::1/export ']' is missing
LIST
