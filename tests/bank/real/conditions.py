"""Planted conditions from outside the program: mounts, groups, links, hogs.  A Site is what one run of the program
finds; everything that was made for it goes when it is closed, whatever happened.

What the machine lacks is a Cannot with the reason.  What a killed bank left behind is taken away by the next one
(sweep_leftovers): all of it bears the number of a process."""

import contextlib
import ctypes
import glob
import itertools
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterator, List, Optional, Tuple

PREFIX = "mlbench-bank-"
PERIOD_US = 100000
WAIT_S = 10.0  # for a mount, or for a group to be empty
STARTS_S = 0.5
READ_ALL_S = 60.0
PR_SET_PDEATHSIG = 1
SFTP_SERVER = "/usr/lib/openssh/sftp-server"
LOOP_BYTES = 320 << 20  # what xfs needs; the image has holes
LINK_PORT, HTTP_PORT, NFS_PORT, NFS_BEHIND = 2022, 2080, 2049, 2050
NEAR_END, FAR_END = "198.18.77.1", "198.18.77.2"  # of the range for benchmarks (RFC 2544)
LINK_BURST = 16384       # bytes that pass a link at once: a few packets
LINK_QUEUE = "200ms"     # what waits longer is dropped, as at a switch
LINK_CACHED = "dcache_timeout=3600,entry_timeout=3600,attr_timeout=3600"  # names do not change: only open and read cross the link
SECTOR_GROUPS = {"bps": "blkio.throttle.read_bps_device", "iops": "blkio.throttle.read_iops_device"}
HERE = os.path.dirname(os.path.abspath(__file__))


RCLONE = ("--config", "/dev/null", "--vfs-cache-mode", "off", "--dir-cache-time", "1h", "--no-checksum", "--no-modtime", "--read-only")
IDLE_REQUESTS = 1e5  # per second
NGINX = """daemon off; master_process off; user root; pid %(work)s/nginx.pid; error_log stderr;
events { worker_connections 512; }
thread_pool readers threads=%(threads)d;
http {
	access_log off; client_body_temp_path %(work)s/body; proxy_temp_path %(work)s/proxy; fastcgi_temp_path %(work)s/fastcgi;
	uwsgi_temp_path %(work)s/uwsgi; scgi_temp_path %(work)s/scgi; keepalive_requests 1000000;
	map $uri $fetched { ~[.](jpg|png|ppm)$ $request_method; default ""; }
	map $fetched $counted { GET all; default ""; }
	limit_req_zone $counted zone=files:1m rate=%(rate)dr/m;
	server { listen %(address)s; root %(folder)s; autoindex on; location / { limit_req zone=files burst=4000; %(reading)s } }
}
"""


GANESHA = """NFS_CORE_PARAM { Protocols = %(version)d; NFS_Port = %(port)d; %(bind)s Enable_NLM = false; Enable_RQUOTA = false;%(plugins)s }
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = %(work)s; }
EXPORT { Export_Id = 1; Path = %(folder)s; Pseudo = /export; Access_Type = RO; Squash = No_Root_Squash; SecType = sys; Protocols = %(version)d; Transports = TCP;
	FSAL { Name = VFS; } }
"""
NULL_CALL = struct.pack(">11I", 0x80000000 | 40, 7, 0, 2, 100003, 4, 0, 0, 0, 0, 0)  # RFC 5531: call 7, of NFSv4
# In the mount namespace that `ip netns exec` makes; rpcbind ends with the server, which takes the shell's place.
WITH_RPCBIND = """mount -t tmpfs none /run && mkdir /run/rpcbind && { setpriv --pdeathsig KILL rpcbind -f & } || exit 1
until [ -S /run/rpcbind.sock ]; do sleep 0.1; done; exec "$@" """


class Cannot(Exception):
    """The machine lacks what this condition needs."""


def until(test: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not test():
        if time.monotonic() > end:
            raise Cannot(what)
        time.sleep(0.02)


def dies_with_parent(signal_number: int = signal.SIGKILL) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)


def run_tool(*words: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S)
    except FileNotFoundError as missing:
        raise Cannot("no program %s here" % words[0]) from missing
    if done.returncode:
        raise Cannot("%s: %s" % (" ".join(words[:3]), done.stderr.strip() or "exit status %d" % done.returncode))


def last_of(log: str) -> str:
    with open(log) as file:
        return file.read().strip()[-200:]


def need(*programs: str) -> None:
    for program in programs:
        if not (os.path.exists(program) if program.startswith("/dev/") else shutil.which(program)):
            raise Cannot("no %s here" % program if program.startswith("/dev/") else "no program %s here" % program)


def end(process: subprocess.Popen, first: int = signal.SIGTERM) -> None:
    process.send_signal(first)
    try:
        process.wait(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def unmount(path: str) -> None:
    """Lazily: whoever still waits for it gets an error when its server has gone."""
    if os.path.ismount(path) or path in mount_points():
        ctypes.CDLL(None, use_errno=True).umount2(path.encode(), 2)


def mount_points() -> List[str]:
    with open("/proc/mounts") as file:
        return [line.split()[1] for line in file]


# --- groups ---------------------------------------------------------------------------------------------------


def group_root(controller: str, version: int) -> str:
    """The group of this process, below which others may be made."""
    if os.geteuid() != 0:
        raise Cannot("groups are root's to make")
    mounted = [line.split() for line in open("/proc/mounts")]
    if version == 1:
        found = [m[1] for m in mounted if m[2] == "cgroup" and controller in m[3].split(",")]
    else:
        found = [m[1] for m in mounted if m[2] == "cgroup2" and controller in words_of(m[1] + "/cgroup.controllers")]
    if not found:
        raise Cannot("no cgroup v%d with the %s controller" % (version, controller))
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        if controller in controllers.split(",") if version == 1 else not controllers:
            inside = found[0] + path.rstrip("/")
            return inside if os.path.isdir(inside) else found[0]
    return found[0]


def words_of(path: str) -> List[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def write(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as refused:
        raise Cannot("%s: %s" % (path, refused.strerror)) from refused


@contextlib.contextmanager
def group(controller: str, version: int, children: int = 0) -> Iterator[List[str]]:
    """A group and as many below it, one in another: their folders, the outermost first."""
    above = group_root(controller, version)
    names = (PREFIX + str(os.getpid()) + ("-%d" % number if number else "") for number in itertools.count())
    path = next(path for path in (os.path.join(above, name) for name in names) if not os.path.exists(path))
    made: List[str] = []
    try:
        for _ in range(1 + children):
            if version == 2:
                write(os.path.join(os.path.dirname(path), "cgroup.subtree_control"), "+" + controller)
            os.mkdir(path)
            made.append(path)
            path = os.path.join(path, "inner")
        yield made
    finally:
        for folder in reversed(made):
            remove_group(folder)


def remove_group(path: str) -> None:
    """Ends who is still in it, the innermost group first: it is only gone when it is empty."""
    for name in os.listdir(path):
        if os.path.isdir(os.path.join(path, name)):
            remove_group(os.path.join(path, name))
    state = os.path.join(path, "freezer.state")
    if os.path.exists(state):
        write(state, "THAWED")  # what is frozen cannot end
    end_at = time.monotonic() + WAIT_S
    while os.path.isdir(path) and time.monotonic() < end_at:
        for pid in words_of(os.path.join(path, "cgroup.procs")):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(0.05)


def disk_of(path: str) -> str:
    """MAJOR:MINOR of the whole disk that a folder lies on; only disks can be throttled."""
    sources = [line.split()[0] for line in open("/proc/mounts") if line.split()[1] == path]
    device = os.stat(sources[-1]).st_rdev if sources and sources[-1].startswith("/dev/") else os.stat(path).st_dev  # btrfs has numbers of its own
    name = "%d:%d" % (os.major(device), os.minor(device))
    entry = "/sys/dev/block/" + name
    if not os.path.isdir(entry):
        raise Cannot("%s lies on no block device" % path)
    if os.path.exists(entry + "/partition"):
        with open(os.path.join(os.path.realpath(entry), "..", "dev")) as file:
            return file.read().strip()
    return name


# --- leftovers --------------------------------------------------------------------------------------------------


def gone(pid: str) -> bool:
    return not os.path.isdir("/proc/" + pid)


def sweep_leftovers(folder: Optional[str] = None) -> None:
    """Of banks that were killed: mounts, groups, namespaces, folders."""
    folder = folder or tempfile.gettempdir()
    stale = re.compile(re.escape(PREFIX) + r"real-(\d+)-")
    for point in reversed(mount_points()):
        found = stale.search(point)
        if found and gone(found.group(1)):
            unmount(point)
    for name in os.listdir(folder):
        found = stale.match(name)
        if found and gone(found.group(1)):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        for name in [n for n in folders if re.fullmatch(re.escape(PREFIX) + r"\d+(-\d+)?", n) and gone(n[len(PREFIX):].split("-")[0])]:
            remove_group(os.path.join(root, name))
            folders.remove(name)
    for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        if re.fullmatch(re.escape(PREFIX) + r"\d+", name) and gone(name[len(PREFIX):]):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


# --- the site of a run ------------------------------------------------------------------------------------------


class Site:
    """One run's surroundings.  `tools` is the folder of slowfs and hog, `data` gives the folder of a data set; `seed` is of what
    the plant draws."""

    def __init__(self, tools: str, data: Callable[[str], str], work: str, seed: str = ""):
        self.tools, self.data, self.work, self.seed = tools, data, work, seed
        self.stack = contextlib.ExitStack()
        self.enters: List[Callable[[], None]] = []
        self.beginnings: List[Callable[[], None]] = []
        self.mounts = 0
        self.server: Optional[subprocess.Popen] = None  # the last one

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_) -> None:
        self.stack.close()

    def enter(self) -> None:
        """What the program's process does before it begins."""
        dies_with_parent()
        for one in self.enters:
            one()

    def draw(self, what: str, low: float, high: float) -> float:
        """Even in the logarithm, and the same in each run of a case."""
        return low * (high / low) ** random.Random("%s:%s" % (self.seed, what)).random()

    def begins(self) -> None:
        """The run begins now: what is to happen in its midst counts from here."""
        for one in self.beginnings:
            one()

    # --- storage ----------------------------------------------------------------------------------------------

    def mount_point(self) -> str:
        self.mounts += 1
        path = os.path.join(self.work, "mount-%d" % self.mounts)
        os.makedirs(path, exist_ok=True)
        self.stack.callback(unmount, path)
        return path

    def await_mount(self, process: subprocess.Popen, path: str, log: str) -> None:
        def mounted() -> bool:
            if process.poll() is not None:
                raise Cannot("%s: %s" % (process.args[0], last_of(log)))
            return path in mount_points()

        until(mounted, "%s did not mount within %.0f s" % (process.args[0], WAIT_S))

    def store(self, folder: str, *limits: str) -> str:
        """slowfs over a folder; where it is mounted."""
        need("/dev/fuse")
        path = self.mount_point()
        log = path + ".log"
        with open(log, "w") as file:
            process = subprocess.Popen([os.path.join(self.tools, "slowfs"), folder, path, *limits], stderr=file, stdin=subprocess.DEVNULL)
        self.stack.callback(end, process)
        self.beginnings.append(lambda: process.send_signal(signal.SIGUSR1))
        self.await_mount(process, path, log)
        return path

    def served(self, *words: str) -> str:
        """A folder behind a FUSE program of others, which stays in the foreground and takes the mount point last."""
        need("/dev/fuse", words[0])
        path = self.mount_point()
        log = path + ".log"
        self.server = self.starts([*words, path], log)
        self.await_mount(self.server, path, log)
        return path

    def starts(self, words: List[str], log: str) -> subprocess.Popen:
        with open(log, "w") as file:
            process = subprocess.Popen(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, cwd=self.work,
                                       preexec_fn=lambda: dies_with_parent(signal.SIGTERM))
        self.stack.callback(end, process)
        return process

    def look_through(self, path: str) -> str:
        """Names and sizes come over, so that only what a run reads passes what is limited."""
        subprocess.run(["find", path, "-size", "+0"], stdout=subprocess.DEVNULL, timeout=READ_ALL_S, check=True)
        return path

    def loop_disk(self, kind: str, folder: str) -> str:
        """A copy of a folder on a file system of its own, on a loop device that goes with it; where it is mounted."""
        need("mkfs." + kind)
        image, path = os.path.join(self.work, "disk-%d" % self.mounts), self.mount_point()
        with open(image, "wb") as file:
            file.truncate(LOOP_BYTES)
        run_tool("mkfs." + kind, "-q", image)
        run_tool("mount", "-o", "loop", image, path)
        run_tool("cp", "-r", folder + "/.", path)
        run_tool("sync", "-f", path)
        return path

    def loop_on(self, folder: str, image_of: Callable[[str], str]) -> str:
        """A file system whose image lies in another folder, as image_of sees that; where it is mounted."""
        need("mkfs.ext4")
        holder = os.path.join(self.work, "images")
        os.makedirs(holder, exist_ok=True)
        image = os.path.join(holder, "image")
        with open(image, "wb") as file:
            file.truncate(LOOP_BYTES // 4)
        run_tool("mkfs.ext4", "-q", "-O", "^has_journal", "-d", folder, image)
        seen = os.path.join(image_of(holder), "image")
        path = self.mount_point()
        run_tool("mount", "-o", "loop,ro", seen, path)
        return path

    def webp(self, folder: str, each: int) -> str:
        """The first pictures of each class as WebP; their folder."""
        need("cwebp")
        result, jobs = os.path.join(self.work, "webp"), []
        for name in sorted(os.listdir(folder)):
            source, target = os.path.join(folder, name), os.path.join(result, name)
            if os.path.isdir(source):
                os.makedirs(target, exist_ok=True)
                jobs += [(os.path.join(source, file),
                          os.path.join(target, os.path.splitext(file)[0] + ".webp")) for file in sorted(os.listdir(source))[:each]]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lambda job: run_tool("cwebp", "-quiet", "-m", "0", job[0], "-o", job[1]), jobs))
        return result

    def squashed(self, folder: str) -> str:
        """A folder with its image as squashfs, one block to a file and nothing compressed."""
        need("mksquashfs")
        holder = os.path.join(self.work, "squashed")
        os.makedirs(holder, exist_ok=True)
        run_tool("mksquashfs", folder, os.path.join(holder, "image"), "-quiet", "-no-progress", "-noappend", "-no-fragments", "-noD", "-noI", "-noF")
        return holder

    def overlay(self, folder: str) -> str:
        """The kernel's overlay of a folder and an empty one."""
        path, empty = self.mount_point(), os.path.join(self.work, "empty")
        os.makedirs(empty, exist_ok=True)
        run_tool("mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s:%s" % (empty, folder), path)
        return path

    # --- the far end of a link --------------------------------------------------------------------------------

    def far_end(self, bytes_per_s: Optional[float], shaper: str) -> Tuple[str, ...]:
        """A namespace behind a veth pair, whose end is shaped; the words that run a program in it."""
        need("ip", "tc")
        space = PREFIX + str(os.getpid())
        near, far = "mlb%da" % (os.getpid() % 1000000), "mlb%db" % (os.getpid() % 1000000)
        run_tool("ip", "netns", "add", space)
        self.stack.callback(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        run_tool("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", space)
        self.stack.callback(subprocess.run, ["ip", "link", "del", near], capture_output=True)
        run_tool("ip", "addr", "add", NEAR_END + "/30", "dev", near)
        run_tool("ip", "link", "set", near, "up")
        inside = ("ip", "netns", "exec", space)
        run_tool(*inside, "ip", "addr", "add", FAR_END + "/30", "dev", far)
        run_tool(*inside, "ip", "link", "set", far, "up")
        if bytes_per_s and shaper == "tbf":
            run_tool(*inside, "tc", "qdisc", "add", "dev", far, "root", "tbf", "rate", "%dbit" % (8 * bytes_per_s),
                     "burst", str(LINK_BURST), "latency", LINK_QUEUE)
        elif bytes_per_s:
            run_tool(*inside, "tc", "qdisc", "add", "dev", far, "root", "handle", "1:", "htb", "default", "1")
            run_tool(*inside, "tc", "class", "add", "dev", far, "parent", "1:", "classid", "1:1", "htb", "rate", "%dbit" % (8 * bytes_per_s),
                     "burst", str(LINK_BURST), "cburst", str(LINK_BURST))
        return inside

    def link(self, folder: str, bytes_per_s: Optional[float], delay_s: float = 0, options: Tuple[str, ...] = ()) -> str:
        """sshfs over such a link; where it is mounted."""
        need("sshfs", SFTP_SERVER)
        inside = self.far_end(bytes_per_s, "tbf")
        server = subprocess.Popen([*inside, "python3", os.path.join(HERE, "sftp_link.py"), FAR_END, str(LINK_PORT), str(delay_s), SFTP_SERVER])
        self.stack.callback(end, server)
        until(lambda: listens(LINK_PORT), "nobody listens at the far end of the link")
        return self.look_through(self.served("sshfs", "-f", "-o", "directport=%d,ro,%s" % (LINK_PORT, LINK_CACHED), *options, FAR_END + ":" + folder))

    def nginx(self, folder: str, bytes_per_s: Optional[float] = None, requests_per_s: float = IDLE_REQUESTS, threads: int = 0) -> str:
        """nginx at the far end, as one process that reads with so many threads (0: itself); its address."""
        need("/usr/sbin/nginx")
        inside = self.far_end(bytes_per_s, "htb")
        settings = os.path.join(self.work, "nginx.conf")
        with open(settings, "w") as file:
            file.write(NGINX % {"work": self.work, "address": "%s:%d" % (FAR_END, HTTP_PORT), "folder": folder,
                                "threads": threads or 1, "reading": "aio threads=readers;" if threads else "",
                                "rate": max(1, round(60 * requests_per_s))})
        self.server = self.starts([*inside, "/usr/sbin/nginx", "-c", settings, "-e", "stderr"], settings + ".log")
        until(lambda: listens(HTTP_PORT), "nobody listens at the far end of the link")
        return "http://%s:%d" % (FAR_END, HTTP_PORT)

    def nfs(self, folder: str, bytes_per_s: Optional[float] = None, how: str = "", seconds: float = 0, version: int = 4) -> str:
        """nfs-ganesha at the far end, behind a narrow link, or far away, or serving calls in turn (rpc_link.py); its address."""
        if version == 3:
            need("rpcbind", "setpriv")
        need("ganesha.nfsd")
        inside = self.far_end(bytes_per_s, "tbf")
        run_tool(*inside, "ip", "link", "set", "lo", "up")
        settings, plugins = os.path.join(self.work, "ganesha.conf"), glob.glob("/usr/lib*/*/ganesha/libfsalvfs.so")
        port = NFS_BEHIND if how else NFS_PORT
        with open(settings, "w") as file:
            file.write(GANESHA % {"port": port, "version": version, "bind": "Bind_addr = %s;" % FAR_END if version == 4 else "",
                                  "work": self.work, "folder": os.path.realpath(folder),
                                  "plugins": " Plugins_Dir = %s;" % os.path.dirname(plugins[0]) if plugins else ""})
        before = ("sh", "-c", WITH_RPCBIND, "sh") if version == 3 else ()
        self.server = self.starts([*inside, *before, "ganesha.nfsd", "-F", "-f", settings, "-L", settings + ".log", "-p", settings + ".pid"], settings + ".out")
        until(lambda: answers_nfs(port), "nfs-ganesha does not answer at the far end of the link")
        if how:
            self.starts([*inside, sys.executable, os.path.join(HERE, "rpc_link.py"), FAR_END, str(NFS_PORT), str(port), how, str(seconds)], settings + ".link")
            until(lambda: answers_nfs(NFS_PORT), "nobody listens at the far end of the link")
        return "nfs://%s%s" % (FAR_END, "/export" if version == 4 else os.path.realpath(folder))

    def kernel_nfs(self, address: str) -> str:
        """The same mounted by the kernel; where."""
        if "nfs4" not in words_of("/proc/filesystems"):
            raise Cannot("this kernel has no NFS client (nfs4 in /proc/filesystems)")
        path = self.mount_point()
        run_tool("mount", "-t", "nfs4", "-o", "ro,vers=4.1,port=%d" % NFS_PORT, FAR_END + ":" + address[len("nfs://" + FAR_END):], path)
        return path

    def rclone(self, remote: str, *options: str) -> str:
        """A remote mounted with rclone; where."""
        need("rclone")
        return self.look_through(self.served("rclone", "mount", *RCLONE, "--attr-timeout", "1h", *options, remote))

    def read_all(self, path: str) -> None:
        """Reads every file once, as the job would: what it leaves in the page cache is charged to the job's group."""
        subprocess.run(["find", path, "-type", "f", "-exec", "cat", "{}", "+"], stdout=subprocess.DEVNULL, preexec_fn=self.enter,
                       timeout=READ_ALL_S, check=True)

    # --- groups -----------------------------------------------------------------------------------------------

    def join(self, folder: str) -> None:
        self.enters.append(lambda: write(os.path.join(folder, "cgroup.procs"), str(os.getpid())))

    def cpu_quota(self, cores: float, version: int, levels_above: int, period_us: int = PERIOD_US) -> None:
        """Of a group so many levels above the job's own."""
        folders = self.stack.enter_context(group("cpu", version, levels_above))
        quota = quota_us(cores, period_us)
        if version == 1:
            write(os.path.join(folders[0], "cpu.cfs_period_us"), str(period_us))
            write(os.path.join(folders[0], "cpu.cfs_quota_us"), str(quota))
        else:
            write(os.path.join(folders[0], "cpu.max"), "%d %d" % (quota, period_us))
        self.join(folders[-1])

    def cpu_quota_changes(self, cores: float, at_s: float, before: float = 0) -> None:
        """Of the job's own group, some time after the run began; before it there is another one, or none (0)."""
        folder = self.stack.enter_context(group("cpu", 1))[0]
        quota = os.path.join(folder, "cpu.cfs_quota_us")
        write(quota, str(quota_us(before, PERIOD_US) if before else -1))
        self.join(folder)
        self.once(lambda: write(quota, str(quota_us(cores, PERIOD_US))), at_s)

    def cpu_shares(self, of_others: float) -> str:
        """A group for the job and one beside it with so many times its shares; the folder of that."""
        above, own = self.stack.enter_context(group("cpu", 1, 1))
        others = os.path.join(above, "others")
        os.mkdir(others)
        write(os.path.join(others, "cpu.shares"), "%d" % (of_others * int(words_of(os.path.join(own, "cpu.shares"))[0])))
        self.join(own)
        return others

    def core_set(self, count: int) -> None:
        """A cpuset of so many cores."""
        folder = self.stack.enter_context(group("cpuset", 1))[0]
        for key in ("cpuset.mems", "cpuset.cpus"):
            write(os.path.join(folder, key), words_of(os.path.join(os.path.dirname(folder), key))[0])
        write(os.path.join(folder, "cpuset.cpus"), ",".join(map(str, sorted(os.sched_getaffinity(0))[:count])))
        self.join(folder)

    def freezes(self, at_s: float, for_s: float, every_s: float = 0) -> None:
        """The server that was started last stands still for a time, from so many seconds after the run began; once, or every so often."""
        folder = self.stack.enter_context(group("freezer", 1))[0]
        write(os.path.join(folder, "cgroup.procs"), str(self.server.pid))
        self.from_time_to_time(lambda still: write(os.path.join(folder, "freezer.state"), "FROZEN" if still else "THAWED"), at_s, for_s, every_s)

    def job_stops(self, at_s: float, for_s: float, how: str) -> None:
        """The job stands still once: all its processes are sent SIGSTOP (and SIGCONT), or its group is frozen."""
        if how == "freezer":
            folder = self.stack.enter_context(group("freezer", 1))[0]
            self.join(folder)
            make = lambda still: write(os.path.join(folder, "freezer.state"), "FROZEN" if still else "THAWED")
        else:
            path = os.path.join(self.work, "job.pid")
            self.enters.append(lambda: write(path, str(os.getpid())))
            make = lambda still: signal_family(int(words_of(path)[0]), signal.SIGSTOP if still else signal.SIGCONT)
        self.from_time_to_time(make, at_s, for_s, 0)

    def once(self, make: Callable[[], None], at_s: float) -> None:
        self.from_time_to_time(lambda first: make() if first else None, at_s, 0, 0)

    def from_time_to_time(self, make: Callable[[bool], None], at_s: float, for_s: float, every_s: float) -> None:
        closed = threading.Event()

        def rounds() -> None:
            due = time.monotonic() + at_s
            while not closed.wait(due - time.monotonic()):
                make(True)
                closed.wait(due + for_s - time.monotonic())
                make(False)
                if not every_s:
                    return
                due += every_s

        thread = threading.Thread(target=rounds, daemon=True)

        def stop() -> None:
            closed.set()
            if thread.is_alive():
                thread.join()

        self.stack.callback(stop)
        self.beginnings.append(thread.start)

    def link_fails(self, at_s: float, for_s: float) -> None:
        """The link's near end is down for a time."""
        near = "mlb%da" % (os.getpid() % 1000000)
        self.from_time_to_time(lambda down: run_tool("ip", "link", "set", near, "down" if down else "up"), at_s, for_s, 0)

    def memory_limit(self, limit: int) -> str:
        for version, key in ((1, "memory.limit_in_bytes"), (2, "memory.max")):
            with contextlib.suppress(Cannot):
                folder = self.stack.enter_context(group("memory", version))[0]
                write(os.path.join(folder, key), str(limit))
                self.join(folder)
                return folder
        raise Cannot("no cgroup with the memory controller")

    def block_limit(self, folder: str, kind: str, rate: float, version: int) -> str:
        """Reads of the folder's disk, by all in the group: `kind` is bps or iops."""
        disk = disk_of(folder)
        if version == 1:
            path = self.stack.enter_context(group("blkio", 1))[0]
            write(os.path.join(path, SECTOR_GROUPS[kind]), "%s %d" % (disk, rate))
        else:
            path = self.stack.enter_context(group("io", 2))[0]
            write(os.path.join(path, "io.max"), "%s r%s=%d" % (disk, kind, rate))
        self.join(path)
        return path

    def cores(self, count: int) -> None:
        """The job has the first ones only."""
        self.enters.append(lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count]))

    # --- hogs -------------------------------------------------------------------------------------------------

    def hogs(self, count: int, *words: str, nice: int = 0, inside: str = "", core: Optional[int] = None) -> None:
        """As many processes; on one core alone where it is given (-1: the last one)."""

        def prepare() -> None:
            if inside:
                write(os.path.join(inside, "cgroup.procs"), str(os.getpid()))
            os.nice(nice)  # beside that of the program, whatever that has
            if core is not None:
                os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[core]])

        for _ in range(count):
            process = subprocess.Popen([os.path.join(self.tools, "hog"), *words], preexec_fn=prepare)
            self.stack.callback(end, process, signal.SIGKILL)

    def runs(self, *words: str, inside: str = "") -> None:
        """Another program beside the job, until the site is closed."""
        need(words[0])
        inside = inside and os.path.join(inside, "cgroup.procs")

        def prepare() -> None:
            dies_with_parent(signal.SIGTERM)
            if inside:
                write(inside, str(os.getpid()))

        log = os.path.join(self.work, "beside.log")
        with open(log, "w") as file:
            process = subprocess.Popen(words, preexec_fn=prepare, cwd=self.work, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.stack.callback(end, process)
        time.sleep(STARTS_S)
        if process.poll() is not None:
            raise Cannot("%s: %s" % (words[0], last_of(log)))


def quota_us(cores: float, period_us: int) -> int:
    return max(1000, int(cores * period_us))


def signal_family(pid: int, number: int) -> None:
    """A process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    for task in glob.glob("/proc/%d/task/*/children" % pid):
        for child in words_of(task):
            signal_family(int(child), number)


def answers_nfs(port: int) -> bool:
    """A call with nothing to do comes back with its own number."""
    try:
        with socket.create_connection((FAR_END, port), timeout=1) as server:
            server.settimeout(1)
            server.sendall(NULL_CALL)
            return server.recv(8)[4:] == NULL_CALL[4:8]
    except OSError:
        return False


def listens(port: int) -> bool:
    try:
        socket.create_connection((FAR_END, port), timeout=1).close()
        return True
    except OSError:
        return False


class Starter:
    """Tells a site that its run begins when the result's file of points is there."""

    def __init__(self, site: Site, points: str):
        self.site, self.points, self.ended = site, points, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        while not self.ended.wait(0.02):
            if os.path.exists(self.points):
                self.site.begins()
                return

    def __enter__(self) -> None:
        if self.site.beginnings:
            self.thread.start()

    def __exit__(self, *_) -> None:
        self.ended.set()
