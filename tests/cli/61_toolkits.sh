# The plug-in is built for what the toolkit's nvcc can: toolkits that know fewer devices, that fail, that lack nvcc or NCCL's
# header.  The toolkits are made here, of a few lines each, so that none need be installed.
. "$CLI/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DEV SAN CUDA CUDA_HOME CUDA_ARCHS
command -v g++ >/dev/null || skip "no g++"

# toolkit NAME RELEASE ARCH …: its nvcc refuses what it does not list, and everything where $NAME/broken is.
toolkit() {
	local home=$PWD/$1 release=$2
	shift 2
	mkdir -p "$home/bin" "$home/include" "$home/lib64"
	: >"$home/include/cublasLt.h"
	for library in cudart cublasLt; do
		echo 'void nothing_here(void) { }' | gcc -shared -fPIC -x c -o "$home/lib64/lib$library.so" -
	done
	cat >"$home/bin/nvcc" <<SH
#!/usr/bin/env bash
case \$1 in
--version) echo "Cuda compilation tools, release $release, V$release.99"; exit 0 ;;
--list-gpu-arch) printf 'compute_%s\n' $*; exit 0 ;;
esac
if [ -e "$home/broken" ]; then echo "host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 9 are not supported!" >&2; exit 1; fi
while [ \$# -gt 0 ]; do
	case \$1 in
	-gencode) arch=\${2#arch=compute_} arch=\${arch%%,*}
		case " $* " in *" \$arch "*) ;; *) echo "nvcc fatal : Unsupported gpu architecture 'compute_\$arch'" >&2; exit 1 ;; esac ;;
	-o) out=\$2 ;;
	*kernels_*.cu) if [ -e "$home/picky" ]; then echo "\$1(1): error: this toolkit lacks something" >&2; exit 2; fi ;;
	esac
	shift
done
echo 'int of_nvcc;' | gcc -c -fPIC -x c -o "\$out" -
SH
	chmod +x "$home/bin/nvcc"
}
answer() { # HOME ARCHS: what the Makefile takes in
	local file
	file=$("$ROOT/.ci/cuda" "$1" gcc g++ "$2" "$PWD/answers") || fail ".ci/cuda fails with $1"
	cat "$file" >answer
}
says() { grep -qF -- "$1" answer || fail "for $2 '$1' is missing: $(tr '\n' ';' <answer)"; }

toolkit old 12.4 50 80 86 90
toolkit new 13.0 75 80 90 100 120
answer "$PWD/new" all
says 'CUDA_TARGETS := sm_80 sm_90 sm_100, PTX compute_100' "CUDA 13"
says 'arch=compute_80,code=sm_80' "CUDA 13"
says 'arch=compute_100,code=compute_100' "CUDA 13"
answer "$PWD/old" all
says 'CUDA_TARGETS := sm_80 sm_90, PTX compute_90' "CUDA 12.4"
says 'CUDA_NOTE := without sm_100, which nvcc 12.4 does not know' "CUDA 12.4"
answer "$PWD/old" 90
says 'CUDA_TARGETS := sm_90, PTX compute_90' "CUDA_ARCHS=90"
answer "$PWD/old" 80,100
says 'CUDA_WHY := nvcc 12.4 does not know sm_100, but 50 80 86 90' "CUDA_ARCHS=80,100"
answer "$PWD/nowhere" all
says "CUDA_WHY := no CUDA toolkit in $PWD/nowhere" "no toolkit"
cp -r new headers && rm headers/bin/nvcc
answer "$PWD/headers" all
says 'headers/bin/nvcc is not there' "a toolkit of headers"
cp -r new libraries && rm libraries/lib64/libcublasLt.so
answer "$PWD/libraries" all
says 'cannot be linked: ' "a toolkit without cuBLAS"
cp -r new linked && echo 'exit 3' >linked/bin/nvcc
answer "$PWD/linked" all
says 'nvcc does not say what it can build for' "an nvcc that does not run"
# A failure is no property of the toolkit: mended, it is asked again.
toolkit host 12.4 80 90
touch host/broken
answer "$PWD/host" all
says 'CUDA_WHY := nvcc 12.4 fails on a small file: host_config.h:143:2: error:' "a host compiler that is too new"
rm host/broken
answer "$PWD/host" all
says 'sm_80 sm_90' "the same, mended"

# The program goes on without a plug-in, in one line; CUDA=1 insists.  Of the plug-in one kernel and one plain file, to be quick.
build() { # HOME [VARIABLE=VALUE …]
	local home=$1
	shift
	make --no-print-directory -C "$ROOT" "B=$PWD/built" "CUDA_HOME=$home" CUDA_C= CUDA_PLAIN=harness/base/clock.c \
		CUDA_KERNELS=workloads/backend/cuda/kernels_cast.cu "$@" >made 2>&1
}
plugin=$PWD/built/libmlbench-cuda.so
make --no-print-directory -C "$ROOT" -n "CUDA_HOME=$PWD/headers" >plan 2>&1 || fail "make stops without nvcc: $(tail -n 1 plan)"
grep -q 'no plug-in for NVIDIA devices: .*headers/bin/nvcc is not there' plan || fail "make does not say why there is no plug-in"
make --no-print-directory -C "$ROOT" -n "CUDA_HOME=$PWD/headers" CUDA=1 >plan 2>&1 && fail "CUDA=1 goes on without nvcc"
grep -q 'CUDA=1: .*headers/bin/nvcc is not there' plan || fail "CUDA=1 does not say why it stops: $(tail -n 1 plan)"
touch new/picky
build "$PWD/new" "$plugin" || fail "a kernel that does not compile stops make: $(tail -n 1 made)"
[ ! -e "$plugin" ] || fail "a plug-in was made of a kernel that does not compile"
[ "$(grep -c 'no plug-in for NVIDIA devices' made)" -eq 1 ] || fail "it is not said in one line: $(tail -n 3 made)"
grep -q 'no plug-in .*kernels_cast.cu does not compile' made || fail "it does not say which: $(tail -n 1 made)"
build "$PWD/new" CUDA=1 "$plugin" && fail "CUDA=1 goes on without a kernel"
rm new/picky
build "$PWD/new" CUDA=1 "$plugin" || fail "the same toolkit, mended: $(tail -n 3 made)"
[ -s "$plugin" ] || fail "no plug-in was made"
rm "$plugin" new/lib64/libcublasLt.so
build "$PWD/new" "CUDA_GENCODE=-gencode arch=compute_80,code=sm_80" "$plugin" || fail "a library that is missing stops make: $(tail -n 1 made)"
grep -q 'no plug-in .*cannot be linked' made || fail "it is not said that a library is missing: $(tail -n 1 made)"

# NCCL's header is no part of the toolkit: nothing of ours asks for it, but the comparison that can do without.
grep -lE '#include *<nccl' -r "$ROOT/workloads" "$ROOT/harness" "$ROOT/pipelines" "$ROOT/tests/device" >with
[ "$(cat with)" = "$ROOT/tests/device/double/nccl_matches.cc" ] || fail "these include nccl.h: $(tr '\n' ' ' <with)"
g++ -std=c++17 -Wall -Werror -I"$ROOT" -c -o matches.o "$ROOT/tests/device/double/nccl_matches.cc" >made 2>&1 ||
	fail "nccl_matches.cc does not compile without nccl.h: $(head -n 1 made)"

# 'make cuda-toolkit' where pip does not reach its index: one line says why, and nothing half-made is left to build with.
[ "$(uname -m)" = x86_64 ] || exit 0
mkdir fake && cat >fake/python3 <<'SH'
#!/bin/sh
case "$*" in
*--version*) echo "pip 23" ;;
*) echo "ERROR: No matching distribution found for nvidia-cublas==1" >&2; exit 1 ;;
esac
SH
chmod +x fake/python3
PATH=$PWD/fake:$PATH "$ROOT/.ci/cuda-toolkit" "$PWD/fetched/cuda-toolkit" 2>said && fail "it says that it fetched a toolkit which cannot be had"
grep -q '^cuda-toolkit: .*GB to download' said || fail "it does not say how much it would fetch: $(tr '\n' ';' <said)"
grep -q '^cuda-toolkit: pip could not fetch the wheels: ERROR: No matching' said || fail "it does not say why: $(tr '\n' ';' <said)"
[ -z "$(ls fetched)" ] || fail "it leaves behind: $(ls fetched)"
