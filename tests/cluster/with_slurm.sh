#!/usr/bin/env bash
# Runs a command beside a Slurm of its own, and ends with its status:
#   tests/cluster/with_slurm.sh [--nodes N] COMMAND ...
# The command finds SLURM_CONF set; the nodes are called n1, n2, ... and have 4 CPUs each, whatever the machine has.
# Munge, slurmctld and a slurmd for each node run in namespaces of their own (processes, network, mounts): no Slurm that the
# machine has can be reached, no port collides, and all of it dies with this script, however that ends.  Each node has a host
# name and a /dev/shm of its own, by whose names Open MPI's ranks find each other's memory.  Root is not needed.
# Status 77 with the reason where there is no Slurm, or no such namespaces.
set -u
cannot() {
	echo "with_slurm: $*" >&2
	exit 77
}
if [ -z "${SLURM_ALONE:-}" ]; then
	PATH=$PATH:/usr/sbin:/sbin
	for program in munged slurmctld slurmd srun ip; do
		command -v $program >/dev/null || cannot "$program is not installed (packages munge, slurmctld, slurmd, slurm-client, iproute2)"
	done
	alone=(setpriv --pdeathsig KILL unshare --mount --net --uts --pid --fork --kill-child --mount-proc)
	# Root in a namespace of users may not set groups, which slurmctld insists on; it asks nobody else to.
	[ "$(id -u)" -eq 0 ] || alone=(unshare --user --map-current-user --keep-caps "${alone[@]}")
	"${alone[@]}" ip link add v0 type veth peer name v1 2>/dev/null || cannot "no namespaces here"
	# Not even of a job that this may be a part of.
	for name in $(compgen -e | grep -E '^(SLURM|SBATCH|SRUN|SALLOC|SQUEUE|SINFO|SCANCEL|PMI|OMPI)'); do
		unset "$name"
	done
	SLURM_ALONE=1 exec "${alone[@]}" bash "$0" "$@"
fi
unset SLURM_ALONE
trap 'exit 143' TERM # the first process of a namespace has no other way to end
trap 'exit 130' INT
nodes=1
[ "${1:-}" != --nodes ] || { nodes=$2 && shift 2; }
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

user=$(id -un 2>/dev/null) || cannot "this user has no name"
mount -t tmpfs tmpfs /run && hostname n0 || cannot "no tmpfs and host name of its own"
work=/run/slurm
mkdir -m 755 $work
mkdir $work/state
# Open MPI uses no loopback interface.
{ ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 10.0.0.1/24 dev v0 &&
	ip link set v0 up && ip link set v1 up; } || cannot "no network of its own"

head -c 128 /dev/urandom >$work/munge.key
chmod 400 $work/munge.key
munged --force --key-file=$work/munge.key --socket=$work/munge.sock --pid-file=$work/munged.pid --log-file=$work/munged.log \
	--seed-file=$work/munge.seed 2>$work/err || cannot "munged: $(tail -n 1 $work/err)"
: >$work/plugstack.conf
# cred_expire: a job that was requeued waits as long, else two minutes.
cat >$work/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=n0(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge.sock,cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
TmpFS=$work/tmp.%n
PlugStackConfig=$work/plugstack.conf
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=n[1-$nodes] NodeAddr=127.0.0.1 Port=[26818-$((26817 + nodes))] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D -c >$work/err 2>&1 &
for n in $(seq "$nodes"); do
	mkdir $work/tmp.n"$n"
	unshare --mount --uts sh -c "hostname n$n && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D -N n$n" >$work/err.n"$n" 2>&1 &
done
for _ in $(seq 600); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null)" != "$nodes" ] || break
	sleep 0.1
done
[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$nodes" ] ||
	cannot "Slurm does not come up: $(tail -qn 2 $work/err* $work/slurm*.log 2>/dev/null | tr '\n' ' ')"
"$@"
