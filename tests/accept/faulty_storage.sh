#!/usr/bin/env bash
# Storage that corrupts one block, as a FUSE server in front of a folder: each kind of corruption is found by a check of kind
# repeatable and told apart from the others; a burn finds what its writes run into.  Needs root, /dev/fuse and libfuse3.
#   tests/accept/faulty_storage.sh BUILD_FOLDER
set -u
cd "$(dirname "$0")/../.." || exit 2
here=$PWD/tests/accept
mlbench=$PWD/${1:-build/release}/mlbench
work=$(mktemp -d -p /var/tmp)
server=
end_server() {
	case ${1:-} in hang*) kill -9 "$server" 2>/dev/null ;; esac
	[ -z "$server" ] || { fusermount3 -u "$work/mount" 2>/dev/null || umount "$work/mount" 2>/dev/null; wait "$server" 2>/dev/null; }
	server=
}
trap 'end_server; rm -rf "$work"' EXIT
pkg-config --exists fuse3 && [ -c /dev/fuse ] || { echo "skipped: no libfuse3 or no /dev/fuse"; exit 77; }
# shellcheck disable=SC2046
cc -O1 -Wall -Wextra -o "$work/faulty_fs" "$here/faulty_fs.c" $(pkg-config --cflags --libs fuse3) || exit 2
mkdir "$work/mount" "$work/folder"
cat >"$work/stored.ini" <<'INI'
[stored]
kind = repeatable
tier = quick
size = 8MiB
repeatable.storage = <= 0
INI
cat >"$work/burn.ini" <<'INI'
[burn]
kind = burn
tier = quick
for = 3s
size = 8MiB
loads = read, write
burn.wrong = <= 0
burn.write = known
INI
cd "$work" || exit 2
passed=0 failed=0
# try KIND BLOCK PLAN STATUS TEXT: the check's document has the text.
try() {
	local status
	rm -rf result
	"$work/faulty_fs" "$work/folder" "$work/mount" "$1" "$2" 2>server.err &
	server=$!
	for _ in $(seq 100); do mountpoint -q mount && break || sleep 0.05; done
	mountpoint -q mount || { echo "skipped: no FUSE mount can be made here: $(tail -n 1 server.err)"; exit 77; }
	"$mlbench" accept "$3.ini" --tier quick --path mount --out result --json >out.json 2>err
	status=$?
	end_server "$1"
	if [ "$status" -eq "$4" ] && grep -qF -- "$5" out.json; then
		passed=$((passed + 1))
		echo "ok    $3 of $1: $(grep -oF -- "$5" out.json | head -n 1)"
	else
		failed=$((failed + 1))
		echo "FAIL  $3 of $1: exit status $status instead of $4, or not '$5'"
		grep -E '"text"|"sentence"|"why"' out.json | head -n 12
	fi
}
try none 5 stored 0 'PASS: '
try bits 5 stored 1 'bits: block 5 (byte 20480) of scratch file 0: 1 bit differs, the first at byte 1000'
try stale 5 stored 1 'stale: block 5 (byte 20480) of scratch file 0: it is of generation 1, not 2'
try torn 5 stored 1 'torn: block 5 (byte 20480) of scratch file 0: 4 of 8 sectors are of generation 2'
try misplaced 5 stored 1 'misplaced: block 6 (byte 24576) of scratch file 0: it holds block 5 of the same file'
try missing 5 stored 1 'missing: block 5 (byte 20480) of scratch file 0: it is zeros'
try eio 5 stored 1 'unreadable: block 5 (byte 20480) of scratch file 0: it cannot be read: Input/output error'
try full 5 stored 3 'No space left on device'
try none 5 burn 0 'PASS: '
try bits 5 burn 1 'bits: block 5: 1 bit differs, the first at byte 1000'
try eio 5 burn 1 'unreadable: block 5: it cannot be read: Input/output error'
try full 100 burn 3 'No space left on device'
try hang 20 stored 3 'it did not end within'
try hang 20 burn 3 'does not answer: what was written has not come back for 30 s'
try hang_later 20 burn 3 'does not answer: a request has not come back'
echo "faulty_storage: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
