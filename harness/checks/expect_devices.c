/* The inventory of what is plugged in: GPUs, network adapters, disks, and the file system of the judged folder. */
#include "harness/checks/expect.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/measure/data_store.h"
#include "harness/measure/node_files.h"
#include "harness/measure/nvml.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* --- GPUs ------------------------------------------------------------------------------------- */

/* How many NVIDIA GPUs the PCI bus shows, and whether it shows anything. */
struct bus_sight {
	size_t devices, gpus;
};

static void see_bus_device(void *context, const char *path)
{
	enum { NVIDIA = 0x10de, CLASS_DISPLAY = 0x03, CLASS_SHIFT = 16 };
	struct bus_sight *sight = context;
	double vendor;
	double class;
	if (node_number(&vendor, "%s/vendor", path) || node_number(&class, "%s/class", path))
		return;
	sight->devices++;
	sight->gpus += vendor == NVIDIA && (unsigned)class >> CLASS_SHIFT == CLASS_DISPLAY;
}

static struct bus_sight look_at_bus(struct expect *e)
{
	struct bus_sight sight = {0};
	(void)node_each(see_bus_device, &sight, "%s/sys/bus/pci/devices/*", e->root);
	if (sight.devices > 0)
		expect_number(e, "gpu.on_bus", "", (double)sight.gpus);
	else
		expect_missing(e, "gpu.on_bus", "", "'/sys/bus/pci/devices' shows no device");
	return sight;
}

static const struct {
	const char *figure;
	enum nvml_quantity quantity;
	bool is_switch;
} expect_gpu_values[] = {
	{"gpu.memory", NVML_MEMORY_TOTAL, false},
	{"gpu.pcie_generation", NVML_PCIE_GENERATION, false},
	{"gpu.pcie_generation_max", NVML_PCIE_GENERATION_MAX, false},
	{"gpu.pcie_width", NVML_PCIE_WIDTH, false},
	{"gpu.pcie_width_max", NVML_PCIE_WIDTH_MAX, false},
	{"gpu.power_limit", NVML_POWER_LIMIT, false},
	{"gpu.clock_max", NVML_SM_CLOCK_MAX, false},
	{"gpu.busy", NVML_KERNEL_RESIDENT, false},
	{"gpu.memory_used", NVML_MEMORY_USED, false},
	{"gpu.temperature", NVML_TEMPERATURE, false},
	{"gpu.rows_remapped", NVML_ROWS_UNCORRECTED, false},
	{"gpu.rows_pending", NVML_ROWS_PENDING, false},
	{"gpu.rows_failed", NVML_ROWS_FAILED, false},
	{"gpu.ecc", NVML_ECC_MODE, true},
	{"gpu.persistence", NVML_PERSISTENCE, true},
	{"gpu.mig", NVML_MIG_MODE, true},
};

static double active_links(const struct nvml_device_facts *device)
{
	double active = 0;
	for (size_t i = 0; i < device->link_count; i++)
		active += device->links[i].active;
	return active;
}

/* most: of the device of this node that has most of them active.  A card without a bridge has links that nothing is plugged
 * into, so that an inactive one is a fault only where another device has it. */
static void tell_gpu_links(
	struct expect *e, const char *place, const struct nvml_device_facts *device, double most)
{
	/* Without the hardware, their number is known as well. */
	const bool none =
		device->link_count == 0 && (device->link_code == NVML_NOT_SUPPORTED ||
						   device->link_code == NVML_INVALID_ARGUMENT);
	if (device->link_count > 0 || none) {
		expect_number(e, "gpu.nvlinks", place, active_links(device));
		expect_number(e, "gpu.nvlinks_down", place, most - active_links(device));
		return;
	}
	const char *why = nvml_code_words(device->link_code);
	expect_missing(e, "gpu.nvlinks", place, "its NVLinks: %s", why);
	expect_missing(e, "gpu.nvlinks_down", place, "its NVLinks: %s", why);
}

static void tell_gpu_text(struct expect *e, const char *figure, const char *place, const char *text)
{
	char plain[80];
	(void)snprintf(plain, sizeof plain, "%s", text);
	utf8_make_plain(plain, '?');
	if (plain[0])
		expect_text(e, figure, place, plain);
	else
		expect_missing(e, figure, place, "the driver does not tell");
}

static void tell_gpu(
	struct expect *e, const struct nvml_device_facts *device, size_t index, double most_links)
{
	char place[EXPECT_PLACE_BYTES];
	char reasons[128];
	(void)snprintf(place, sizeof place, "device %zu", index);
	tell_gpu_text(e, "gpu.model", place, device->name);
	tell_gpu_text(e, "gpu.serial", place, device->serial);
	tell_gpu_text(e, "gpu.vbios", place, device->vbios);
	for (size_t i = 0; i < COUNT(expect_gpu_values); i++) {
		const struct nvml_value *value = &device->values[expect_gpu_values[i].quantity];
		if (value->code)
			expect_missing(e, expect_gpu_values[i].figure, place, "%s",
				nvml_code_words(value->code));
		else if (expect_gpu_values[i].is_switch)
			expect_switch(e, expect_gpu_values[i].figure, place, value->number > 0);
		else
			expect_number(e, expect_gpu_values[i].figure, place, value->number);
	}
	const struct nvml_value *throttles = &device->values[NVML_THROTTLES];
	if (throttles->code) {
		expect_missing(e, "gpu.throttled", place, "%s", nvml_code_words(throttles->code));
	} else {
		nvml_throttle_names(throttles->number, reasons, sizeof reasons);
		expect_text(e, "gpu.throttled", place, reasons[0] ? reasons : "none");
	}
	tell_gpu_links(e, place, device, most_links);
}

void tell_gpus(struct expect *e)
{
	struct error err = {0};
	const struct bus_sight sight = look_at_bus(e);
	bool wanted = false;
	for (size_t i = 0; figure_list[i].name && !wanted; i++)
		wanted = strncmp(figure_list[i].name, "gpu.", 4) == 0 &&
			 strcmp(figure_list[i].name, "gpu.on_bus") != 0 &&
			 expect_wants(e, figure_list[i].name, NULL);
	struct nvml_node *node = wanted ? calloc(1, sizeof *node) : NULL;
	if (!node)
		return;
	sink_activity(e->context->sink, "asking the GPU driver (NVML)");
	if (nvml_node_read(node, NVML_PATIENCE_S * NS_PER_S, &err)) {
		if (sight.gpus > 0)
			expect_rest_missing(e, "gpu.",
				"%.300s, but the PCI bus shows %zu NVIDIA GPU%s", err.text,
				sight.gpus, sight.gpus == 1 ? "" : "s");
		else
			expect_rest_missing(e, "gpu.", "%.300s", err.text);
	} else {
		expect_number(e, "gpu.count", "", (double)node->count);
		tell_gpu_text(e, "gpu.driver", "", node->driver);
		double most = 0;
		for (size_t i = 0; i < node->count; i++)
			most = fmax(most, active_links(&node->devices[i]));
		for (size_t i = 0; i < node->count; i++)
			tell_gpu(e, &node->devices[i], i, most);
	}
	free(node);
}

/* --- adapters and disks ----------------------------------------------------------------------- */

enum { BITS_PER_BYTE = 8 };

struct port_count {
	struct expect *e;
	double active;
};

static void tell_rdma_port(void *context, const char *path)
{
	struct port_count *count = context;
	struct expect *e = count->e;
	char place[EXPECT_PLACE_BYTES];
	char line[64];
	double gigabits;
	/* ".../infiniband/mlx5_0/ports/1" */
	const char *ports = strstr(path, "/ports/");
	const char *device = ports;
	while (device && device > path && device[-1] != '/')
		device--;
	if (!ports)
		return;
	(void)snprintf(place, sizeof place, "%.*s port %.16s",
		(int)(ports - device < 64 ? ports - device : 64), device, node_base(path));
	/* "4: ACTIVE" */
	if (node_line(line, sizeof line, "%s/state", path) == 0) {
		const char *name = strchr(line, ':');
		name = name ? name + 1 + strspn(name + 1, " ") : line;
		count->active += strcmp(name, "ACTIVE") == 0;
		expect_text(e, "rdma.state", place, name);
	} else {
		expect_missing(e, "rdma.state", place, "the port does not tell");
	}
	/* "400 Gb/sec (4X NDR)" */
	if (node_line(line, sizeof line, "%s/rate", path) == 0 &&
		sscanf(line, "%lf Gb/sec", &gigabits) == 1 && gigabits >= 0 && isfinite(gigabits))
		expect_number(e, "rdma.rate", place, gigabits * 1e9 / BITS_PER_BYTE);
	else
		expect_missing(e, "rdma.rate", place, "the port does not tell");
}

static void tell_rdma_adapter(void *context, const char *path)
{
	char line[64];
	if (node_line(line, sizeof line, "%s/fw_ver", path) == 0)
		expect_text(context, "rdma.firmware", node_base(path), line);
	else
		expect_missing(
			context, "rdma.firmware", node_base(path), "the adapter does not tell");
}

void tell_rdma(struct expect *e)
{
	struct port_count count = {.e = e};
	(void)node_each(tell_rdma_adapter, e, "%s/sys/class/infiniband/*", e->root);
	if (node_each(tell_rdma_port, &count, "%s/sys/class/infiniband/*/ports/*", e->root) > 0)
		expect_number(e, "rdma.ports", "", count.active);
	expect_rest_missing(e, "rdma.", "'/sys/class/infiniband' shows no RDMA adapter");
}

/* Of interfaces with hardware of their own that are up. */
static void tell_interface(void *context, const char *path)
{
	struct expect *e = context;
	char state[16];
	double megabits;
	if (!node_has("%s/device", path) || node_line(state, sizeof state, "%s/operstate", path) ||
		strcmp(state, "down") == 0)
		return;
	/* A virtual adapter says -1, or nothing. */
	if (node_number(&megabits, "%s/speed", path) == 0 && megabits < 4294967295.0)
		expect_number(e, "net.rate", node_base(path), megabits * 1e6 / BITS_PER_BYTE);
	else
		expect_missing(
			e, "net.rate", node_base(path), "the adapter does not tell its speed");
}

void tell_network(struct expect *e)
{
	(void)node_each(tell_interface, e, "%s/sys/class/net/*", e->root);
	expect_rest_missing(
		e, "net.", "'/sys/class/net' shows no interface of hardware that is up");
}

/* A disk's texts, each in the first file that has it. */
static const struct {
	const char *figure, *file, *other;
} disk_texts[] = {
	{"disk.model", "device/model", "device/name"},
	{"disk.serial", "device/serial", "serial"},
	{"disk.firmware", "device/firmware_rev", "device/rev"},
};

struct disk_count {
	struct expect *e;
	double disks;
};

static void tell_disk_queue(struct expect *e, const char *disk, const char *path)
{
	char line[128];
	char chosen[128];
	double value;
	if (node_number(&value, "%s/queue/rotational", path) == 0)
		expect_text(e, "disk.rotational", disk, value > 0 ? "yes" : "no");
	else
		expect_missing(e, "disk.rotational", disk, "queue/rotational cannot be read");
	if (node_line(line, sizeof line, "%s/queue/scheduler", path) == 0) {
		parse_bracketed(line, chosen, sizeof chosen);
		expect_text(e, "disk.scheduler", disk, chosen);
	} else {
		expect_missing(e, "disk.scheduler", disk, "queue/scheduler cannot be read");
	}
}

/* Those without a device are made of others or of memory; removable ones may be empty. */
static void tell_disk(void *context, const char *path)
{
	enum { SECTOR_BYTES = 512 };
	struct disk_count *count = context;
	struct expect *e = count->e;
	const char *disk = node_base(path);
	char line[NODE_LINE_BYTES];
	double value;
	if (!node_has("%s/device", path) ||
		(node_number(&value, "%s/removable", path) == 0 && value > 0))
		return;
	count->disks++;
	for (size_t i = 0; i < COUNT(disk_texts); i++)
		if (node_line(line, sizeof line, "%s/%s", path, disk_texts[i].file) == 0 ||
			node_line(line, sizeof line, "%s/%s", path, disk_texts[i].other) == 0)
			expect_text(e, disk_texts[i].figure, disk, line);
		else
			expect_missing(e, disk_texts[i].figure, disk, "the disk does not tell");
	if (node_number(&value, "%s/size", path) == 0)
		expect_number(e, "disk.size", disk, value * SECTOR_BYTES);
	else
		expect_missing(e, "disk.size", disk, "its size cannot be read");
	tell_disk_queue(e, disk, path);
}

void tell_disks(struct expect *e)
{
	struct disk_count count = {.e = e};
	(void)node_each(tell_disk, &count, "%s/sys/block/*", e->root);
	if (count.disks > 0)
		expect_number(e, "disk.count", "", count.disks);
	expect_rest_missing(e, "disk.", "'/sys/block' shows no disk");
}

static void tell_pcie_device(void *context, const char *path)
{
	/* Storage, network, display, accelerators. */
	static const unsigned classes[] = {0x01, 0x02, 0x03, 0x12};
	enum { CLASS_SHIFT = 16, LANES_MAX = 32 };
	struct expect *e = context;
	char place[EXPECT_PLACE_BYTES];
	double class;
	double lanes;
	double most;
	bool looked_at = false;
	if (node_number(&class, "%s/class", path))
		return;
	for (size_t i = 0; i < COUNT(classes); i++)
		looked_at = looked_at || (unsigned)class >> CLASS_SHIFT == classes[i];
	/* What is built in has no link, or says 0 or 255. */
	if (!looked_at || node_number(&lanes, "%s/current_link_width", path) ||
		node_number(&most, "%s/max_link_width", path) || lanes > LANES_MAX ||
		most > LANES_MAX || most == 0)
		return;
	(void)snprintf(place, sizeof place, "PCI %.40s", node_base(path));
	expect_number(e, "pcie.width", place, lanes);
	expect_number(e, "pcie.lost_width", place, most > lanes ? most - lanes : 0);
}

void tell_pcie(struct expect *e)
{
	(void)node_each(tell_pcie_device, e, "%s/sys/bus/pci/devices/*", e->root);
	expect_rest_missing(e, "pcie.",
		"'/sys/bus/pci/devices' shows no link of a disk controller, network adapter or GPU");
}

/* --- the folder that is judged ---------------------------------------------------------------- */

/* Options of the mount and, behind them, those of the file system that are not among them. */
static void join_options(const struct mount_entry *mount, char *out, size_t room)
{
	size_t used = (size_t)snprintf(out, room, "%s", mount->options);
	for (const char *at = mount->super_options; *at && used < room;
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
		const int length = (int)strcspn(at, ",");
		char option[MOUNT_TEXT_BYTES];
		(void)snprintf(option, sizeof option, "%.*s", length, at);
		bool there = false;
		for (const char *old = mount->options; *old && !there;
			old += strcspn(old, ",") + (old[strcspn(old, ",")] == ','))
			there = (int)strcspn(old, ",") == length &&
				strncmp(old, option, (size_t)length) == 0;
		if (length > 0 && !there)
			used += (size_t)snprintf(out + used, room - used, ",%s", option);
	}
	utf8_make_plain(out, '?');
}

static void tell_mount(struct expect *e, const struct mount_entry *mount)
{
	char options[2 * MOUNT_TEXT_BYTES];
	char path[NODE_PATH_BYTES];
	char source[MOUNT_TEXT_BYTES];
	struct block_disk disk;
	join_options(mount, options, sizeof options);
	memcpy(source, mount->source, sizeof source);
	utf8_make_plain(source, '?');
	expect_text(e, "data.file_system", "", mount->type);
	expect_text(e, "data.source", "", source);
	expect_text(e, "mount.options", "", options);
	(void)snprintf(path, sizeof path, "%s/sys/dev/block", e->root);
	block_disk_find_in(path, mount, &disk);
	if (disk.name[0])
		expect_text(e, "data.disk", "", disk.name);
	else
		expect_missing(e, "data.disk", "", "%s", disk.why);
}

static void tell_space(struct expect *e, const char *folder)
{
	struct statvfs fs;
	if (statvfs(folder, &fs)) {
		const int code = errno;
		expect_missing(e, "data.free", "", "statvfs '%s': %s", folder, strerror(code));
		expect_missing(
			e, "data.inodes_free", "", "statvfs '%s': %s", folder, strerror(code));
		return;
	}
	expect_number(e, "data.free", "", (double)fs.f_bavail * (double)fs.f_frsize);
	if (fs.f_files > 0)
		expect_number(e, "data.inodes_free", "", (double)fs.f_favail);
	else
		expect_missing(e, "data.inodes_free", "",
			"the file system makes inodes as it needs them, and does not count them");
}

void tell_data(struct expect *e)
{
	const char *folder = e->context->folder;
	char resolved[PATH_MAX];
	struct mount_entry mount;
	if (!folder || !*folder) {
		expect_rest_missing(e, "data.", "no folder is judged");
		expect_rest_missing(e, "mount.", "no folder is judged");
		return;
	}
	/* A mount that does not answer hangs here: the parent then names this. */
	sink_activity(e->context->sink, "looking at the file system of '%s'", folder);
	char *mountinfo = node_text("%s/proc/self/mountinfo", e->root);
	if (!realpath(folder, resolved))
		expect_rest_missing(e, "mount.", "'%s': %s", folder, strerror(errno));
	else if (mountinfo && parse_mount_of(mountinfo, resolved, &mount))
		tell_mount(e, &mount);
	free(mountinfo);
	tell_space(e, folder);
	expect_rest_missing(
		e, "data.", "/proc/self/mountinfo does not show the mount of '%s'", folder);
	expect_rest_missing(
		e, "mount.", "/proc/self/mountinfo does not show the mount of '%s'", folder);
}
