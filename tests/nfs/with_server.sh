#!/usr/bin/env bash
# Runs a command beside an NFS server of its own, nfs-ganesha in user space on 127.0.0.1 (NFSv4 only, so no rpcbind is
# needed), and ends with its status:
#   tests/nfs/with_server.sh [--folder DIR] [--port N] [--latency MS] [--rate TBF] [--v3] COMMAND ...
# The command finds NFS_URL (nfs://127.0.0.1:PORT/export; MLBENCH_DATA, too), NFS_PORT and NFS_FOLDER (what is exported: a
# temporary folder unless --folder names one).
#   --latency MS  through tests/nfs/relay.py, which holds everything back for that long in either direction
#   --rate TBF    in a network namespace of its own behind a veth with `tc tbf rate TBF` ("200mbit")
#   --v3          NFSv3 only, with an rpcbind; all of it, the command too, in namespaces of their own
# Status 77 with the reason where there is no ganesha, no root, or no such network.
set -u
here=$(cd "$(dirname "$0")" && pwd)
given=("$@")
folder='' port=20490 latency='' rate='' version=4
while [ $# -gt 0 ]; do
	case $1 in
	--folder) folder=$(readlink -f "$2") && shift 2 || exit 2 ;;
	--port) port=$2 && shift 2 ;;
	--latency) latency=$2 && shift 2 ;;
	--rate) rate=$2 && shift 2 ;;
	--v3) version=3 && shift ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cannot() {
	echo "with_server: $*" >&2
	exit 77
}
[ "$(id -u)" = 0 ] || cannot "only root can run an NFS server of files"
PATH=$PATH:/usr/sbin:/sbin
command -v ganesha.nfsd >/dev/null || cannot "nfs-ganesha is not installed (packages nfs-ganesha, nfs-ganesha-vfs)"

if [ "$version" = 3 ] && [ -z "${NFS_ALONE:-}" ]; then
	command -v rpcbind >/dev/null || cannot "rpcbind is not installed, which NFSv3 needs"
	unshare -n -m --pid --fork --mount-proc true 2>/dev/null || cannot "no namespaces here"
	NFS_ALONE=1 exec unshare -n -m --pid --fork --mount-proc "$here/with_server.sh" "${given[@]}"
fi
work=$(mktemp -d)
server='' relay='' space=''
end() {
	for pid in $relay $server; do
		kill "$pid" 2>/dev/null
	done
	for pid in $relay $server; do
		for _ in $(seq 100); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
		kill -9 "$pid" 2>/dev/null
	done
	[ -z "$space" ] || ip netns del "$space" 2>/dev/null
	rm -rf "$work"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

address=127.0.0.1 within=()
if [ -n "$rate" ]; then
	space=mlbench-nfs-$$
	net=10.$((200 + $$ % 50)).$(($$ / 50 % 250))
	{ ip netns add "$space" && ip link add "mlb$$" type veth peer name eth0 netns "$space" &&
		ip addr add "$net.1/30" dev "mlb$$" && ip link set "mlb$$" up &&
		ip netns exec "$space" ip addr add "$net.2/30" dev eth0 &&
		ip netns exec "$space" ip link set eth0 up &&
		ip netns exec "$space" tc qdisc add dev eth0 root tbf rate "$rate" burst 64kb latency 200ms; } 2>"$work/net" ||
		cannot "no shaped link: $(tail -n 1 "$work/net")"
	address=$net.2 within=(ip netns exec "$space")
fi

bind="Bind_addr = $address;" path=/export
if [ $version = 3 ]; then
	{ ip link set lo up && mount -t tmpfs none /run && mkdir -p /run/rpcbind; } || cannot "no namespace of its own"
	rpcbind -f >"$work/rpcbind" 2>&1 &
	sleep 1
	bind=''
fi
[ -n "$folder" ] || { folder=$work/export && mkdir "$folder"; }
[ "$version" = 4 ] || path=$folder
mkdir -p "$work/recovery"
listen=$port
[ -z "$latency" ] || listen=$((port + 1))
cat >"$work/ganesha.conf" <<CONF
NFS_CORE_PARAM {
	Protocols = $version;
	NFS_Port = $listen;
	$bind
	Enable_NLM = false;
	Enable_RQUOTA = false;
	Plugins_Dir = $(dirname "$(find /usr/lib -name libfsalvfs.so 2>/dev/null | head -n 1)");
}
NFSv4 {
	Graceless = true;
	RecoveryBackend = fs;
	RecoveryRoot = $work/recovery;
}
EXPORT {
	Export_Id = 1;
	Path = $folder;
	Pseudo = /export;
	Access_Type = RO;
	Squash = No_Root_Squash;
	SecType = sys;
	Protocols = $version;
	Transports = TCP;
	FSAL { Name = VFS; }
}
CONF
"${within[@]}" ganesha.nfsd -F -f "$work/ganesha.conf" -L "$work/ganesha.log" -p "$work/ganesha.pid" >"$work/out" 2>&1 &
server=$!

answers() { # PORT
	python3 - "$address" "$1" <<PY
import socket, struct, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)
s.settimeout(2)
s.sendall(struct.pack(">11I", 0x80000000 | 40, 7, 0, 2, 100003, $version, 0, 0, 0, 0, 0))
sys.exit(0 if s.recv(8)[4:] == struct.pack(">I", 7) else 1)
PY
}
up=
for _ in $(seq 200); do
	answers "$listen" 2>/dev/null && up=1 && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
[ -n "$up" ] || cannot "the server does not come up: $(tail -n 2 "$work/ganesha.log" "$work/out" 2>/dev/null | tr '\n' ' ')"
if [ -n "$latency" ]; then
	python3 "$here/relay.py" --listen "127.0.0.1:$port" --to "$address:$listen" --latency "$latency" &
	relay=$!
	address=127.0.0.1
	for _ in $(seq 100); do
		answers "$port" 2>/dev/null && break
		sleep 0.1
	done
fi
export NFS_URL="nfs://$address:$port$path" NFS_PORT=$port NFS_FOLDER=$folder NFS_SERVER_PID=$server NFS_RELAY_PID=$relay
# Configurations that follow MLBENCH_DATA read from it.
export MLBENCH_DATA=$NFS_URL NFS_RECIPE=none
"$@"
