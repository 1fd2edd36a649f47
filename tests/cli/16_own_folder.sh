# A folder of the user's: scanned, bad files counted and told, nothing written into it.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
mkdir own
cp -r data/* own/ 2>/dev/null
find own -maxdepth 1 -type f -delete
class=$(find own -mindepth 1 -maxdepth 1 -type d | sort | head -n 1)
: >"$class/zero.jpg"
printf 'this is no picture' >"$class/text.png"
head -c 40 "$(find own -name '*.ppm' | head -n 1)" >"$class/cut.ppm"
find own | sort >before
export XDG_CACHE_HOME="$PWD/cache"
none=(--set dataset.recipe=none --set dataset.samples=0 --set dataset.path=own)
expect 0 "$MLBENCH" check tiny.ini $ONE "${none[@]}"
prints "left out"
expect_measured "$MLBENCH" run tiny.ini $ONE "${none[@]}" --set measure.epochs=4 --json --out run
is_json mlbench.summary/1
[ "$(json 'd["points"][0]["throughput"]["median"] > 0')" = True ] || fail "nothing was measured"
find own | sort >after
cmp -s before after || fail "it wrote into the user's folder"
