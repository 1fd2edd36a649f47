# The program needs no CUDA library, wherever it was built; and what `make dist` packs runs from another folder, with the
# plug-in where the toolkit is.
no_cuda() { # PROGRAM
	if ldd "$1" | grep -E 'libcu|libnccl|libnvidia|nvtx' >cuda; then
		fail "$1 is linked with $(head -n 1 cuda)"
	fi
}
. "$CLI/lib.sh"
ldd "$MLBENCH" >libraries || fail "ldd cannot read $MLBENCH"
no_cuda "$MLBENCH"

[ "$MLBENCH" = "$ROOT/build/release/mlbench" ] || skip "no CUDA library is needed; a dist is made of the release build alone"
unset MAKEFLAGS MFLAGS MAKELEVEL DEV SAN
# Building the programs for devices takes minutes: `make check` has done it.
make --no-print-directory -C "$ROOT" -n dist >plan 2>&1 || fail "make dist: $(tail -n 1 plan)"
grep -qE ' -c -o |nvcc' plan && skip "no CUDA library is needed; make device first, for the dist"
expect 0 make --no-print-directory -C "$ROOT" dist DIST_LEVEL=1
tarball=$ROOT/$(tail -n 1 out)
[ -s "$tarball" ] || fail "no tarball at '$tarball'"
mkdir "another place"
tar -C "another place" -xzf "$tarball" || fail "it does not unpack"
cd "another place"/mlbench-* || fail "no folder in it"
no_cuda bin/mlbench
if ldd bin/mlbench | grep -E 'not found|/usr/lib.*(openblas|uring|jansson)' >foreign; then
	fail "bin/mlbench does not take its own libraries: $(head -n 1 foreign)"
fi
bin/mlbench doctor >doctor 2>err
status=$?
[ "$status" -le 1 ] || fail "doctor exits $status"
grep -q 'backend cuda' doctor || fail "doctor says nothing of cuda"
cat >tiny.ini <<'INI'
[dataset]
path = data
recipe = photo
format = raw
width = 18
height = 18
samples = 96
[augment]
size = 16
[step]
backend = null
[measure]
duration = 60ms
warmup = 10ms
window = 10ms
repeats = 1
limits = off
INI
bin/mlbench run tiny.ini --out result >out 2>err
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "a run from it exits $status"
[ -s result/points.jsonl ] || fail "a run from it leaves no result"

for file in tests/device/run.sh tests/device/judge.py tests/bank/bank.py configs/imagenet_like.ini; do
	[ -e "$file" ] || fail "no $file in it"
done
grep -q 'libmlbench-cuda' "$OLDPWD/plan" || skip "it runs elsewhere; built without CUDA, so nothing for devices is in it"
[ -s lib/mlbench/libmlbench-cuda.so ] || fail "no plug-in in it"
ls lib | grep -E '^lib(cu|nccl|nvidia)' >foreign && fail "a CUDA library is in it: $(head -n 1 foreign)"
[ "$(ls device/test_* | wc -l)" -ge 10 ] && [ "$(ls device/bench_* | wc -l)" -ge 5 ] || fail "programs for devices are missing"
if bin/mlbench list | grep -q 'cuda *not here'; then
	bin/mlbench list | grep -q 'no CUDA plug-in' && fail "the program does not find its plug-in"
	tests/device/run.sh --only doctor --out run >out 2>err
	status=$?
	[ "$status" -eq 3 ] || fail "run.sh exits $status where there is no GPU"
	grep -q 'no GPU can be used: .' err || fail "run.sh does not say why"
fi
