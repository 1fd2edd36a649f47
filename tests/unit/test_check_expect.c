/* The inventory on fake roots: what it tells of a large server, what it says of a node that hides everything, and what
 * hostile files make of it.  The check is run as the program runs it: by a plan, with the sink's lines gathered. */
#include "fake_root.h"
#include "nvml_fixture.h"

#include "harness/base/array.h"
#include "harness/checks/check.h"
#include "harness/checks/sink.h"
#include "harness/measure/dmi.h"
#include "harness/measure/node_users.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* --- running the check ------------------------------------------------------------------------ */

static struct gather gathered;
static char folder[128];
static uint64_t deadline_ns;

/* Runs a check of these lines; returns its code. */
static int ask_with(const char *lines, const atomic_bool *stop)
{
	char text[16384];
	char bytes[4096];
	struct accept_plan plan;
	struct error err;
	struct check_sink sink = {.fd = memfd_create("sink", 0)};
	assert_true(sink.fd >= 0);
	const int size =
		snprintf(text, sizeof text, "[plan]\nname = t\n[it]\nkind = expect\n%s", lines);
	assert_true(size < (int)sizeof text);
	const int wrong = plan_read_text(&plan, "test", text, (size_t)size, &err);
	if (wrong)
		print_message("%s\n", err.text);
	assert_int_equal(wrong, 0);
	const struct check_context context = {.plan = &plan,
		.check = &plan.checks[0],
		.folder = folder,
		.root = fake_root,
		.deadline_ns = deadline_ns,
		.repeats = 1,
		.stop = stop,
		.sink = &sink};
	struct check_cost cost;
	check_expect.estimate(&context, &cost);
	assert_true(cost.seconds > 0 && cost.seconds < 10);
	const int code = check_expect.run(&context, &err);
	gather_close(&gathered);
	assert_int_equal(gather_open(&gathered, "it", "expect"), 0);
	assert_int_equal(lseek(sink.fd, 0, SEEK_SET), 0);
	for (ssize_t got; (got = read(sink.fd, bytes, sizeof bytes)) > 0;)
		gather_bytes(&gathered, bytes, (size_t)got);
	assert_false(gathered.failed || gathered.dropped);
	(void)close(sink.fd);
	plan_release(&plan);
	return code;
}

static void ask(const char *lines)
{
	assert_int_equal(ask_with(lines, NULL), 0);
}

static const json_t *entry_of(const char *list, const char *figure, const char *place)
{
	size_t i;
	const json_t *entry;
	json_array_foreach(json_object_get(gathered.check, list), i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "figure")), figure) == 0 &&
			strcmp(json_string_value(json_object_get(entry, "place")), place) == 0)
			return entry;
	}
	return NULL;
}

static const json_t *fact_of(const char *figure, const char *place)
{
	const json_t *entry = entry_of("facts", figure, place);
	if (!entry) {
		char *text = json_dumps(gathered.check, JSON_INDENT(1));
		print_message("%s\n", text);
		free(text);
		fail_msg("no fact '%s' at '%s'", figure, place);
	}
	return json_object_get(entry, "value");
}

static const char *text_at(const char *figure, const char *place)
{
	const char *text = json_string_value(fact_of(figure, place));
	assert_non_null(text);
	return text;
}

static double number_at(const char *figure, const char *place)
{
	const json_t *value = fact_of(figure, place);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

/* Why it is missing; fails where it is not. */
static const char *why_of(const char *figure, const char *place)
{
	const json_t *entry = entry_of("missing", figure, place);
	if (!entry)
		fail_msg("'%s' at '%s' is not missing", figure, place);
	return json_string_value(json_object_get(entry, "why"));
}

/* Whether some note has the words. */
static bool noted(const char *words)
{
	size_t i;
	const json_t *note;
	json_array_foreach(json_object_get(gathered.check, "notes"), i, note)
	{
		if (strstr(json_string_value(note), words))
			return true;
	}
	return false;
}

/* What is told of a figure besides its value. */
static const char *event_of(const char *figure, const char *place)
{
	const json_t *entry = entry_of("events", figure, place);
	if (!entry)
		fail_msg("no event of '%s' at '%s'", figure, place);
	return json_string_value(json_object_get(entry, "text"));
}

static int set_up(void **state)
{
	(void)state;
	fake_root_make();
	(void)snprintf(folder, sizeof folder, "%s", fake_root);
	fake_nvml_script("devices=0 deny=count:9");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gather_close(&gathered);
	fake_root_remove();
	return 0;
}

/* --- a server of two sockets ------------------------------------------------------------------ */

/* A word of 16 bits, the least byte first. */
static void put_word(unsigned char *at, unsigned value)
{
	at[0] = (unsigned char)value;
	at[1] = (unsigned char)(value >> 8);
}

/* Appends a memory device with these strings (slot, bank, maker, serial, part); returns the table's new size. */
static size_t put_module(unsigned char *table, size_t size, unsigned mib, unsigned speed,
	const char *slot, const char *bank)
{
	enum { LENGTH = 0x5c };
	unsigned char *s = table + size;
	const char *const strings[] = {slot, bank, "Maker", "S123", "PART-1"};
	memset(s, 0, LENGTH);
	s[0] = 17;
	s[1] = LENGTH;
	put_word(s + 0x08, 80);
	put_word(s + 0x0a, 64);
	put_word(s + 0x0c, mib >= 0x7fff ? 0x7fff : mib);
	s[0x10] = 1;
	s[0x11] = 2;
	s[0x12] = 0x22; /* DDR5 */
	put_word(s + 0x15, 5600);
	s[0x17] = 3;
	s[0x18] = 4;
	s[0x1a] = 5;
	put_word(s + 0x1c, mib & 0xffff);
	put_word(s + 0x1e, mib >> 16);
	put_word(s + 0x20, speed);
	size += LENGTH;
	for (size_t i = 0; i < COUNT(strings); i++) {
		memcpy(table + size, strings[i], strlen(strings[i]) + 1);
		size += strlen(strings[i]) + 1;
	}
	table[size++] = 0;
	return size;
}

/* A small structure first, three modules, an empty slot, and the end. */
static size_t put_table(unsigned char *table)
{
	static const unsigned char first[] = {0, 5, 0, 0, 1, 'B', 'I', 'O', 'S', 0, 0};
	static const unsigned char last[] = {127, 4, 0, 0, 0, 0};
	memcpy(table, first, sizeof first);
	size_t size = sizeof first;
	size = put_module(table, size, 65536, 4800, "DIMM_A1", "BANK 0");
	size = put_module(table, size, 16384, 5600, "DIMM 0", "P0 CHANNEL B");
	size = put_module(table, size, 16384, 5600, "DIMM 0", "P0 CHANNEL C");
	size = put_module(table, size, 0, 0, "DIMM_D1", "BANK 3");
	memcpy(table + size, last, sizeof last);
	return size + sizeof last;
}

static void fake_cpu(unsigned cpu, unsigned socket, unsigned sibling, const char *governor)
{
	char path[128];
	char text[32];
#define CPU_FILE(file, ...)                                                                       \
	do {                                                                                      \
		(void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, file); \
		(void)snprintf(text, sizeof text, __VA_ARGS__);                                   \
		fake_file(path, text);                                                            \
	} while (0)
	CPU_FILE("topology/physical_package_id", "%u\n", socket);
	CPU_FILE("topology/thread_siblings_list", "%u,%u\n", sibling, sibling + 4);
	CPU_FILE("cpufreq/scaling_governor", "%s\n", governor);
	CPU_FILE("cpufreq/cpuinfo_max_freq", "3700000\n");
	CPU_FILE("cpufreq/scaling_max_freq", cpu == 3 ? "1500000\n" : "3700000\n");
	CPU_FILE("microcode/version", "0xa101148\n");
	CPU_FILE("thermal_throttle/core_throttle_count", "%u\n", cpu);
	if (cpu > 0)
		CPU_FILE("online", cpu == 7 ? "0\n" : "1\n");
}

static void fake_processors(void)
{
	for (unsigned cpu = 0; cpu < 8; cpu++)
		fake_cpu(cpu, cpu % 4 / 2, cpu % 4,
			cpu == 5 || cpu == 6 ? "powersave" : "performance");
	fake_file("/sys/devices/system/cpu/smt/control", "on\n");
	fake_file("/sys/devices/system/cpu/cpufreq/boost", "1\n");
	fake_file("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n");
	fake_file("/sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode\n");
	fake_file("/proc/cpuinfo",
		"processor\t: 0\nmodel name\t: Big CPU 9654\nflags\t\t: fpu avx2 avx512f\n");
}

static void processors(void **state)
{
	(void)state;
	fake_processors();
	ask("cpu.model = is Big*\ncpu.sockets = = 2\ncpu.cores = >= 4\ncpu.threads = >= 8\n"
	    "cpu.offline = = 0\ncpu.smt = is off\ncpu.flags = has avx512f\ncpu.virtual = is no\n"
	    "cpu.governor = is performance\ncpu.turbo = is on\ncpu.mhz_max = >= 3.7 GHz\n"
	    "cpu.mhz_limit = >= 3.7 GHz\ncpu.microcode = known\ncpu.mitigation = is not Vuln*\n"
	    "cpu.throttle_count = <= 0\n");
	assert_string_equal(text_at("cpu.model", ""), "Big CPU 9654");
	assert_true(number_at("cpu.sockets", "") == 2);
	assert_true(number_at("cpu.cores", "") == 4);
	assert_true(number_at("cpu.threads", "") == 7);
	assert_true(number_at("cpu.offline", "") == 1);
	assert_string_equal(text_at("cpu.smt", ""), "on");
	assert_string_equal(text_at("cpu.virtual", ""), "no");
	assert_string_equal(text_at("cpu.turbo", ""), "on");
	/* CPUs that differ are named; those that agree are one value. */
	assert_string_equal(text_at("cpu.governor", "CPUs 5-6"), "powersave");
	assert_string_equal(text_at("cpu.governor", "CPUs 0-4"), "performance");
	assert_true(number_at("cpu.mhz_max", "") == 3700);
	assert_true(number_at("cpu.mhz_limit", "CPUs 3") == 1500);
	assert_string_equal(text_at("cpu.microcode", ""), "0xa101148");
	assert_string_equal(text_at("cpu.mitigation", "mds"), "Vulnerable: no microcode");
	assert_string_equal(text_at("cpu.mitigation", "spectre_v2"), "Mitigation: Retpolines");
	assert_true(number_at("cpu.throttle_count", "") == 28);
}

static void memory_and_numa(void **state)
{
	(void)state;
	unsigned char table[2048];
	fake_bytes("/sys/firmware/dmi/tables/DMI", table, put_table(table));
	fake_file("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable: 900 kB\nSwapTotal: 50 kB\n"
				   "SwapFree: 20 kB\nHugePages_Total: 8\nHugePages_Free: 7\n"
				   "Hugepagesize: 2048 kB\n");
	fake_file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	fake_file("/sys/devices/system/node/node0/distance", "10 21\n");
	fake_file("/sys/devices/system/node/node1/distance", "32 10\n");
	fake_file("/sys/devices/system/node/node0/meminfo", "\nNode 0 MemTotal:  600 kB\n");
	fake_file("/sys/devices/system/node/node1/meminfo", "Node 1 Nothing: 1 kB\n");
	ask("memory.total = known\nmemory.available = known\nmemory.swap = known\n"
	    "memory.swap_used = known\nmemory.huge_pages = known\nmemory.huge_pages_free = known\n"
	    "memory.huge_page_size = known\nmemory.transparent = known\nmemory.numa = known\n"
	    "numa.nodes = known\nnuma.distance = known\nnuma.distances = known\n"
	    "memory.modules = known\nmemory.module_size = known\nmemory.speed = known\n"
	    "memory.rated = known\nmemory.type = known\nmemory.part = known\nmemory.ecc = known\n");
	assert_true(number_at("memory.total", "") == 1024000);
	assert_true(number_at("memory.swap_used", "") == 30 * 1024);
	assert_true(number_at("memory.huge_pages_free", "") == 7);
	assert_true(number_at("memory.huge_page_size", "") == 2 << 20);
	assert_string_equal(text_at("memory.transparent", ""), "madvise");
	assert_true(number_at("numa.nodes", "") == 2);
	assert_true(number_at("numa.distance", "NUMA node 1") == 32);
	assert_string_equal(text_at("numa.distances", "NUMA node 0"), "10 21");
	assert_true(number_at("memory.numa", "NUMA node 0") == 600 * 1024);
	assert_non_null(strstr(why_of("memory.numa", "NUMA node 1"), "MemTotal"));
	assert_true(number_at("memory.modules", "") == 3);
	assert_true(number_at("memory.module_size", "DIMM_A1") == 64.0 * (1 << 30));
	assert_true(number_at("memory.module_size", "DIMM 0") == 16.0 * (1 << 30));
	/* Slots that share a name are told by their bank. */
	assert_true(number_at("memory.speed", "DIMM 0 P0 CHANNEL C") == 5600);
	assert_true(number_at("memory.speed", "DIMM_A1") == 4800);
	assert_true(number_at("memory.rated", "DIMM_A1") == 5600);
	assert_string_equal(text_at("memory.type", "DIMM_A1"), "DDR5");
	assert_string_equal(text_at("memory.part", "DIMM_A1"), "Maker PART-1");
	assert_string_equal(text_at("memory.ecc", "DIMM_A1"), "yes");
	assert_null(entry_of("facts", "memory.speed", "DIMM_D1"));
}

static void the_system(void **state)
{
	(void)state;
	fake_file("/proc/sys/kernel/osrelease", "6.1.0-test\n");
	fake_file("/proc/cmdline", "ro quiet mitigations=off\n");
	fake_file("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
	fake_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
	fake_file("/sys/class/dmi/id/bios_version", "2.1\n");
	fake_file("/sys/class/dmi/id/product_serial", "  ABC123  \n");
	fake_file("/sys/class/dmi/id/board_serial", "\n");
	fake_file("/sys/class/dmi/id/board_name", "To Be Filled By O.E.M.\n");
	fake_file("/proc/sys/vm/swappiness", "60\n");
	fake_file("/proc/sys/kernel/numa_balancing", "many\n");
	fake_file("/sys/module/nvidia/refcnt", "1\n");
	fake_file("/proc/self/limits",
		"Limit                     Soft Limit           Hard Limit\n"
		"Max processes             1024                 2048\n"
		"Max open files            65536                65536\n"
		"Max locked memory         unlimited            unlimited\n");
	ask("kernel.release = is 6.1*\nkernel.command_line = has mitigations=off\nos.release = known\n"
	    "clock.source = is tsc\nbios.version = is 2.1\nnode.serial = known\n"
	    "node.board_serial = known\nnode.board = known\nnode.product = known\nsysctl.vm.swappiness = <= 1\n"
	    "sysctl.kernel.numa_balancing = = 0\nsysctl.fs.file-max = known\n"
	    "module.nvidia = is loaded\nmodule.gdrdrv = is loaded\nlimit.memlock = >= 1 GiB\n"
	    "limit.open_files = known\nlimit.processes = known\nclock.synchronised = is yes\n"
	    "clock.error = <= 1 s\n");
	assert_string_equal(text_at("kernel.release", ""), "6.1.0-test");
	assert_string_equal(text_at("kernel.command_line", ""), "ro quiet mitigations=off");
	assert_string_equal(text_at("os.release", ""), "Debian GNU/Linux 12");
	assert_string_equal(text_at("node.serial", ""), "ABC123");
	assert_non_null(strstr(why_of("node.board_serial", ""), "is empty"));
	assert_non_null(strstr(why_of("node.board", ""), "Filled"));
	assert_non_null(strstr(why_of("node.product", ""), "no DMI table"));
	assert_true(number_at("sysctl.vm.swappiness", "") == 60);
	assert_non_null(strstr(why_of("sysctl.kernel.numa_balancing", ""), "numa_balancing"));
	assert_non_null(strstr(why_of("sysctl.fs.file-max", ""), "/proc/sys/fs/file-max"));
	assert_string_equal(text_at("module.nvidia", ""), "loaded");
	assert_string_equal(text_at("module.gdrdrv", ""), "not loaded");
	assert_true(number_at("limit.memlock", "") == 0x1p64);
	assert_true(number_at("limit.open_files", "") == 65536);
	assert_true(number_at("limit.processes", "") == 1024);
	/* The kernel's own clock: nothing is faked, an answer there must be. */
	assert_true(entry_of("facts", "clock.synchronised", "") ||
		    entry_of("missing", "clock.synchronised", ""));
}

static void control_groups_of_both_versions(void **state)
{
	(void)state;
	char mounts[512];
	fake_file("/proc/meminfo", "MemTotal:  8000 kB\n");
	fake_file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,8\n");
	fake_file("/proc/self/cgroup", "0::/job\n");
	(void)snprintf(
		mounts, sizeof mounts, "31 22 0:27 / %s/cg2 rw - cgroup2 cgroup2 rw\n", fake_root);
	fake_file("/proc/self/mountinfo", mounts);
	fake_file("/cg2/job/cpu.max", "150000 100000\n");
	fake_file("/cg2/job/memory.max", "4096\n");
	static const char asked[] =
		"cgroup.cores = known\ncgroup.cpus = known\ncgroup.memory = known\ncgroup.masked = 0\n";
	cpus_emulate(8);
	ask(asked);
	assert_true(number_at("cgroup.masked", "") == 3);
	assert_true(noted("an affinity mask holds this process on 5 of the 8 CPUs"));
	cpus_emulate(5);
	ask(asked);
	assert_true(number_at("cgroup.masked", "") == 0);
	cpus_emulate(0);
	assert_true(number_at("cgroup.cpus", "") == 5);
	assert_true(number_at("cgroup.cores", "") == 1.5);
	assert_true(number_at("cgroup.memory", "") == 4096);
	assert_true(noted("/job has a quota of 1.5 cores"));
	(void)snprintf(mounts, sizeof mounts,
		"32 31 0:29 / %s/cg1 rw - cgroup cgroup rw,cpu,memory\n", fake_root);
	fake_file("/proc/self/mountinfo", mounts);
	fake_file("/proc/self/cgroup", "3:cpu,memory:/\n");
	fake_file("/cg1/cpu.cfs_quota_us", "50000\n");
	fake_file("/cg1/cpu.cfs_period_us", "100000\n");
	ask(asked);
	assert_true(number_at("cgroup.cores", "") == 0.5);
	assert_true(number_at("cgroup.memory", "") == 8000 * 1024);
	/* Without a group nothing but the CPUs limits. */
	fake_file("/proc/self/cgroup", "");
	ask(asked);
	assert_true(number_at("cgroup.cores", "") == 5);
	fake_file("/proc/self/status", "Cpus_allowed_list:\t3-1,x\n");
	ask(asked);
	assert_true(*why_of("cgroup.cpus", ""));
	assert_true(*why_of("cgroup.cores", ""));
}

static void disks_adapters_and_links(void **state)
{
	(void)state;
	fake_file("/sys/block/nvme0n1/size", "2000\n");
	fake_file("/sys/block/nvme0n1/device/model", "Fast Disk   \n");
	fake_file("/sys/block/nvme0n1/device/firmware_rev", "F1\n");
	fake_file("/sys/block/nvme0n1/queue/rotational", "0\n");
	fake_file("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
	fake_file("/sys/block/loop0/size", "7\n");
	fake_file("/sys/block/sr0/device/model", "DVD\n");
	fake_file("/sys/block/sr0/removable", "1\n");
	fake_file("/sys/class/infiniband/mlx5_0/fw_ver", "28.39\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	fake_file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	fake_file("/sys/class/net/eth0/device/vendor", "0x15b3\n");
	fake_file("/sys/class/net/eth0/operstate", "up\n");
	fake_file("/sys/class/net/eth0/speed", "100000\n");
	fake_file("/sys/class/net/virt/device/vendor", "0x1af4\n");
	fake_file("/sys/class/net/virt/operstate", "up\n");
	fake_file("/sys/class/net/virt/speed", "-1\n");
	fake_file("/sys/class/net/lo/operstate", "unknown\n");
	fake_file("/sys/bus/pci/devices/0000:41:00.0/class", "0x010802\n");
	fake_file("/sys/bus/pci/devices/0000:41:00.0/current_link_width", "2\n");
	fake_file("/sys/bus/pci/devices/0000:41:00.0/max_link_width", "4\n");
	fake_file("/sys/bus/pci/devices/0000:00:1f.0/class", "0x020000\n");
	fake_file("/sys/bus/pci/devices/0000:00:1f.0/current_link_width", "255\n");
	fake_file("/sys/bus/pci/devices/0000:00:1f.0/max_link_width", "255\n");
	ask("disk.count = >= 1\ndisk.model = known\ndisk.serial = known\ndisk.firmware = known\n"
	    "disk.size = known\ndisk.rotational = is no\ndisk.scheduler = is none\n"
	    "rdma.ports = known\nrdma.state = known\nrdma.rate = known\nrdma.firmware = known\n"
	    "net.rate = known\npcie.width = known\npcie.lost_width = = 0\n");
	assert_true(number_at("disk.count", "") == 1);
	assert_string_equal(text_at("disk.model", "nvme0n1"), "Fast Disk");
	assert_string_equal(text_at("disk.firmware", "nvme0n1"), "F1");
	assert_true(*why_of("disk.serial", "nvme0n1"));
	assert_true(number_at("disk.size", "nvme0n1") == 2000 * 512);
	assert_string_equal(text_at("disk.rotational", "nvme0n1"), "no");
	assert_string_equal(text_at("disk.scheduler", "nvme0n1"), "none");
	assert_true(number_at("rdma.ports", "") == 1);
	assert_string_equal(text_at("rdma.state", "mlx5_1 port 1"), "DOWN");
	assert_true(number_at("rdma.rate", "mlx5_0 port 1") == 50e9);
	assert_true(*why_of("rdma.rate", "mlx5_1 port 1"));
	assert_string_equal(text_at("rdma.firmware", "mlx5_0"), "28.39");
	assert_true(number_at("net.rate", "eth0") == 12.5e9);
	assert_true(*why_of("net.rate", "virt"));
	assert_null(entry_of("missing", "net.rate", "lo"));
	assert_true(number_at("pcie.lost_width", "PCI 0000:41:00.0") == 2);
	assert_null(entry_of("facts", "pcie.width", "PCI 0000:00:1f.0"));
}

static void the_judged_folder(void **state)
{
	(void)state;
	fake_file("/proc/self/mountinfo",
		"22 1 254:1 / / rw,noatime,nodev - ext4 /dev/vda1 rw,errors=remount-ro,nodev\n");
	fake_file("/sys/devices/virtual/block/vda/vda1/dev", "254:1\n");
	fake_file("/sys/devices/virtual/block/vda/vda1/partition", "1\n");
	fake_file("/sys/devices/virtual/block/vda/dev", "254:0\n");
	fake_link("/sys/dev/block/254:1", "/sys/devices/virtual/block/vda/vda1");
	static const char asked[] =
		"data.file_system = is one of ext4, xfs\ndata.source = known\ndata.disk = known\n"
		"data.free = >= 1 B\ndata.inodes_free = known\nmount.options = has noatime\n";
	ask(asked);
	assert_string_equal(text_at("data.file_system", ""), "ext4");
	assert_string_equal(text_at("data.source", ""), "/dev/vda1");
	assert_string_equal(text_at("data.disk", ""), "vda");
	assert_string_equal(text_at("mount.options", ""), "rw,noatime,nodev,errors=remount-ro");
	assert_true(number_at("data.free", "") >= 0);
	assert_non_null(strstr(json_string_value(json_object_get(gathered.check, "activity")),
		"looking at the file system of"));
	(void)snprintf(folder, sizeof folder, "%s/nowhere", fake_root);
	ask(asked);
	assert_non_null(strstr(why_of("mount.options", ""), "No such file"));
	assert_non_null(strstr(why_of("data.free", ""), "nowhere"));
}

/* --- GPUs ------------------------------------------------------------------------------------- */

static const char gpu_asked[] =
	"gpu.count = >= 2\ngpu.on_bus = >= 2\ngpu.driver = known\ngpu.model = is *H200*\n"
	"gpu.serial = known\ngpu.vbios = known\ngpu.memory = >= 79 GiB\ngpu.pcie_generation = = 5\n"
	"gpu.pcie_generation_max = = 5\ngpu.pcie_width = = 16\ngpu.pcie_width_max = = 16\n"
	"gpu.ecc = is on\ngpu.persistence = is on\ngpu.mig = is off\ngpu.power_limit = >= 700 W\n"
	"gpu.clock_max = >= 1,980 MHz\ngpu.throttled = is none\ngpu.rows_remapped = = 0\n"
	"gpu.rows_pending = = 0\ngpu.rows_failed = = 0\ngpu.nvlinks = >= 4\ngpu.nvlinks_down = = 0\n"
	"gpu.busy = <= 1 %\ngpu.memory_used = <= 1 GiB\ngpu.temperature = <= 60 C\n";

static void devices_one_by_one(void **state)
{
	(void)state;
	fake_nvml_script("devices=2 name=NVIDIA_H200 links=4 down=1 width=8 persistence=0 rows=2 "
			 "pending=1 throttle=0x4 always=1 temperature=41");
	fake_file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	fake_file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	fake_file("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
	fake_file("/sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
	ask(gpu_asked);
	assert_true(number_at("gpu.count", "") == 2);
	assert_true(number_at("gpu.on_bus", "") == 1);
	assert_string_equal(text_at("gpu.driver", ""), "999.0 (fake)");
	assert_string_equal(text_at("gpu.model", "device 1"), "NVIDIA H200");
	assert_string_equal(text_at("gpu.serial", "device 1"), "1654021001");
	assert_string_equal(text_at("gpu.vbios", "device 0"), "96.00.5E.00.01");
	assert_true(number_at("gpu.memory", "device 0") == 80.0 * (1 << 30));
	assert_true(number_at("gpu.pcie_width", "device 0") == 8);
	assert_true(number_at("gpu.pcie_width_max", "device 0") == 16);
	assert_string_equal(text_at("gpu.persistence", "device 0"), "off");
	assert_string_equal(text_at("gpu.ecc", "device 0"), "on");
	assert_string_equal(text_at("gpu.throttled", "device 0"), "power cap");
	assert_true(number_at("gpu.nvlinks", "device 0") == 4);
	assert_true(number_at("gpu.nvlinks_down", "device 0") == 0);
	assert_true(number_at("gpu.nvlinks", "device 1") == 3);
	assert_true(number_at("gpu.nvlinks_down", "device 1") == 1);
	assert_true(number_at("gpu.rows_remapped", "device 1") == 2);
	assert_true(number_at("gpu.rows_pending", "device 1") == 1);
	assert_true(number_at("gpu.busy", "device 0") == 0.97);
	assert_true(number_at("gpu.temperature", "device 0") == 41);
	assert_int_equal(json_array_size(json_object_get(gathered.check, "missing")), 0);
}

static void devices_that_cannot_be_asked(void **state)
{
	(void)state;
	fake_nvml_script("init=9");
	fake_file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	fake_file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	ask(gpu_asked);
	assert_true(number_at("gpu.on_bus", "") == 1);
	assert_non_null(strstr(why_of("gpu.count", ""), "driver is not loaded"));
	assert_non_null(strstr(why_of("gpu.model", ""), "the PCI bus shows 1 NVIDIA GPU"));
	fake_nvml_script("devices=1 serial=none deny=link:3 deny=rows:13");
	ask(gpu_asked);
	assert_true(*why_of("gpu.serial", "device 0"));
	assert_non_null(strstr(why_of("gpu.pcie_width", "device 0"), "not supported"));
	assert_non_null(strstr(why_of("gpu.rows_failed", "device 0"), "cannot tell"));
	/* A device without NVLinks has 0 of them, and none is down. */
	assert_true(number_at("gpu.nvlinks", "device 0") == 0);
	assert_true(number_at("gpu.nvlinks_down", "device 0") == 0);
}

/* --- pre-flight ------------------------------------------------------------------------------- */

/* Gives every reader of /proc/stat later counts, half of them busy, until it is told to end. */
static atomic_bool feeding;

static void *feed_stat(void *context)
{
	char path[128];
	(void)context;
	(void)snprintf(path, sizeof path, "%s/proc/stat", fake_root);
	for (unsigned long ticks = 100; atomic_load(&feeding); ticks += 100) {
		char line[64];
		const int fd = open(path, O_WRONLY | O_NONBLOCK);
		const int size = snprintf(line, sizeof line, "cpu %lu 0 0 %lu 0 0 0 %lu\n", ticks,
			ticks, ticks / 100);
		if (fd >= 0) {
			(void)!write(fd, line, (size_t)size);
			(void)close(fd);
		}
		(void)usleep(1000);
	}
	return NULL;
}

static void who_else_is_there(void **state)
{
	(void)state;
	char path[128];
	pthread_t feeder;
	fake_processors();
	fake_file("/proc/loadavg", "3.50 2.00 1.00 5/900 1234\n");
	fake_file("/sys/class/hwmon/hwmon0/name", "coretemp\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_input", "91000\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
	fake_file("/sys/class/hwmon/hwmon0/temp1_crit", "95000\n");
	fake_file("/sys/class/hwmon/hwmon1/temp1_input", "-128000\n");
	(void)snprintf(path, sizeof path, "%s/proc/stat", fake_root);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)signal(SIGPIPE, SIG_IGN);
	atomic_store(&feeding, true);
	assert_int_equal(pthread_create(&feeder, NULL, feed_stat, NULL), 0);
	ask("node.busy = <= 1\nnode.steal = <= 1 %\nnode.load = <= 1\nnode.temperature = <= 50 C\n"
	    "node.temperature_left = >= 10 C\nnode.throttled = = 0\n");
	atomic_store(&feeding, false);
	assert_int_equal(pthread_join(feeder, NULL), 0);
	/* Half of the time of seven CPUs; one in 200 is stolen. */
	assert_true(fabs(number_at("node.busy", "") - 7 * 100.0 / 201) < 0.2);
	assert_true(number_at("node.steal", "") > 0 && number_at("node.steal", "") < 0.02);
	assert_true(number_at("node.load", "") == 3.5);
	assert_true(number_at("node.temperature", "coretemp Package id 0 (hwmon0)") == 91);
	assert_true(number_at("node.temperature_left", "coretemp Package id 0 (hwmon0)") == 4);
	assert_true(number_at("node.throttled", "") == 0);
	/* A sensor that is not connected is none. */
	assert_int_equal(json_array_size(json_object_get(gathered.check, "facts")), 6);
	assert_non_null(strstr(event_of("node.busy", ""), "cannot be seen from here"));
}

static void thermal_zones_where_there_is_no_hwmon(void **state)
{
	(void)state;
	fake_file("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
	fake_file("/sys/class/thermal/thermal_zone0/temp", "45500\n");
	ask("node.temperature = <= 50 C\n");
	assert_true(number_at("node.temperature", "thermal_zone0 x86_pkg_temp") == 45.5);
	fake_drop("/sys/class/thermal");
	ask("node.temperature = <= 50 C\n");
	assert_non_null(strstr(why_of("node.temperature", ""), "hwmon"));
}

#define STAT_LINE(name, user, started) \
	"(" name ") R 1 1 1 0 -1 0 0 0 0 0 " user " 5 0 0 20 0 1 0 " started " 0 0\n"

static void the_busiest_are_named(void **state)
{
	(void)state;
	struct node_processes before;
	struct node_processes after;
	struct node_user users[2];
	fake_file("/proc/10/stat", "10 " STAT_LINE("idle", "7", "100"));
	fake_file("/proc/20/stat", "20 " STAT_LINE("a) b (c", "100", "100"));
	fake_file("/proc/30/stat", "30 " STAT_LINE("old", "900", "100"));
	fake_file("/proc/40/stat", "nonsense ) (\n");
	fake_file("/proc/50/stat", "");
	assert_int_equal(node_processes_read(fake_root, &before), 0);
	assert_int_equal(before.count, 3);
	fake_file("/proc/20/stat", "20 " STAT_LINE("a) b (c", "140", "100"));
	fake_file("/proc/30/stat", "30 " STAT_LINE("new one", "15", "777")); /* the id came again */
	fake_file("/proc/60/stat", "60 " STAT_LINE("late\x1b[2J", "20", "800"));
	assert_int_equal(node_processes_read(fake_root, &after), 0);
	assert_int_equal(node_busiest(&before, &after, users, COUNT(users)), 2);
	assert_int_equal(users[0].id, 20);
	assert_string_equal(users[0].name, "a) b (c");
	assert_true(users[0].ticks == 40);
	assert_int_equal(users[1].id, 60);
	assert_null(strchr(users[1].name, '\x1b'));
	assert_int_equal(node_busiest(&after, &after, users, COUNT(users)), 0);
	node_processes_release(&before);
	node_processes_release(&after);
	/* This process is left out, and so are those that wait for it. */
	assert_int_equal(node_processes_read("", &before), 0);
	for (size_t i = 0; i < before.count; i++)
		assert_true(before.list[i].id != getpid() && before.list[i].id != getppid());
	node_processes_release(&before);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void errors_by_part(void **state)
{
	(void)state;
	fake_file("/sys/devices/system/edac/mc/mc0/ce_count", "7\n");
	fake_file("/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_label", "A1\n");
	fake_file("/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count", "7\n");
	fake_file("/sys/bus/pci/devices/0000:41:00.0/aer_dev_correctable", "RxErr 2\nBadTLP 3\n");
	ask("errors.corrected = <= 0\nerrors.uncorrected = <= 0\n");
	assert_true(number_at("errors.corrected", "memory (EDAC): A1 (mc0)") == 7);
	assert_true(number_at("errors.uncorrected", "memory (EDAC)") == 0);
	assert_true(number_at("errors.corrected", "PCIe (AER): PCI 0000:41:00.0") == 5);
	assert_true(*why_of("errors.uncorrected", "kernel log"));
	assert_true(*why_of("errors.corrected", "GPU (NVML)"));
	assert_string_equal(
		event_of("errors.corrected", "PCIe (AER): PCI 0000:41:00.0"), "RxErr: 2");
}

/* --- what must not go wrong ------------------------------------------------------------------- */

/* All figures of the kind, as a plan asks for them; from `first` on as many as a check may have. */
static size_t all_figures(char *out, size_t room, size_t first)
{
	size_t used = 0;
	size_t count = 0;
	size_t seen = 0;
	out[0] = '\0';
	for (const struct figure *figure = figure_list; figure->name; figure++)
		if (figure->kind == ACCEPT_EXPECT && seen++ >= first &&
			count < ACCEPT_CRITERIA_MAX) {
			used += (size_t)snprintf(
				out + used, room - used, "%s = known\n", figure->name);
			count++;
		}
	return count;
}

/* Runs the check over all figures; each must have an answer or a reason. */
static void ask_for_everything(void)
{
	char lines[8192];
	for (size_t first = 0;; first += ACCEPT_CRITERIA_MAX) {
		const size_t count = all_figures(lines, sizeof lines, first);
		if (count == 0)
			return;
		ask(lines);
		for (char *save, *line = strtok_r(lines, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save)) {
			bool any = false;
			*strchr(line, ' ') = '\0';
			static const char *const lists[] = {"facts", "missing"};
			for (size_t l = 0; l < COUNT(lists); l++) {
				size_t i;
				const json_t *entry;
				json_array_foreach(
					json_object_get(gathered.check, lists[l]), i, entry) any =
					any ||
					strcmp(json_string_value(json_object_get(entry, "figure")),
						line) == 0;
			}
			if (!any)
				fail_msg("'%s' has neither a value nor a reason", line);
		}
	}
}

static void a_node_that_hides_everything(void **state)
{
	(void)state;
	folder[0] = '\0';
	ask_for_everything();
}

static void this_node(void **state)
{
	(void)state;
	fake_root[0] = '\0';
	ask_for_everything();
	ask("cpu.cores = >= 1\nmemory.total = >= 1 B\nkernel.release = known\n");
	assert_true(number_at("cpu.cores", "") >= 1);
	assert_true(number_at("memory.total", "") > 1e6);
	(void)snprintf(fake_root, sizeof fake_root, "%.60s", folder);
}

static void hostile_files(void **state)
{
	(void)state;
	static const char *const paths[] = {"/proc/meminfo", "/proc/cpuinfo", "/proc/self/limits",
		"/proc/self/status", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/loadavg",
		"/proc/stat", "/proc/cmdline", "/etc/os-release", "/proc/1/stat",
		"/sys/devices/system/cpu/cpu99999999999/topology/physical_package_id",
		"/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq",
		"/sys/devices/system/cpu/cpu3/online", "/sys/devices/system/node/node0/distance",
		"/sys/devices/system/node/node0/meminfo", "/sys/class/dmi/id/product_serial",
		"/sys/firmware/dmi/tables/DMI", "/sys/class/hwmon/hwmon0/temp1_input",
		"/sys/block/sda/device/model", "/sys/block/sda/size",
		"/sys/class/infiniband/x/ports/1/rate", "/sys/class/net/eth0/device/x",
		"/sys/class/net/eth0/operstate", "/sys/class/net/eth0/speed",
		"/sys/bus/pci/devices/y/class", "/sys/kernel/mm/transparent_hugepage/enabled"};
	static const char texts[][64] = {"\xff\xfe\x01\x1b[2J", "99999999999999999999999999999999",
		"-1", "nan", "inf", "1e308 1e308", "[", "MemTotal: 1e400 kB\nSwapTotal: x\n", "0x",
		"\n\n\n", ": \t:", "Max open files", "0-99999999999999,", "()", "cpu 1 2"};
	char long_text[20000];
	memset(long_text, 'A', sizeof long_text);
	for (size_t t = 0; t < COUNT(texts) + 2; t++) {
		for (size_t i = 0; i < COUNT(paths); i++)
			if (t < COUNT(texts))
				fake_file(paths[i], texts[t]);
			else if (t == COUNT(texts))
				fake_bytes(paths[i], long_text, sizeof long_text);
			else
				fake_bytes(paths[i], "\0\0\0\0", 4);
		ask_for_everything();
	}
}

static void a_torn_table_of_the_firmware(void **state)
{
	(void)state;
	unsigned char table[2048];
	struct dmi_module modules[8];
	const size_t size = put_table(table);
	assert_int_equal(dmi_modules(table, size, modules, COUNT(modules)), 4);
	assert_int_equal(dmi_modules(table, size, modules, 2), 2);
	/* Cut anywhere, it gives what is whole: in memory of just that size, so that a read behind it is found. */
	for (size_t cut = 0; cut < size; cut++) {
		unsigned char *part = malloc(cut ? cut : 1);
		assert_non_null(part);
		memcpy(part, table, cut);
		const size_t count = dmi_modules(part, cut, modules, COUNT(modules));
		assert_true(count <= 4);
		for (size_t i = 0; i < count; i++)
			assert_true(strlen(modules[i].slot) < sizeof modules[i].slot);
		free(part);
	}
	/* And with any byte changed. */
	for (size_t at = 0; at < size; at++)
		for (unsigned value = 0; value < 256; value += 51) {
			const unsigned char old = table[at];
			table[at] = (unsigned char)value;
			(void)dmi_modules(table, size, modules, COUNT(modules));
			table[at] = old;
		}
}

static void what_an_inventory_cannot_be_asked(void **state)
{
	(void)state;
	static const char *const wrong[] = {"cpu.cores = spread <= 3 %",
		"node.load = similarity >= 0.9", "memory.total = >= 90 % of peak"};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		char text[256];
		struct accept_plan plan;
		struct error err;
		const int size = snprintf(
			text, sizeof text, "[plan]\nname = t\n[it]\nkind = expect\n%s\n", wrong[i]);
		assert_int_equal(plan_read_text(&plan, "t", text, (size_t)size, &err), 0);
		assert_int_equal(check_expect.validate(&plan, &plan.checks[0], &err), -EINVAL);
		assert_true(err.text[0] == '\'');
		plan_release(&plan);
	}
}

static void it_ends_when_it_is_told(void **state)
{
	(void)state;
	const atomic_bool stop = true;
	assert_int_equal(ask_with("cpu.cores = >= 1\n", &stop), -EINTR);
	assert_null(entry_of("facts", "cpu.cores", ""));
	assert_null(entry_of("missing", "cpu.cores", ""));
	/* Where the time is over, the check failed: what it did not look at is no lack of the node's. */
	deadline_ns = 1;
	const int code = ask_with("cpu.cores = >= 1\nmount.options = has rw\n", NULL);
	deadline_ns = 0;
	assert_int_equal(code, -ETIMEDOUT);
	assert_null(entry_of("missing", "cpu.cores", ""));
}

static void only_what_is_asked_for_is_handed_over(void **state)
{
	(void)state;
	fake_processors();
	ask("cpu.cores = >= 1\n");
	assert_int_equal(json_array_size(json_object_get(gathered.check, "facts")), 1);
	assert_int_equal(json_array_size(json_object_get(gathered.check, "missing")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ON_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		ON_ROOT(processors),
		ON_ROOT(memory_and_numa),
		ON_ROOT(the_system),
		ON_ROOT(control_groups_of_both_versions),
		ON_ROOT(disks_adapters_and_links),
		ON_ROOT(the_judged_folder),
		ON_ROOT(devices_one_by_one),
		ON_ROOT(devices_that_cannot_be_asked),
		ON_ROOT(who_else_is_there),
		ON_ROOT(thermal_zones_where_there_is_no_hwmon),
		ON_ROOT(the_busiest_are_named),
		ON_ROOT(errors_by_part),
		ON_ROOT(a_node_that_hides_everything),
		ON_ROOT(this_node),
		ON_ROOT(hostile_files),
		ON_ROOT(a_torn_table_of_the_firmware),
		ON_ROOT(what_an_inventory_cannot_be_asked),
		ON_ROOT(it_ends_when_it_is_told),
		ON_ROOT(only_what_is_asked_for_is_handed_over),
	};
	if (!fake_nvml_load("new"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
