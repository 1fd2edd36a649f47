#!/usr/bin/env bash
# Nodes that are network namespaces with a link of their own, each paced by the kernel (tc tbf): mlbench accept, started by
# mpirun on all of them, names the link or the node whose pace is a quarter of the others', and no other.  What is right was
# decided before.  Where a busy machine leaves it open, it is tried again with links that are slower, so that they and not the
# cores bound them.  Needs root, ip and tc, Open MPI and the plug-in for it.
#   tests/accept/slow_links.sh BUILD_FOLDER [NODES [PLANT ...]]      none, link, node, sends, receives
# Exit status 77: skipped, with the reason.
set -u
cd "$(dirname "$0")/../.." || exit 2
mlbench=$(readlink -f "${1:-build/release}/mlbench") || exit 2
nodes=${2:-4}
shift $(($# < 2 ? $# : 2))
skip() {
	echo "skipped: $*"
	exit 77
}
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v tc >/dev/null && command -v ip >/dev/null || skip "no ip and tc here (Debian's iproute2)"
mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "no mpirun of Open MPI here (Debian's openmpi-bin)"
[ -e "${mlbench%/*}/libmlbench-mpi.so" ] || skip "this build has no MPI plug-in (Debian's libopenmpi-dev)"

net=10.213.77
space=mlb$$ work=$(mktemp -d)
remove() {
	local name
	for name in $(seq "$nodes") hub; do ip netns del "$space-$name" 2>/dev/null; done
}
trap 'remove; rm -rf "$work"' EXIT
at() { # NODE COMMAND ...
	local name=$1
	shift
	ip netns exec "$space-$name" "$@"
}
# A bridge, and a node on each of its ports: what a node sends is paced by the node, what it receives by the port.
make_nodes() {
	local i
	remove
	ip netns add "$space-hub" && at hub ip link set lo up && at hub ip link add name hub0 type bridge &&
		at hub ip addr add $net.254/24 dev hub0 && at hub ip link set hub0 up || return 1
	for i in $(seq "$nodes"); do
		ip netns add "$space-$i" && at hub ip link add "port$i" type veth peer name eth0 netns "$space-$i" &&
			at hub ip link set "port$i" master hub0 up && at "$i" ip addr add "$net.$i/24" dev eth0 &&
			at "$i" ip link set eth0 up && at "$i" ip link set lo up &&
			at "$i" tc qdisc add dev eth0 root tbf $pace latency 50ms || return 1
	done
}
plant() {
	case $1 in
	none) ;;
	link) # what node 1 sends to node 3 alone
		at 1 tc qdisc replace dev eth0 root handle 1: htb default 1 r2q 100 &&
			at 1 tc class add dev eth0 parent 1: classid 1:1 htb ${pace/burst/cburst 16k burst} &&
			at 1 tc class add dev eth0 parent 1: classid 1:2 htb ${slow/burst/cburst 16k burst} &&
			at 1 tc filter add dev eth0 parent 1: protocol ip u32 match ip dst $net.3/32 flowid 1:2
		;;
	node) plant sends && plant receives ;;
	sends) at 2 tc qdisc replace dev eth0 root tbf $slow latency 50ms ;;
	receives) at hub tc qdisc add dev port2 root tbf $slow latency 50ms ;;
	*) return 1 ;;
	esac
}
# mpirun reaches a node by this in place of ssh.
cat >"$work/reach" <<SH
#!/bin/sh
host=\$1
shift
exec ip netns exec "$space-\${host#n}" unshare -u sh -c 'hostname "\$0"; exec sh -c "\$*"' "\$host" "\$@"
SH
chmod +x "$work/reach"
cat >"$work/plan.ini" <<'INI'
[links]
kind = network
tier = quick
budget = 10min
network.slow.bandwidth <= 40 %
network.bandwidth >= 1 KB/s
INI
cat >"$work/judge.py" <<'PY'
import json, sys
plant, nodes = sys.argv[1], int(sys.argv[2])
right = {
    "none": (set(), {}),
    "link": ({"n1", "n3"}, {"n1 to n3": "the link n1 to n3 has little"}),
    "node": ({"n2"}, {"": "every link of n2 has little"}),
    "sends": ({"n2"}, {"": "every link of n2, which it sends on, has little"}),
    "receives": ({"n2"}, {"": "every link of n2, which it receives on, has little"}),
}[plant]
failed, named, unsure = set(), {}, []
for i in range(1, nodes + 1):
    document = json.load(open("result/n%d/accept.json" % i))
    [links] = document["measured"]
    if document["verdict"] == "FAIL":
        failed.add("n%d" % i)
    elif document["verdict"] != "PASS":
        unsure.append("n%d: %s" % (i, document["sentence"]))
    for event in links["events"]:
        named[event["place"]] = event["text"]
none_wrong = failed <= right[0] and all(p in right[1] and t.startswith(right[1][p]) for p, t in named.items())
well = none_wrong and failed == right[0] and len(named) == len(right[1]) and (named or not unsure)
print("%s %-8s failed: %s; %s%s" % ("ok  " if well else "?   " if none_wrong else "FAIL", plant, ", ".join(sorted(failed)) or "none", "; ".join(named.values()) or "nothing named", "".join("; " + u for u in unsure)))
sys.exit(0 if well else 3 if none_wrong else 1) # 3: cores that others take may bound all links alike
PY
cd "$work" || exit 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bad=0
[ $# -gt 0 ] || set -- none link node sends receives
for what; do
	for rate in 100 40 40 25; do
		pace="rate ${rate}mbit burst 16k" slow="rate $((rate * 250))kbit burst 16k"
		make_nodes >log 2>&1 && plant "$what" >>log 2>&1 || skip "no such network can be made here: $(tail -n 1 log)"
		rm -rf result
		at hub mpirun --host "$(seq -s, -f n%g "$nodes")" --mca plm_rsh_agent "$work/reach" --mca plm_rsh_no_tree_spawn 1 \
			--mca btl tcp,self --mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 --wdir "$work" \
			"$mlbench" accept plan.ini --tier quick --out "$work/result" >log 2>&1
		python3 judge.py "$what" "$nodes"
		status=$?
		[ "$status" -eq 3 ] || break
	done
	[ "$status" -eq 0 ] || { bad=$((bad + 1)) && tail -n 20 log; }
done
[ "$bad" -eq 0 ]
