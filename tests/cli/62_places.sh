# The shipped configurations are found by name from any folder, beside the program as it is built, installed or unpacked; help's
# own examples work; and completion knows what the tables know.
. "$CLI/lib.sh"
expect 0 "$MLBENCH" check imagenet_like
expect 0 "$MLBENCH" check emulated/eight_devices
expect 0 "$MLBENCH" check configs/imagenet_like.ini
expect 2 "$MLBENCH" check imagenet_lik
expect 0 "$MLBENCH" list configs
grep -qE '^  imagenet_like +' out || fail "list configs is empty away from the sources"
[ "$(wc -l <out)" -lt 150 ] || fail "list configs has $(wc -l <out) lines"
expect 2 "$MLBENCH" sweep imagenet
says "or 'imagenet_like'?"
expect 2 "$MLBENCH" check 05_laten
says "did you mean 'labs/05_latency'?"
expect 2 "$MLBENCH" check nowhere/at_all.ini
says "cannot open 'nowhere/at_all.ini'"
expect 0 "$MLBENCH" list configs
[ "$(grep -cE '^  story +' out)" -eq 1 ] || fail "list configs names a file twice"
# A file or folder of that name here: the file is meant, the folder is not.
mkdir story
expect 0 "$MLBENCH" check story
printf '[step]\nbackend = nonsense\n' >null
expect 2 "$MLBENCH" check null
mkdir configs && printf "[run]\nname = mine\n[dataset]\npath = data\nrecipe = photo\nsamples = 96\n[step]\nbackend = null\n" >configs/null.ini
rm null
expect 0 "$MLBENCH" check null
grep -q '^mine' out || fail "./configs does not come first"
rm -r configs story
# Every example of help whose command only reads can be run as it stands here; the others' configuration is found.
for command in run sweep gen probe diagnose check; do
	config=$("$MLBENCH" help "$command" | sed -n 's/^  mlbench [a-z]* \([^ ]*\).*/\1/p' | tail -n 1)
	expect 0 "$MLBENCH" check "$config"
done

# As `make install` and `make dist` lay it out.
for layout in share/mlbench/configs configs; do
	mkdir -p "tree/bin" "tree/$(dirname $layout)"
	cp "$MLBENCH" tree/bin/mlbench
	cp -r "$ROOT/configs" "tree/$layout"
	expect 0 tree/bin/mlbench check imagenet_like
	expect 0 tree/bin/mlbench list configs --json
	grep -q "tree/$layout/imagenet_like.ini" out || fail "list configs does not find $layout"
	rm -r tree
done

# Completion, driven as bash does it: COMP_WORDS are split at '='.
expect 2 "$MLBENCH" help --completion tcsh
PATH=$(dirname "$MLBENCH"):$PATH
"$MLBENCH" help | sed -n '/^commands/,/^begin/s/^  \([a-z-]*\) .*/\1/p' >words
for command in $(cat words); do
	"$MLBENCH" help "$command" | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
done >options
"$MLBENCH" list keys | grep -oE '^  [a-z]+\.[a-z_0-9]+' >keys
[ "$(wc -l <words)" -gt 10 ] && [ "$(wc -l <options)" -gt 50 ] && [ "$(wc -l <keys)" -gt 50 ] || fail "the tables cannot be read"
tr -d ' ' <keys | sort -u - words options >wanted
for shell in bash zsh fish; do
	"$MLBENCH" help --completion $shell >script.$shell || fail "no completion for $shell"
	tr -c 'a-z0-9._-' '\n' <script.$shell | sort -u >has
	comm -23 wanted has >missing
	[ ! -s missing ] || fail "$shell lacks $(head -n 3 missing | tr '\n' ' ')"
	command -v $shell >/dev/null && { $shell -n script.$shell || fail "$shell does not read its script"; }
done
complete_words() { # WORD …: what is offered for the last
	bash -c 'source ./script.bash
		[ "$(complete -p mlbench)" = "complete -o default -F _mlbench mlbench" ] || exit 9
		COMP_WORDS=(mlbench "$@") COMP_CWORD=$# COMPREPLY=()
		_mlbench
		printf "%s\n" "${COMPREPLY[@]}"' complete "$@" >offered || fail "completion of '$*' fails"
}
offers() { grep -qxF -- "$1" offered || fail "'$1' is not offered, but: $(head -n 5 offered | tr '\n' ' ')"; }
complete_words sw
[ "$(cat offered)" = sweep ] || fail "'sw' becomes '$(cat offered)'"
complete_words run --se
[ "$(cat offered)" = --set ] || fail "'run --se' becomes '$(cat offered)'"
complete_words doctor --fol
[ -z "$(cat offered)" ] || fail "an option of another command is offered: $(cat offered)"
complete_words run x.ini --set read.eng
offers read.engine=
complete_words run x.ini --set sweep.decode.work
offers sweep.decode.workers=
complete_words run x.ini --set read.engine =
offers io_uring
complete_words run x.ini --set read.engine = io
[ "$(cat offered)" = io_uring ] || fail "'read.engine=io' becomes '$(cat offered)'"
complete_words run x.ini --set sweep.codec.jpeg_scaled = o
offers off
complete_words run x.ini --set step.model = res
offers resnet50
complete_words export r --format ope
offers openmetrics
complete_words list mod
offers models
complete_words sweep imagenet_l
offers imagenet_like
mkdir -p results/mine
for command in show compare bisect fit; do
	complete_words $command mi
	offers mine
done
complete_words sweep labs/05
offers labs/05_latency
complete_words accept acc
offers accept/node
complete_words sweep acc
[ -z "$(cat offered)" ] || fail "a plan is offered to sweep"
complete_words help good
offers goodput
complete_words help queue-d
offers queue-depth
complete_words explain read/lat
offers read/latency
