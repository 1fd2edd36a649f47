# The network between two nodes drops in the middle of a run: both find out that the other is gone, say so, and end.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
printf '[sync]\ngradients = 64KiB\n[batch]\nsize = 8\n' >>tiny.ini
sed -i -e 's/^time = 500us/time = 20ms/' -e 's/^duration = 60ms/duration = 400ms/' tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
a=mlbf$$a b=mlbf$$b
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null' EXIT
{ ip netns add $a && ip netns add $b && ip link add mlbv$$a netns $a type veth peer name mlbv$$b netns $b; } 2>/dev/null ||
	skip "network namespaces cannot be made here (root, and ip of iproute2)"
ip -n $a addr add 10.77.36.1/24 dev mlbv$$a && ip -n $b addr add 10.77.36.2/24 dev mlbv$$b || fail "no addresses"
for of in a b; do
	ip -n mlbf$$$of link set lo up && ip -n mlbf$$$of link set mlbv$$$of up || fail "the link cannot be set up"
done

measured_or_ended() {
	repetitions job 2 || gone "$launcher"
}

# A node is a namespace, and its daemon is started there.
cat >agent <<AGENT
#!/bin/bash
shift
exec ip netns exec $b bash -c "\$*"
AGENT
chmod +x agent
# over_nodes OPTION ...: the words of mpirun that follow its own.
over_nodes() {
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ip netns exec $a mpirun --mca plm_rsh_agent "$PWD/agent" \
		--mca oob_tcp_if_include mlbv$$a,mlbv$$b --mca btl tcp,self --mca btl_tcp_if_include 10.77.36.0/24 --oversubscribe \
		-host 10.77.36.1,10.77.36.2 --map-by node "$@"
}

# The first rank of a node that has no data and cannot make any: said, and nobody waits for anybody.
mkdir there
missing=("$MLBENCH" run "$PWD/tiny.ini" --set dataset.path=./data --set dataset.recipe=none --out "$PWD/job")
expect 3 over_nodes -n 1 "${missing[@]}" : -n 1 -wdir "$PWD/there" "${missing[@]}"
[ "$(grep -c '^mlbench: error: ' err)" -eq 1 ] && [ ! -e job/points.jsonl ] || fail "not one line says that a node has no data"
says "rank 1 on $(uname -n): "

over_nodes -n 2 "$MLBENCH" run "$PWD/tiny.ini" --set dataset.path="$PWD/data" --set measure.repeats=10 --out "$PWD/job" >out 2>err </dev/null &
launcher=$!
until_true measured_or_ended
ranks=() others=()
for pid in $(ip netns pids $a) $(ip netns pids $b); do
	if [ "$(readlink "/proc/$pid/exe")" = "$MLBENCH" ]; then ranks+=("$pid"); else others+=("$pid"); fi
done
[ ${#ranks[@]} -eq 2 ] || fail "${#ranks[@]} ranks, not 2"
ip -n $a link set mlbv$$a down
until_true gone "${ranks[@]}"
says "rank 1 on $(uname -n) has not answered for 1"
says "stopping here: results are kept; 'mpirun -n 2 mlbench run --resume $PWD/job' measures the rest"
# mpirun and its daemon wait for each other, for as long as their own settings say (oob_tcp_keepalive_time).
kill -KILL "$launcher" "${others[@]}" 2>/dev/null
until_true gone "$launcher" "${others[@]}"
expect 0 "$MLBENCH" show job
expect 0 "$MLBENCH" show job/ranks/0001
# The same job on this node alone does the rest.
expect_measured ranks 2 "$MLBENCH" run --resume job
