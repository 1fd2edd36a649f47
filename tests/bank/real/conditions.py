"""Planted conditions from outside the program: mounts, groups, links, hogs.  A Site is what one run of the program
finds; everything that was made for it goes when it is closed, whatever happened.

What the machine lacks is a Cannot with the reason.  What a killed bank left behind is taken away by the next one
(sweep_leftovers): all of it bears the number of a process."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from typing import Callable, Iterator, List, Optional

PREFIX = "mlbench-bank-"
PERIOD_US = 100000
WAIT_S = 10.0  # for a mount, or for a group to be empty
READ_ALL_S = 60.0
PR_SET_PDEATHSIG = 1
SFTP_SERVER = "/usr/lib/openssh/sftp-server"
LINK_PORT = 2022
NEAR_END, FAR_END = "198.18.77.1", "198.18.77.2"  # of the range for benchmarks (RFC 2544)
LINK_BURST = 16384       # bytes that pass a link at once: a few packets
LINK_QUEUE = "200ms"     # what waits longer is dropped, as at a switch
LINK_CACHED = "dcache_timeout=3600,entry_timeout=3600,attr_timeout=3600"  # names do not change: only open and read cross the link
SECTOR_GROUPS = {"bps": "blkio.throttle.read_bps_device", "iops": "blkio.throttle.read_iops_device"}
HERE = os.path.dirname(os.path.abspath(__file__))


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
    path = os.path.join(group_root(controller, version), PREFIX + str(os.getpid()))
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
    device = os.stat(path).st_dev
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
        for name in [n for n in folders if re.fullmatch(re.escape(PREFIX) + r"\d+", n) and gone(n[len(PREFIX):])]:
            remove_group(os.path.join(root, name))
            folders.remove(name)
    for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        if re.fullmatch(re.escape(PREFIX) + r"\d+", name) and gone(name[len(PREFIX):]):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


# --- the site of a run ------------------------------------------------------------------------------------------


class Site:
    """One run's surroundings.  `tools` is the folder of slowfs and hog, `data` gives the folder of a data set."""

    def __init__(self, tools: str, data: Callable[[str], str], work: str):
        self.tools, self.data, self.work = tools, data, work
        self.stack = contextlib.ExitStack()
        self.enters: List[Callable[[], None]] = []
        self.stores: List[subprocess.Popen] = []
        self.mounts = 0

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_) -> None:
        self.stack.close()

    def enter(self) -> None:
        """What the program's process does before it begins."""
        dies_with_parent()
        for one in self.enters:
            one()

    def begins(self) -> None:
        """The run begins now: what is to happen in its midst counts from here."""
        for process in self.stores:
            process.send_signal(signal.SIGUSR1)

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
                with open(log) as file:
                    raise Cannot("%s: %s" % (process.args[0], file.read().strip()[-200:]))
            return path in mount_points()

        until(mounted, "%s did not mount within %.0f s" % (process.args[0], WAIT_S))

    def store(self, folder: str, *limits: str) -> str:
        """slowfs over a folder; where it is mounted."""
        if not os.path.exists("/dev/fuse"):
            raise Cannot("no /dev/fuse here")
        path = self.mount_point()
        log = path + ".log"
        with open(log, "w") as file:
            process = subprocess.Popen([os.path.join(self.tools, "slowfs"), folder, path, *limits], stderr=file, stdin=subprocess.DEVNULL)
        self.stack.callback(end, process)
        self.stores.append(process)
        self.await_mount(process, path, log)
        return path

    def link(self, folder: str, bytes_per_s: Optional[float], delay_s: float = 0) -> str:
        """sshfs over a veth pair into a namespace whose end is shaped; where it is mounted."""
        for tool in ("ip", "tc", "sshfs", SFTP_SERVER):
            if not shutil.which(tool):
                raise Cannot("no program %s here" % tool)
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
        if bytes_per_s:
            run_tool(*inside, "tc", "qdisc", "add", "dev", far, "root", "tbf", "rate", "%dbit" % (8 * bytes_per_s),
                     "burst", str(LINK_BURST), "latency", LINK_QUEUE)
        server = subprocess.Popen([*inside, "python3", os.path.join(HERE, "sftp_link.py"), FAR_END, str(LINK_PORT), str(delay_s), SFTP_SERVER])
        self.stack.callback(end, server)
        path = self.mount_point()
        log = path + ".log"
        until(listens, "nobody listens at the far end of the link")
        with open(log, "w") as file:
            process = subprocess.Popen(["sshfs", "-f", "-o", "directport=%d,ro,%s" % (LINK_PORT, LINK_CACHED), FAR_END + ":" + folder, path],
                                       stderr=file, stdin=subprocess.DEVNULL, preexec_fn=lambda: dies_with_parent(signal.SIGTERM))
        self.stack.callback(end, process)
        self.await_mount(process, path, log)
        subprocess.run(["find", path, "-size", "+0"], stdout=subprocess.DEVNULL, timeout=READ_ALL_S, check=True)  # names and sizes come over
        return path

    def read_all(self, path: str) -> None:
        """Reads every file once, as the job would: what it leaves in the page cache is charged to the job's group."""
        subprocess.run(["find", path, "-type", "f", "-exec", "cat", "{}", "+"], stdout=subprocess.DEVNULL, preexec_fn=self.enter,
                       timeout=READ_ALL_S, check=True)

    # --- groups -----------------------------------------------------------------------------------------------

    def join(self, folder: str) -> None:
        self.enters.append(lambda: write(os.path.join(folder, "cgroup.procs"), str(os.getpid())))

    def cpu_quota(self, cores: float, version: int, of_parent: bool) -> None:
        folders = self.stack.enter_context(group("cpu", version, 1 if of_parent else 0))
        quota = max(1000, int(cores * PERIOD_US))
        if version == 1:
            write(os.path.join(folders[0], "cpu.cfs_period_us"), str(PERIOD_US))
            write(os.path.join(folders[0], "cpu.cfs_quota_us"), str(quota))
        else:
            write(os.path.join(folders[0], "cpu.max"), "%d %d" % (quota, PERIOD_US))
        self.join(folders[-1])

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
        self.enters.append(lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count]))

    # --- hogs -------------------------------------------------------------------------------------------------

    def hogs(self, count: int, *words: str, nice: int = 0, inside: str = "") -> None:
        def prepare() -> None:
            if inside:
                write(os.path.join(inside, "cgroup.procs"), str(os.getpid()))
            os.nice(nice)  # above that of the program, whatever that has

        for _ in range(count):
            process = subprocess.Popen([os.path.join(self.tools, "hog"), *words], preexec_fn=prepare)
            self.stack.callback(end, process, signal.SIGKILL)


def listens() -> bool:
    try:
        socket.create_connection((FAR_END, LINK_PORT), timeout=1).close()
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
        if self.site.stores:
            self.thread.start()

    def __exit__(self, *_) -> None:
        self.ended.set()
