# A data set path that is missing, a file, empty, unreadable, or too small for a batch: exit 2, and no results.
. "$CLI/lib.sh"
write_config
none=(--set dataset.recipe=none --set dataset.samples=0 --set decode.workers=1 --set batch.size=8)

expect 2 "$MLBENCH" run tiny.ini "${none[@]}" --set dataset.path=nowhere
says "nowhere"
: >file
expect 2 "$MLBENCH" run tiny.ini "${none[@]}" --set dataset.path=file
says "file"
mkdir -p empty/class
expect 2 "$MLBENCH" run tiny.ini "${none[@]}" --set dataset.path=empty
says "empty"
expect 2 "$MLBENCH" check tiny.ini "${none[@]}" --set dataset.path=empty --json
is_json mlbench.error/1
expect 2 "$MLBENCH" gen tiny.ini --set dataset.recipe=none --set dataset.path=empty
says "recipe"
expect 2 "$MLBENCH" sweep tiny.ini --set dataset.generate=never
says "gen"
: >in_the_way
expect 2 "$MLBENCH" gen tiny.ini --set dataset.path=in_the_way
says "in_the_way"
[ ! -e results ] || fail "it made results"

# A batch larger than the data set, with drop_last: refused with the keys that say so.
expect 0 "$MLBENCH" gen tiny.ini
expect 2 "$MLBENCH" run tiny.ini --set decode.workers=1 --set batch.size=4096
says "batch.size"

# Another recipe's folder is not overwritten.
expect 2 "$MLBENCH" sweep tiny.ini --set dataset.width=20
says "data"

expect 2 "$MLBENCH" show nowhere
says "nowhere"
expect 2 "$MLBENCH" show data
says "data"
