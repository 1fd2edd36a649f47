# gen: deterministic, kept when it is there, verified, and damage is found.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
prints "96 samples made"
expect 0 "$MLBENCH" gen tiny.ini
prints "0 samples made"
expect 0 "$MLBENCH" gen tiny.ini --verify
prints "96 files good, 0 bad"
expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=again
diff -r data again >/dev/null || fail "the same recipe gave other files"
file=$(find data -name '*.ppm' | sort | head -n 1)
printf 'X' | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
expect 1 "$MLBENCH" gen tiny.ini --verify
prints "95 files good, 1 bad"
says "$(basename "$file")"
rm "$file"
expect 1 "$MLBENCH" gen tiny.ini --verify --json
is_json mlbench.verify/1
[ "$(json 'd["bad"]')" = 1 ] || fail "bad"
# The sample is made again, whatever lies in the place of its temporary file.
echo precious >victim
ln -s "$PWD/victim" "$(dirname "$file")/.$(basename "$file").tmp"
expect 0 "$MLBENCH" gen tiny.ini
prints "1 samples made"
[ "$(cat victim)" = precious ] || fail "a planted link was followed"
expect 0 "$MLBENCH" gen tiny.ini --verify

# A run that generates its data first is no larger than the next, which finds it there: the peak is the run's own.
for file in generates finds; do
	expect_measured "$MLBENCH" run tiny.ini $ONE --set dataset.path=fresh --set measure.repeats=1 --json
	json 'd["points"][0]["rss_peak_bytes"]' >"$file"
done
[ "$(cat generates)" -lt "$(($(cat finds) + 4000000))" ] || fail "resident with what generating needed: $(cat generates) and $(cat finds) bytes"
