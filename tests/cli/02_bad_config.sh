# Every mistake in a configuration is refused before anything runs: exit 2, with file, line and what is meant.
. "$CLI/lib.sh"
write_config

# bad 'LINES' 'TEXT ...': the config with these lines appended is refused, and says so.
bad() {
	local lines=$1 text
	shift
	{ cat tiny.ini; printf '%b\n' "$lines"; } >bad.ini
	expect 2 "$MLBENCH" check bad.ini
	for text in "$@"; do says "$text"; done
	expect 2 "$MLBENCH" sweep bad.ini
	[ ! -e results ] || fail "it made results"
	[ ! -e data ] || fail "it made data"
}
line=$(($(wc -l <tiny.ini) + 2))

bad '[decoder]\nworkers = 2' "bad.ini:" "decoder" "decode"
bad '[read]\nengin = pread' "bad.ini:$line" "engin" "read.engine"
bad '[read]\nengine = iouring' "bad.ini:$line" "io_uring"
bad '[read]\ndepth = 1q' "bad.ini:$line" "1q"
bad '[read]\ndepth = 0' "bad.ini:$line" "depth"
bad '[read]\ndepth = 99999999' "bad.ini:$line" "4096"
bad '[read]\nthreads = -1' "bad.ini:$line" "threads"
bad '[inject]\nread_latency = 5 parsecs' "read_latency" "parsecs"
bad '[augment]\nflip = 150%' "flip"
bad '[augment]\nscale_min = 0.9\nscale_max = 0.1' "scale_min"
bad '[inject]\nread_bandwidth = 5 apples' "read_bandwidth"
bad '[run]\nname = ${NO_SUCH_VARIABLE}' "NO_SUCH_VARIABLE"
bad '[run]\nname = a${NO_SUCH_VARIABLE}b' "NO_SUCH_VARIABLE"
bad '[sweep]\nprefetch.depth =' "prefetch.depth"
bad '[sweep]\nprefetch.depth = 1-100000+1' "prefetch.depth"
bad '[sweep]\nexclude = decode.workers=1; decode.workers=2' "exclude"
bad '[sweep]\nzip = decode.workers, read.depth' "zip"
bad '[sweep]\nrun.seed = 1,2' "run.seed"
bad 'nonsense' "bad.ini:"
bad '[step]\nmodel = resnet5' "resnet50"
sed -i 's,^time = 500us,time = 0,' tiny.ini
bad '[step]\ndevice = h1oo' "h100" "step.time = 106ms@64,61ms@32"
sed -i 's,^time = 0,time = 61ms@64\,106ms@32,' tiny.ini
bad '' "bad.ini:16" "larger batch take less time"
sed -i 's,^time = 61.*,time = 500us,' tiny.ini
# What an emulated step ignores is refused, set or swept; where auto emulates, a set one is said and a swept one is the node's lack.
expect 2 "$MLBENCH" check tiny.ini --set step.graph=on
says "step.graph has no effect on an emulated step"
expect 2 "$MLBENCH" check tiny.ini --set sweep.step.learning_rate=0.1,0.2
says "step.learning_rate is swept"
expect 2 "$MLBENCH" check tiny.ini --set sweep.step.precision=fp32,bf16
says "step.precision has no effect on an emulated step"
expect 0 "$MLBENCH" check tiny.ini --set step.backend=auto --set step.precision=bf16
prints "no real device, so step.precision has no effect: "
expect 3 "$MLBENCH" check tiny.ini --set step.backend=auto --set sweep.step.precision=fp32,bf16
says "step.precision is swept"
# One duration over swept batches is no comparison, and is marked so; as a line it is one.
expect 0 "$MLBENCH" check tiny.ini
prints "warning  step.time is one duration for every batch.size"
expect 0 "$MLBENCH" check tiny.ini --set step.time=1ms@8,2ms@16 --set step.device=rtx5090
! grep -q "one duration" out || fail "a line is taken for one duration"
prints "emulated rtx5090"
bad '[read]\ndepth = 4\ndepth = 8' "depth"

printf 'include = loop.ini\n' >other.ini
printf 'include = other.ini\n' >loop.ini
expect 2 "$MLBENCH" check loop.ini
says "loop.ini"
printf 'include = not_there.ini\n' >missing.ini
expect 2 "$MLBENCH" check missing.ini
says "not_there.ini"
expect 2 "$MLBENCH" check nowhere.ini
says "nowhere.ini"
mkdir -p folder
expect 2 "$MLBENCH" check folder
: >empty.ini
expect 2 "$MLBENCH" check empty.ini
says "dataset.path"
expect 2 "$MLBENCH" check tiny.ini --set decode.workers
expect 2 "$MLBENCH" check tiny.ini --set decode.worker=1
says "decode.workers"
expect 2 "$MLBENCH" check tiny.ini --set measure.duration=0
says "duration"
expect 2 "$MLBENCH" check tiny.ini --set augment.size=0
says "size"
expect 2 "$MLBENCH" check tiny.ini --set dataset.samples=0
says "samples"
expect 2 "$MLBENCH" check tiny.ini --set dataset.width=99999999
says "width"
expect 2 "$MLBENCH" run tiny.ini
says "decode.workers, batch.size"
says "sweep"
