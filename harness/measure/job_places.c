/* Two looks at mounts, and NVML's samples between them. */
#include "harness/measure/job_places.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/measure/mountstats.h"
#include "harness/measure/node_files.h"
#include "harness/measure/nvml_watch.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call of NVML costs much; a swing of seconds is seen at four samples a second. */
static const uint64_t BUSY_PERIOD_NS = 250 * NS_PER_MS, COPIES_PERIOD_NS = 5 * NS_PER_S;

struct places_mount {
	char point[MOUNT_TEXT_BYTES];
	struct mountstats first;
};

struct job_places_watch {
	struct job_places places;
	char stats_path[NODE_PATH_BYTES];
	struct places_mount mounts[JOB_MOUNTS_MAX];
	struct nvml_watch *nvml;
	struct nvml_watch_options gpus;
	uint64_t begun_ns;
	bool ended;
};

static void places_find_mounts(struct job_places_watch *watch, const char *root, int32_t pid)
{
	struct job_places *places = &watch->places;
	char *text = node_text("%s/proc/%d/mountinfo", root, pid);
	for (const char *line = text; line; line = text_next_line(line)) {
		struct mount_entry entry;
		if (!parse_mount(line, &entry) ||
			(strcmp(entry.type, "nfs") != 0 && strcmp(entry.type, "nfs4") != 0))
			continue;
		if (places->mount_count == JOB_MOUNTS_MAX) {
			places->more_mounts++;
			continue;
		}
		struct places_mount *mount = &watch->mounts[places->mount_count];
		memcpy(mount->point, entry.point, sizeof mount->point);
		(void)snprintf(places->mounts[places->mount_count].system, JOB_NAME_BYTES, "%.31s",
			entry.type);
		mountstats_read(watch->stats_path, mount->point, &mount->first);
		places->mount_count++;
	}
	free(text);
}

/* --- GPUs --------------------------------------------------------------------------------------- */

struct places_bus {
	struct job_places_watch *watch;
	uint64_t devices;
};

/* /proc/driver/nvidia/gpus/0000:3b:00.0/information: "Device Minor: 0". */
static void places_take_bus(void *context, const char *path)
{
	struct places_bus *take = context;
	struct nvml_watch_options *gpus = &take->watch->gpus;
	char *text = node_text("%s", path);
	char bus[NODE_PATH_BYTES];
	double minor;
	if (text && parse_field_number(text, "Device Minor", &minor) && minor >= 0 && minor < 64 &&
		(take->devices >> (unsigned)minor & 1) && gpus->count < DEVICES_MAX) {
		(void)snprintf(bus, sizeof bus, "%s", path);
		char *slash = strrchr(bus, '/');
		*slash = '\0';
		(void)snprintf(
			gpus->buses[gpus->count++], sizeof gpus->buses[0], "%.31s", node_base(bus));
	}
	free(text);
}

static int places_watch_gpus(
	struct job_places_watch *watch, const char *root, uint64_t devices, struct error *err)
{
	struct places_bus take = {watch, devices};
	if (devices == 0)
		return 0;
	watch->gpus.period_ns = BUSY_PERIOD_NS;
	watch->gpus.pcie_period_ns = COPIES_PERIOD_NS;
	(void)node_each(places_take_bus, &take, "%s/proc/driver/nvidia/gpus/*/information", root);
	if (watch->gpus.count == 0) {
		(void)snprintf(watch->places.gpu_why, sizeof watch->places.gpu_why,
			"/proc/driver/nvidia does not tell which GPUs the job has open");
		return 0;
	}
	watch->places.gpus = calloc(watch->gpus.count, sizeof *watch->places.gpus);
	if (!watch->places.gpus)
		return error_set(err, -ENOMEM, "out of memory");
	return nvml_watch_start(&watch->nvml, &watch->gpus, err);
}

static void places_fill_gpus(struct job_places_watch *watch)
{
	struct job_places *places = &watch->places;
	struct measurement *m = watch->nvml ? calloc(1, sizeof *m) : NULL;
	if (!m)
		return;
	const uint64_t now_ns = clock_now_ns();
	m->device_count = watch->gpus.count;
	for (size_t i = 0; i < m->device_count; i++) {
		m->devices[i].index = (unsigned)i;
		(void)snprintf(
			m->devices[i].bus, sizeof m->devices[i].bus, "%s", watch->gpus.buses[i]);
	}
	watch->ended = true;
	nvml_watch_stop(watch->nvml, NVML_STOP_PATIENCE_MS * NS_PER_MS);
	nvml_watch_fill(watch->nvml, watch->begun_ns, now_ns, m);
	for (size_t i = 0; i < m->device_count; i++) {
		struct job_gpu *gpu = &places->gpus[i];
		gpu->device = m->devices[i];
		gpu->count = nvml_watch_series(watch->nvml, i, NVML_KERNEL_RESIDENT,
			watch->begun_ns, now_ns, gpu->t_s, gpu->busy, JOB_BUSY_MAX);
	}
	places->gpu_count = m->device_count;
	if (m->note_count > 0)
		(void)snprintf(places->gpu_why, sizeof places->gpu_why, "%.*s",
			(int)sizeof places->gpu_why - 1, m->notes[0]);
	free(m);
}

/* --- the watch ---------------------------------------------------------------------------------- */

int job_places_begin(struct job_places_watch **out, const char *root, int32_t pid, uint64_t devices,
	struct error *err)
{
	struct job_places_watch *watch = calloc(1, sizeof *watch);
	*out = NULL;
	if (!watch)
		return error_set(err, -ENOMEM, "out of memory");
	watch->begun_ns = clock_now_ns();
	(void)snprintf(watch->stats_path, sizeof watch->stats_path, "%.3900s/proc/%d/mountstats",
		root, pid);
	places_find_mounts(watch, root, pid);
	const int code = places_watch_gpus(watch, root, devices, err);
	if (code)
		job_places_close(watch);
	else
		*out = watch;
	return code;
}

const struct job_places *job_places_end(struct job_places_watch *watch)
{
	const double seconds = (double)(clock_now_ns() - watch->begun_ns) / (double)NS_PER_S;
	struct mountstats *last = calloc(1, sizeof *last);
	for (size_t i = 0; last && i < watch->places.mount_count; i++) {
		struct network_measurement *network = &watch->places.mounts[i].network;
		mountstats_read(watch->stats_path, watch->mounts[i].point, last);
		mountstats_between(&watch->mounts[i].first, last, seconds, network);
		network->server[0] = '\0'; /* whose name is nobody's business */
	}
	if (!last)
		watch->places.mount_count = 0;
	free(last);
	places_fill_gpus(watch);
	return &watch->places;
}

void job_places_close(struct job_places_watch *watch)
{
	if (!watch)
		return;
	if (watch->nvml && !watch->ended)
		nvml_watch_stop(watch->nvml, NVML_STOP_PATIENCE_MS * NS_PER_MS);
	if (watch->nvml)
		nvml_watch_free(watch->nvml);
	free(watch->places.gpus);
	free(watch);
}
