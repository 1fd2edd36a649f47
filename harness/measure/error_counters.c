/* What the hardware counts of its own errors.  Each class is one function that goes through its files and adds what stands
 * there; the kernel's log is searched for the lines of a table. */
#include "harness/measure/error_counters.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/measure/node_files.h"
#include "harness/measure/nvml.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *error_class_name(enum error_class class)
{
	static const char *const names[ERROR_CLASSES] = {"memory (EDAC)", "machine checks",
		"PCIe (AER)", "disks", "network links", "GPU (NVML)", "kernel log"};
	return names[class];
}

/* --- the list --------------------------------------------------------------------------------- */

/* What is being read: the class, and how many counters of it were seen (0: the node does not count it). */
struct error_gather {
	struct error_counters *out;
	const char *root;
	enum error_class class;
	size_t seen;
	bool failed;
};

static struct error_counter *error_append(struct error_gather *g)
{
	struct error_counters *out = g->out;
	if (out->count == ERROR_COUNTERS_MAX) {
		out->cut = true;
		return NULL;
	}
	if (out->count == out->room) {
		const size_t room = out->room ? 2 * out->room : 32;
		struct error_counter *list = realloc(out->list, room * sizeof *list);
		if (!list) {
			g->failed = true;
			return NULL;
		}
		out->list = list;
		out->room = room;
	}
	struct error_counter *counter = &out->list[out->count++];
	*counter = (struct error_counter){.class = g->class};
	return counter;
}

/* A count is at least 0 and may be huge, since the file may hold anything. */
static uint64_t error_count_of(double value)
{
	return value >= 0x1p63 ? UINT64_MAX / 2 : value > 0 ? (uint64_t)value : 0;
}

__attribute__((format(printf, 5, 6))) static void error_add(struct error_gather *g, bool corrected,
	double count, const char *name, const char *place, ...)
{
	struct error_counter *counter = error_append(g);
	if (!counter)
		return;
	counter->corrected = corrected;
	counter->count = error_count_of(count);
	(void)snprintf(counter->name, sizeof counter->name, "%s", name);
	va_list args;
	va_start(args, place);
	(void)vsnprintf(counter->place, sizeof counter->place, place, args);
	va_end(args);
	utf8_make_plain(counter->name, '?');
	utf8_make_plain(counter->place, '?');
}

__attribute__((format(printf, 2, 3))) static void error_why(
	struct error_gather *g, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(g->out->why[g->class], ERROR_WHY_BYTES, format, args);
	va_end(args);
}

/* --- memory: EDAC ----------------------------------------------------------------------------- */

/* A memory controller; what its modules count is taken from what it counts itself, so that nothing counts twice. */
struct edac_controller {
	struct error_gather *g;
	const char *name;
	const char *corrected, *uncorrected, *label; /* files of a module */
	double left[2];                              /* by corrected */
	size_t modules;
};

static void edac_module(void *context, const char *path)
{
	struct edac_controller *mc = context;
	char label[ERROR_PLACE_BYTES / 2];
	if (node_line(label, sizeof label, "%s/%s", path, mc->label))
		(void)snprintf(label, sizeof label, "%.31s", node_base(path));
	mc->modules++;
	for (int corrected = 0; corrected < 2; corrected++) {
		double count;
		if (node_number(
			    &count, "%s/%s", path, corrected ? mc->corrected : mc->uncorrected) ||
			count <= 0)
			continue;
		mc->left[corrected] -= count;
		error_add(mc->g, corrected, count,
			corrected ? "corrected memory errors" : "uncorrected memory errors",
			"%s (%.16s)", label, mc->name);
	}
}

static void edac_read_controller(void *context, const char *path)
{
	struct error_gather *g = context;
	struct edac_controller mc = {.g = g,
		.name = node_base(path),
		.corrected = "dimm_ce_count",
		.uncorrected = "dimm_ue_count",
		.label = "dimm_label"};
	if (node_number(&mc.left[1], "%s/ce_count", path) &&
		node_number(&mc.left[0], "%s/ue_count", path))
		return;
	(void)node_number(&mc.left[0], "%s/ue_count", path);
	g->seen++;
	(void)node_each(edac_module, &mc, "%s/dimm*", path);
	if (mc.modules == 0) {
		mc.corrected = "ce_count";
		mc.uncorrected = "ue_count";
		mc.label = "ch0_dimm_label";
		(void)node_each(edac_module, &mc, "%s/csrow*", path);
	}
	for (int corrected = 0; corrected < 2; corrected++)
		error_add(g, corrected, mc.left[corrected],
			corrected ? "corrected memory errors" : "uncorrected memory errors", "%s",
			mc.name);
}

static void read_memory_errors(struct error_gather *g)
{
	(void)node_each(edac_read_controller, g, "%s/sys/devices/system/edac/mc/mc[0-9]*", g->root);
	if (g->seen == 0)
		error_why(g,
			"no memory controller reports errors (EDAC): no driver for it, no ECC memory, "
			"or a virtual machine");
}

/* --- machine checks: rows of /proc/interrupts ------------------------------------------------- */

static const struct {
	const char *row, *name;
	bool corrected;
} interrupt_rows[] = {
	{"MCE:", "machine check exceptions", false},
	{"DFR:", "deferred errors", false},
	{"THR:", "threshold interrupts of corrected errors", true},
};

/* "MCE: 0 0 2  Machine check exceptions": columns are the online CPUs of the header. */
static void add_interrupt_row(struct error_gather *g, const char *header, const char *at,
	const char *name, bool corrected)
{
	bool any = false;
	for (;;) {
		char *end;
		header += strspn(header, " \t");
		if (strncmp(header, "CPU", 3) != 0)
			break;
		const unsigned long cpu = strtoul(header + 3, &end, 10);
		header = end;
		const unsigned long long count = strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
		if (count > 0)
			error_add(g, corrected, (double)count, name, "CPU %lu", cpu);
		any = any || count > 0;
	}
	if (!any)
		error_add(g, corrected, 0, name, "%s", "");
}

static void read_machine_checks(struct error_gather *g)
{
	char *text = node_text("%s/proc/interrupts", g->root);
	for (const char *line = text; line && *line; line = text_next_line(line)) {
		const char *at = line + strspn(line, " ");
		for (size_t i = 0; i < COUNT(interrupt_rows); i++)
			if (strncmp(at, interrupt_rows[i].row, 4) == 0) {
				g->seen++;
				add_interrupt_row(g, text, at + 4, interrupt_rows[i].name,
					interrupt_rows[i].corrected);
			}
	}
	if (!text)
		error_why(g, "/proc/interrupts cannot be read");
	else if (g->seen == 0)
		error_why(g, "/proc/interrupts has no row of machine checks");
	free(text);
}

/* --- PCIe: Advanced Error Reporting ----------------------------------------------------------- */

/* Lines "RxErr 0", and a total, which is not counted again. */
static void add_aer_file(
	struct error_gather *g, const char *device, const char *file, bool corrected)
{
	char *text = node_text("%s/%s", device, file);
	if (!text)
		return;
	g->seen++;
	bool any = false;
	for (const char *line = text; line && *line; line = text_next_line(line)) {
		char name[32];
		double count;
		if (sscanf(line, "%31s %lf", name, &count) != 2 || !(count > 0) ||
			strncmp(name, "TOTAL", 5) == 0)
			continue;
		any = true;
		error_add(g, corrected, count, name, "PCI %.40s", node_base(device));
	}
	free(text);
	if (!any)
		error_add(
			g, corrected, 0, file + strlen("aer_dev_"), "PCI %.40s", node_base(device));
}

static void read_aer_device(void *context, const char *path)
{
	add_aer_file(context, path, "aer_dev_correctable", true);
	add_aer_file(context, path, "aer_dev_nonfatal", false);
	add_aer_file(context, path, "aer_dev_fatal", false);
}

static void read_pcie_errors(struct error_gather *g)
{
	(void)node_each(read_aer_device, g, "%s/sys/bus/pci/devices/*", g->root);
	if (g->seen == 0)
		error_why(g,
			"no PCI device counts its errors (AER): a virtual machine, or pci=noaer, or firmware that keeps it");
}

/* --- disks and network links: one number a file ------------------------------------------------ */

static const struct error_file {
	enum error_class class;
	int up;            /* folders above the file, whose name is the place */
	const char *needs; /* what that folder must have; NULL: nothing */
	const char *pattern, *name;
	bool corrected;
} error_files[] = {
	/* Commands that a disk does not know count as well, so that a few are usual: what was lost is in the log. */
	{ERRORS_DISK, 2, NULL, "/sys/block/*/device/ioerr_cnt", "failed requests", true},
	{ERRORS_DISK, 1, NULL, "/sys/block/md*/md/dev-*/errors", "read errors mended by the array",
		true},
	{ERRORS_DISK, 1, NULL, "/sys/fs/ext4/*/errors_count", "file system errors", false},
	{ERRORS_LINK, 2, NULL, "/sys/class/infiniband/*/ports/*/counters/symbol_error",
		"symbol errors", true},
	{ERRORS_LINK, 2, NULL, "/sys/class/infiniband/*/ports/*/counters/port_rcv_errors",
		"receive errors", true},
	{ERRORS_LINK, 2, NULL, "/sys/class/infiniband/*/ports/*/counters/link_error_recovery",
		"link recoveries", true},
	{ERRORS_LINK, 2, NULL, "/sys/class/infiniband/*/ports/*/counters/link_downed",
		"link went down", true},
	/* Adapters of hardware alone. */
	{ERRORS_LINK, 2, "device", "/sys/class/net/*/statistics/rx_crc_errors", "CRC errors", true},
};

struct error_file_visit {
	struct error_gather *g;
	const struct error_file *file;
};

/* "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error" -> "mlx5_0 port 1", "/sys/block/sda/..." -> "sda". */
static void error_file_place(const char *folder, char place[ERROR_PLACE_BYTES])
{
	const char *ports = strstr(folder, "/ports/");
	if (!ports) {
		(void)snprintf(place, ERROR_PLACE_BYTES, "%.63s", node_base(folder));
		return;
	}
	const char *device = ports;
	while (device > folder && device[-1] != '/')
		device--;
	(void)snprintf(place, ERROR_PLACE_BYTES, "%.*s port %.8s",
		ports - device < 32 ? (int)(ports - device) : 32, device, node_base(folder));
}

static void read_error_file(void *context, const char *path)
{
	const struct error_file_visit *v = context;
	char folder[NODE_PATH_BYTES];
	char place[ERROR_PLACE_BYTES];
	double count;
	(void)snprintf(folder, sizeof folder, "%s", path);
	for (int up = v->file->up; up > 0; up--) {
		char *slash = strrchr(folder, '/');
		if (slash)
			*slash = '\0';
	}
	if ((v->file->needs && !node_has("%s/%s", folder, v->file->needs)) ||
		node_number(&count, "%s", path))
		return;
	v->g->seen++;
	error_file_place(folder, place);
	error_add(v->g, v->file->corrected, count, v->file->name, "%s", place);
}

static void read_error_files(struct error_gather *g)
{
	for (size_t i = 0; i < COUNT(error_files); i++) {
		struct error_file_visit visit = {.g = g, .file = &error_files[i]};
		if (error_files[i].class == g->class)
			(void)node_each(
				read_error_file, &visit, "%s%s", g->root, error_files[i].pattern);
	}
}

static void read_disk_errors(struct error_gather *g)
{
	read_error_files(g);
	if (g->seen == 0)
		error_why(g,
			"no disk or file system counts its errors in /sys (NVMe disks keep theirs: nvme smart-log)");
}

static void read_link_errors(struct error_gather *g)
{
	read_error_files(g);
	if (g->seen == 0)
		error_why(g, "no RDMA port or network adapter counts its errors in /sys");
}

/* --- GPUs: NVML ------------------------------------------------------------------------------- */

static void add_gpu_errors(
	struct error_gather *g, const struct nvml_device_facts *device, size_t index)
{
	const struct {
		const char *name;
		bool corrected;
		double count;
	} counts[] = {
		{"corrected memory errors", true, device->values[NVML_ECC_CORRECTED].number},
		{"uncorrected memory errors", false, device->values[NVML_ECC_UNCORRECTED].number},
		{"memory rows remapped after uncorrected errors", false,
			device->values[NVML_ROWS_UNCORRECTED].number},
	};
	for (size_t i = 0; i < COUNT(counts); i++)
		if (!isnan(counts[i].count)) {
			g->seen++;
			error_add(g, counts[i].corrected, counts[i].count, counts[i].name,
				"device %zu", index);
		}
	for (size_t link = 0; link < device->link_count; link++)
		for (int kind = 0; kind < NVML_LINK_ERRORS; kind++) {
			const double count = device->links[link].errors[kind];
			if (isnan(count))
				continue;
			g->seen++;
			error_add(g, true, count, nvml_link_error_name((enum nvml_link_error)kind),
				"device %zu NVLink %zu", index, link);
		}
}

static void read_gpu_errors(struct error_gather *g)
{
	struct error err;
	struct nvml_node *node = calloc(1, sizeof *node);
	if (!node) {
		g->failed = true;
		return;
	}
	if (nvml_node_read(node, NVML_PATIENCE_S * NS_PER_S, &err)) {
		error_why(g, "%.150s", err.text);
	} else {
		for (size_t i = 0; i < node->count; i++)
			add_gpu_errors(g, &node->devices[i], i);
		if (g->seen == 0)
			error_why(g, "memory errors of the devices: %s",
				nvml_code_words(
					node->devices[0].values[NVML_ECC_UNCORRECTED].code));
	}
	free(node);
}

/* --- the kernel's log ------------------------------------------------------------------------- */

/* A record that has `text`, and `also` after it where that is not NULL, counts under `name`; the first row that fits. */
static const struct log_row {
	const char *text, *also, *name;
	bool corrected;
} log_rows[] = {
	{"EDAC ", " CE ", "EDAC: corrected memory error", true},
	{"EDAC ", " UE ", "EDAC: uncorrected memory error", false},
	{"[Hardware Error]: event severity: corrected", NULL, "firmware: corrected error", true},
	{"[Hardware Error]: event severity: info", NULL, "firmware: corrected error", true},
	{"[Hardware Error]: event severity:", NULL, "firmware: uncorrected error", false},
	{"Machine check events logged", NULL, "machine check logged", true},
	{"[Hardware Error]: CPU ", "Machine Check Exception", "machine check exception", false},
	{"[Hardware Error]: CPU ", "Machine Check: ", "machine check logged", true},
	{"[Hardware Error]: Corrected error", NULL, "machine check logged", true},
	{"[Hardware Error]: Deferred error", NULL, "deferred error", false},
	{"[Hardware Error]: Uncorrected", NULL, "machine check of an uncorrected error", false},
	{"Uncorrected hardware memory error", NULL, "uncorrected memory error", false},
	{"Memory failure: ", NULL, "memory page taken out of use", false},
	{"PCIe Bus Error: severity=Correct", NULL, "PCIe: corrected error", true},
	{"PCIe Bus Error: severity=Uncorrect", NULL, "PCIe: uncorrected error", false},
	{"NVRM: Xid", NULL, "Xid", false},
	{"critical medium error, dev ", NULL, "disk: medium error", false},
	{"I/O error, dev ", NULL, "disk: I/O error", false},
	{"nvme ", "timeout", "NVMe: time-out", true},
	{"nvme ", "controller is down", "NVMe: controller reset", true},
	{"EXT4-fs error", NULL, "file system error", false},
	{"XFS ", "orruption", "file system error", false},
	{"XFS ", "metadata I/O error", "file system error", false},
	{"BTRFS error", "corrupt", "file system error", false},
	{"temperature above threshold", NULL, "CPU slowed down by heat", true},
	{"temperature is above threshold", NULL, "CPU slowed down by heat", true},
};

/* Xids that a user's program causes: no fault of the device. */
static const unsigned program_xids[] = {13, 31, 43, 45};
/* Xids of errors that were corrected: rows remapped, many single-bit errors, contained. */
static const unsigned corrected_xids[] = {63, 92};

static bool xid_among(unsigned xid, const unsigned *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == xid)
			return true;
	return false;
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=...": 79 and the address; 0: not understood, which counts as a fault. */
static unsigned parse_xid(const char *text, char place[ERROR_PLACE_BYTES])
{
	char bus[32] = "";
	unsigned xid = 0;
	const char *at = strstr(text, "Xid");
	if (at && sscanf(at, "Xid (PCI:%31[0-9a-fA-F:.]): %u", bus, &xid) == 2)
		(void)snprintf(place, ERROR_PLACE_BYTES, "PCI %s", bus);
	return xid;
}

/* "I/O error, dev sda, sector 5": "sda".  False: a drive that may be empty. */
static bool parse_log_disk(const char *text, char place[ERROR_PLACE_BYTES])
{
	char name[32];
	const char *at = strstr(text, "error, dev ");
	if (at && sscanf(at, "error, dev %31[A-Za-z0-9!_-]", name) == 1)
		(void)snprintf(place, ERROR_PLACE_BYTES, "%s", name);
	return strncmp(place, "fd", 2) != 0 && strncmp(place, "sr", 2) != 0;
}

static void count_log_line(
	struct error_gather *g, size_t first, const struct log_row *row, const char *text)
{
	struct error_counter found = {.corrected = row->corrected};
	(void)snprintf(found.name, sizeof found.name, "%s", row->name);
	if (!parse_log_disk(text, found.place))
		return;
	if (strcmp(row->name, "Xid") == 0) {
		const unsigned xid = parse_xid(text, found.place);
		if (xid_among(xid, program_xids, COUNT(program_xids)))
			return;
		found.corrected = xid_among(xid, corrected_xids, COUNT(corrected_xids));
		if (xid > 0)
			(void)snprintf(found.name, sizeof found.name, "Xid %u", xid);
	}
	struct error_counter *counter = NULL;
	for (size_t i = first; i < g->out->count && !counter; i++)
		if (strcmp(g->out->list[i].name, found.name) == 0 &&
			strcmp(g->out->list[i].place, found.place) == 0)
			counter = &g->out->list[i];
	if (!counter) {
		error_add(g, found.corrected, 0, found.name, "%s", found.place);
		counter = g->out->count > first && !g->failed && !g->out->cut
				  ? &g->out->list[g->out->count - 1]
				  : NULL;
	}
	if (!counter)
		return;
	counter->count++;
	(void)snprintf(counter->evidence, sizeof counter->evidence, "%.*s",
		ERROR_EVIDENCE_BYTES - 1, text);
	utf8_make_plain(counter->evidence, '?');
}

/* One record, "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT"; what a program wrote into the log does not count: its facility
 * (priority / 8) is not the kernel's. */
static void count_log_record(
	struct error_gather *g, size_t first, char *record, const struct error_counters *before)
{
	unsigned priority;
	unsigned long long sequence;
	char *text = strchr(record, ';');
	if (!text || sscanf(record, "%u,%llu,", &priority, &sequence) != 2)
		return;
	if (g->seen == 0 && sequence > (before ? before->log_next : 0))
		g->out->log_lost = true;
	g->seen++;
	if (sequence >= g->out->log_next)
		g->out->log_next = sequence + 1;
	if (priority >= 8 || (before && sequence < before->log_next))
		return;
	text++;
	for (size_t i = 0; i < COUNT(log_rows); i++) {
		const char *at = strstr(text, log_rows[i].text);
		if (!at || (log_rows[i].also && !strstr(at, log_rows[i].also)))
			continue;
		count_log_line(g, first, &log_rows[i], text);
		return;
	}
}

/* All that is in the log now: a read gives one record, or (a file of a test) many.  NULL: code. */
static char *read_log(struct error_gather *g, int *code)
{
	enum { LOG_BYTES_MAX = 16 << 20, RECORD_BYTES = 8192, READS_MAX = 1 << 18 };
	char path[NODE_PATH_BYTES];
	(void)snprintf(path, sizeof path, "%s/dev/kmsg", g->root);
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t room = 1 << 20;
	char *text = fd >= 0 ? malloc(room) : NULL;
	size_t size = 0;
	*code = fd < 0 ? -errno : text ? 0 : -ENOMEM;
	for (int reads = 0; text; reads++) {
		if (room - size < RECORD_BYTES + 1 && room < LOG_BYTES_MAX) {
			char *larger = realloc(text, 2 * room);
			if (larger) {
				text = larger;
				room *= 2;
			}
		}
		if (room - size < RECORD_BYTES + 1 || reads == READS_MAX) {
			g->out->log_lost = true;
			break;
		}
		const ssize_t got = read(fd, text + size, RECORD_BYTES);
		if (got < 0 &&
			errno ==
				EPIPE) /* records were overwritten meanwhile: go on with what is left */
			continue;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != EAGAIN)
			*code = -errno;
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	if (fd >= 0)
		(void)close(fd);
	if (text && (*code == 0 || size > 0)) {
		*code = 0;
		text[size] = '\0';
		for (size_t i = 0; i < size; i++)
			if (text[i] == '\0')
				text[i] = '?';
		return text;
	}
	free(text);
	return NULL;
}

static void read_log_errors(struct error_gather *g, const struct error_counters *before)
{
	int code;
	const size_t first = g->out->count;
	char *text = read_log(g, &code);
	if (!text) {
		error_why(g, "the kernel's log cannot be read: %s", strerror(-code));
		return;
	}
	char *save = NULL;
	/* Lines that begin with a blank tell more of the record before them. */
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (*line != ' ')
			count_log_record(g, first, line, before);
	if (g->out->count == first)
		error_add(g, true, 0, "lines about hardware errors", "%s", "");
	free(text);
}

/* --- all -------------------------------------------------------------------------------------- */

int error_counters_read(const char *root, unsigned classes, const struct error_counters *before,
	struct error_counters *out)
{
	static void (*const readers[ERROR_CLASSES])(struct error_gather *) = {
		[ERRORS_MEMORY] = read_memory_errors,
		[ERRORS_MACHINE_CHECK] = read_machine_checks,
		[ERRORS_PCIE] = read_pcie_errors,
		[ERRORS_DISK] = read_disk_errors,
		[ERRORS_LINK] = read_link_errors,
		[ERRORS_GPU] = read_gpu_errors,
	};
	*out = (struct error_counters){.read = classes};
	const bool has_log = before && (before->read & ERROR_CLASS_BIT(ERRORS_KERNEL_LOG)) &&
			     before->log_next > 0;
	for (int class = 0; class < ERROR_CLASSES; class ++) {
		struct error_gather g = {
			.out = out, .root = root, .class = (enum error_class) class};
		if (!(classes & ERROR_CLASS_BIT(class)))
			continue;
		if (readers[class])
			readers[class](&g);
		else
			read_log_errors(&g, has_log ? before : NULL);
		if (g.failed) {
			error_counters_release(out);
			return -ENOMEM;
		}
	}
	return 0;
}

void error_counters_release(struct error_counters *counters)
{
	free(counters->list);
	*counters = (struct error_counters){0};
}

uint64_t error_counter_growth(
	const struct error_counters *before, const struct error_counter *counter)
{
	if (!(before->read & ERROR_CLASS_BIT(counter->class)) || before->why[counter->class][0])
		return 0;
	for (size_t i = 0; i < before->count && counter->class != ERRORS_KERNEL_LOG; i++) {
		const struct error_counter *old = &before->list[i];
		if (old->class == counter->class && old->corrected == counter->corrected &&
			strcmp(old->name, counter->name) == 0 &&
			strcmp(old->place, counter->place) == 0)
			return counter->count >= old->count ? counter->count - old->count
							    : counter->count;
	}
	return counter->count;
}
