/* What the storage under the scratch folder gives, by reads of a file that was written for it. */
#include "harness/checks/ceiling.h"

#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/measure/proc_text.h"
#include "workloads/source/probe_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMALL,
	LARGE, /* requests of the plan */
	SMALL_BYTES = 4096,
	LARGE_BYTES = 128 * 1024,
	DEEP = 32,
	WRITE_BYTES = 16 << 20,
};

static const uint64_t FILE_QUICK_BYTES = 64 << 20, FILE_BYTES = 256 << 20;
static const uint64_t WRITE_QUICK_NS = 4 * NS_PER_S, WRITE_NS = 30 * NS_PER_S;

struct storage {
	struct probe_read_plan plan;
	struct ceilings sheet; /* notes of the probe */
	struct probe_reads *reads;
};

uint64_t ceiling_scratch_bytes(const struct check_context *context)
{
	const int64_t asked = check_integer(context->check, PLAN_SIZE);
	if (asked > 0)
		return (uint64_t)asked;
	return context->tier == TIER_QUICK ? FILE_QUICK_BYTES : FILE_BYTES;
}

static int storage_visit_direct(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct storage *storage = cell->state;
	double rate;
	double latency;
	const int code =
		probe_reads_slot(storage->reads, PROBE_DIRECT, LARGE, DEEP, &rate, &latency, err);
	ceiling_value(ceiling, "read.direct", cell->place, rate * LARGE_BYTES);
	return code;
}

static int storage_visit_cold(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct storage *storage = cell->state;
	double rate;
	double latency;
	const int code =
		probe_reads_slot(storage->reads, PROBE_COLD, LARGE, DEEP, &rate, &latency, err);
	ceiling_value(ceiling, "read.cold", cell->place, rate * LARGE_BYTES);
	return code;
}

static int storage_visit_latency(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct storage *storage = cell->state;
	double rate;
	double latency;
	const int code =
		probe_reads_slot(storage->reads, PROBE_DIRECT, SMALL, 1, &rate, &latency, err);
	ceiling_value(ceiling, "read.latency", cell->place, latency);
	return code;
}

static int storage_visit_iops(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct storage *storage = cell->state;
	double rate;
	double latency;
	const int code =
		probe_reads_slot(storage->reads, PROBE_DIRECT, SMALL, DEEP, &rate, &latency, err);
	ceiling_value(ceiling, "read.iops", cell->place, rate);
	return code;
}

static int storage_visit_write(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct storage *storage = cell->state;
	double rate;
	const int code = probe_reads_write(storage->reads, WRITE_BYTES, &rate, err);
	ceiling_value(ceiling, "write.synced", cell->place, rate);
	return code;
}

static const char *const storage_figures[] = {
	"read.direct", "read.cold", "read.latency", "read.iops", "write.synced", NULL};

static const char *const storage_reads[] = {
	"read.direct", "read.cold", "read.latency", "read.iops", NULL};

static const struct storage_cell {
	const char *figure, *doing;
	ceiling_visit *visit;
} storage_cells[] = {
	{"read.direct", "reading large requests past the page cache in", storage_visit_direct},
	{"read.cold", "reading through the emptied page cache in", storage_visit_cold},
	{"read.latency", "reading one small request after the other in", storage_visit_latency},
	{"read.iops", "reading small requests at depth 32 in", storage_visit_iops},
	{"write.synced", "writing and syncing in", storage_visit_write},
};

/* Reads into 4 KiB pages give a fraction of those into huge ones, on the same drive: a place of their own, so that no
 * baseline or fleet compares the two. */
static const char *storage_place(const struct storage *storage)
{
	const char *const pages = probe_reads_pages(storage->reads);
	const char *const small = memory_pages_name(MEMORY_PAGES_NORMAL);
	return strcmp(pages, small) == 0 ? small : "";
}

static int storage_add(struct ceiling *ceiling, struct storage *storage, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < COUNT(storage_cells) && !code; i++) {
		struct ceiling_cell cell = {.figures = {storage_cells[i].figure},
			.visit = storage_cells[i].visit,
			.state = storage,
			.slot_ns = probe_reads_slot_ns(storage->reads, ceiling->slot_ns)};
		if (storage_cells[i].visit != storage_visit_write)
			(void)snprintf(cell.place, sizeof cell.place, "%s", storage_place(storage));
		(void)snprintf(cell.activity, sizeof cell.activity, "%s %.40s",
			storage_cells[i].doing, ceiling->context->scratch);
		code = ceiling_add(ceiling, &cell, err);
	}
	return code;
}

static void storage_note(const struct ceiling *ceiling, const struct storage *storage)
{
	struct check_sink *sink = ceiling->context->sink;
	char size[UNITS_BYTES];
	char flags[8192];
	sink_note(sink,
		"storage: a scratch file of %s in %s, read at random by %s into %s; the page cache was emptied before "
		"each cold slot, and looked at (below 0.5 %% of the file)",
		units_format_size(storage->sheet.scratch_bytes, size), ceiling->context->scratch,
		storage->sheet.engine, probe_reads_pages(storage->reads));
	for (size_t i = 0; probe_reads_limit(storage->reads)[0] && storage_reads[i]; i++) {
		sink_event(sink, storage_reads[i], storage_place(storage), NAN,
			"a control group of this process limits reads to %s",
			probe_reads_limit(storage->reads));
		sink_condition(sink, storage_reads[i], storage_place(storage), CONDITION_LIMITED,
			"%s", probe_reads_limit(storage->reads));
	}
	for (size_t i = 0; i < storage->sheet.note_count; i++)
		sink_note(sink, "storage: %s", storage->sheet.notes[i]);
	char *cpuinfo = proc_text("/proc/cpuinfo");
	if (cpuinfo && parse_field(cpuinfo, "flags", flags, sizeof flags) &&
		parse_has_word(flags, "hypervisor"))
		sink_note(sink,
			"storage: a virtual machine: its host may keep the disk in memory; cold is cold in this "
			"system only");
	free(cpuinfo);
}

static int storage_open(struct ceiling *ceiling, void **state, struct error *err)
{
	const struct check_context *context = ceiling->context;
	const bool quick = context->tier == TIER_QUICK;
	struct storage *storage = calloc(1, sizeof *storage);
	*state = storage;
	if (!storage)
		return error_set(err, -ENOMEM, "out of memory");
	ceilings_init(&storage->sheet);
	storage->plan = (struct probe_read_plan){.folder = context->scratch,
		.cold_bytes = ceiling_scratch_bytes(context),
		.write_ns = quick ? WRITE_QUICK_NS : WRITE_NS,
		.sizes = {[SMALL] = SMALL_BYTES, [LARGE] = LARGE_BYTES},
		.size_count = 2,
		.seed = context->round};
	sink_activity(context->sink, "writing a scratch file in %s", context->scratch);
	int code = probe_reads_open(
		&storage->reads, &storage->plan, &ceiling->control, &storage->sheet, err);
	if (!code)
		code = storage_add(ceiling, storage, err);
	if (!code)
		storage_note(ceiling, storage);
	/* Not to be written is a fault of the storage's, not a lack of the node's. */
	return ceiling_is_lack(code) ? -EIO : code;
}

static void storage_close(void *state)
{
	struct storage *storage = state;
	if (storage)
		probe_reads_close(storage->reads);
	free(storage);
}

const struct ceiling_subject ceiling_storage = {
	.figures = storage_figures, .open = storage_open, .close = storage_close};
