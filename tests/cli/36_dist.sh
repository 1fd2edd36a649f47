# The program needs no CUDA library, wherever it was built; and what `make dist` packs runs from another folder, with nothing of
# this machine's but glibc, of which it asks for no version above 2.28.
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
# The devices that the plug-in is built for are those that it was built for: compiling it anew takes minutes.
archs=$(grep -oE 'code=sm_[0-9]+' "$ROOT/build/release/pic/toolkit" 2>/dev/null | cut -d_ -f2 | paste -sd,)
with="CUDA=${CUDA:-auto}"
if [ -n "$archs" ] && [ -e "$ROOT/build/release/libmlbench-cuda.so" ]; then with="$with CUDA_ARCHS=$archs"; else with=CUDA=0; fi
packed=$PWD/packed
dist() { make --no-print-directory -C "$ROOT" $with "DIST_OUT=$packed" DIST_LEVEL=0 "$@"; }
dist -n dist >plan 2>&1 || fail "make dist: $(tail -n 1 plan)"
grep -v old_glibc plan | grep -qE ' -c -o |nvcc ' && skip "no CUDA library is needed; make first, for the dist"
expect 0 dist dist
tarball=$(tail -n 1 out)
[ -s "$tarball" ] || fail "no tarball at '$tarball'"
mkdir "another place"
tar -C "another place" -xf "$tarball" || fail "it does not unpack"
rm "$tarball"
cd "another place"/mlbench-* || fail "no folder in it"
no_cuda bin/mlbench
env -i "$(command -v ldd)" bin/mlbench >needed || fail "ldd cannot read it"
if grep -E 'not found|=> /(usr/)?lib' needed | grep -vE 'lib(c|m|pthread|dl|rt|gcc_s)\.so' >foreign; then
	fail "a library of this machine is taken: $(head -n 1 foreign)"
fi

# glibc: by readelf, not by what did the rewriting.
readelf -V -W $(find bin lib -type f) 2>/dev/null | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -Vu >asked
[ "$(wc -l <asked)" -gt 3 ] || fail "readelf finds no versions"
newest=$(tail -n 1 asked)
[ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ] || fail "it needs $newest"
cp "$MLBENCH" unpatched
"$ROOT/.ci/old_glibc.py" --check unpatched >/dev/null && fail "the check finds nothing in a program that is linked as usual"

# Every file that its README names is in it, and every configuration is found from elsewhere, with no environment at all.
for file in $(grep -oE '`(docs|configs)/[A-Za-z0-9_./-]+`|\]\([a-z][^):]*\)' README.md | tr -d '`]()' | sort -u); do
	[ -e "$file" ] || fail "README names $file, which is not in the tarball"
done
here=$PWD
mkdir ../elsewhere && cd ../elsewhere
for config in imagenet_like configs/imagenet_like.ini cpu_training; do
	env -i "$here/bin/mlbench" check "$config" >out 2>err || fail "check $config fails in an empty environment: $(tail -n 1 err)"
done
env -i "$here/bin/mlbench" list configs --json | grep -q "$here/configs/imagenet_like.ini" || fail "list configs is empty"
env -i LD_DEBUG=files "$here/bin/mlbench" list backends 2>opened | grep -q 'openblas *computes' || fail "OpenBLAS cannot be opened"
grep -q "calling init: $here/.*libopenblas" opened || fail "another OpenBLAS than the tarball's is opened"
cd "$here"
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
backend = openblas
model = mlp
[measure]
duration = 60ms
warmup = 10ms
window = 10ms
repeats = 1
limits = off
INI
env -i bin/mlbench run tiny.ini --out result >out 2>err
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "a run from it exits $status"
[ -s result/points.jsonl ] || fail "a run from it leaves no result"
ls device tests 2>/dev/null && fail "device tests are in it"
[ "$with" != CUDA=0 ] || skip "it runs elsewhere; built without CUDA, so nothing for devices is in it"
[ -s lib/mlbench/libmlbench-cuda.so ] || fail "no plug-in in it"
ls lib | grep -E '^lib(cu|nccl|nvidia)' >foreign && fail "a CUDA library is in it: $(head -n 1 foreign)"

# The programs for devices, which unpack into the same folder.
dist -n dist-device >"$here/plan" 2>&1 || fail "make dist-device: $(tail -n 1 plan)"
grep -v old_glibc plan | grep -qE ' -c -o |nvcc ' && skip "it runs elsewhere; make device first, for the tests of devices"
expect 0 dist dist-device
tarball=$(tail -n 1 out)
tar -C .. -xf "$tarball" || fail "$tarball does not unpack"
rm "$tarball"
[ "$(ls device/test_* | wc -l)" -ge 10 ] && [ "$(ls device/bench_* | wc -l)" -ge 5 ] || fail "programs for devices are missing"
"$ROOT/.ci/old_glibc.py" --check device/* lib/*.so* || fail "a program for devices needs a newer glibc"
for file in tests/device/run.sh tests/device/judge.py tests/bank/bank.py; do
	[ -e "$file" ] || fail "no $file in it"
done
if bin/mlbench list | grep -q 'cuda *not here'; then
	bin/mlbench list | grep -q 'no CUDA plug-in' && fail "the program does not find its plug-in"
	tests/device/run.sh --only doctor --out run >out 2>err
	status=$?
	[ "$status" -eq 3 ] || fail "run.sh exits $status where there is no GPU"
	grep -q 'no GPU can be used: .' err || fail "run.sh does not say why"
fi
