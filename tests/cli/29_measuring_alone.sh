# What measures links and runs without what reads (tests/measuring_alone.c), and leaves a record that mlbench reads.
. "$CLI/lib.sh"
alone=$(dirname "$MLBENCH")/measuring_alone
[ -x "$alone" ] || skip "it runs elsewhere; make all first, for the program that measures alone"
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
expect 0 "$alone" tiny.ini left
repetitions left 1 || fail "no repetition is recorded"
libraries=$(ldd "$alone")
for needless in ncurses sqlite microhttpd protobuf tinfo gnutls; do
	case $libraries in *lib"$needless"*) fail "what measures needs lib$needless" ;; esac
done
"$MLBENCH" show left >out 2>err || [ $? -eq 3 ] || fail "its record cannot be read"
prints "samples/s"
