/* Memory bandwidth of each core, NUMA node and way between two nodes; and what waiting costs: lock hand-off, waking up,
 * looking at the clock. */
#include "harness/checks/ceiling.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/measure/dmi.h"
#include "harness/measure/probe_memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- bandwidth -------------------------------------------------------------------------------- */

static int memory_visit_core(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	double rate;
	const int code = probe_stream_core(
		cell->state, ceiling->cores[cell->index], PROBE_TRIAD, &rate, err);
	ceiling_value(ceiling, cell->figures[0], cell->place, rate);
	return code;
}

static int memory_visit_nodes(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	double rate;
	const int code = probe_stream_nodes(cell->state, cell->index, cell->other, &rate, err);
	ceiling_value(ceiling, cell->figures[0], cell->place, rate);
	return code;
}

static int memory_visit_all(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	double rate;
	const int code = probe_stream_all(cell->state, &rate, err);
	ceiling_value(ceiling, cell->figures[0], cell->place, rate);
	return code;
}

static const char *const memory_figures[] = {
	"memory.core", "memory.node", "memory.across", "memory.all", NULL};

static int memory_add_cores(
	struct ceiling *ceiling, struct probe_streams *streams, struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < ceiling->core_count && !code; i++) {
		struct ceiling_cell cell = {.figures = {"memory.core"},
			.visit = memory_visit_core,
			.state = streams,
			.index = i,
			.parts = CEILING_PARTS,
			.slot_ns = ceiling->slot_ns / 2};
		(void)snprintf(cell.place, sizeof cell.place, "core %u", ceiling->cores[i]);
		(void)snprintf(cell.activity, sizeof cell.activity,
			"reading and writing memory from core %u", ceiling->cores[i]);
		code = ceiling_add(ceiling, &cell, err);
	}
	return code;
}

/* From a node to itself or another. */
static int memory_add_way(struct ceiling *ceiling, struct probe_streams *streams, size_t from,
	size_t to, struct error *err)
{
	const struct probe_memory_node *a = probe_streams_node(streams, from);
	const struct probe_memory_node *b = probe_streams_node(streams, to);
	struct ceiling_cell cell = {.figures = {from == to ? "memory.node" : "memory.across"},
		.visit = memory_visit_nodes,
		.state = streams,
		.index = (unsigned)from,
		.other = (unsigned)to,
		.parts = CEILING_PARTS,
		.slot_ns = ceiling->slot_ns};
	if (from == to)
		(void)snprintf(cell.place, sizeof cell.place, "NUMA node %u", a->number);
	else
		(void)snprintf(cell.place, sizeof cell.place, "%u to %u", a->number, b->number);
	(void)snprintf(cell.activity, sizeof cell.activity,
		"reading and writing memory of NUMA node %u from node %u", b->number, a->number);
	if (a->core_count == 0)
		return 0; /* memory alone: others reach it */
	if (*b->why) {
		ceiling_miss(ceiling, cell.figures, cell.place, b->why);
		return 0;
	}
	return ceiling_add(ceiling, &cell, err);
}

static int memory_add_ways(
	struct ceiling *ceiling, struct probe_streams *streams, struct error *err)
{
	static const char *const across[] = {"memory.across", NULL};
	const size_t nodes = probe_streams_nodes(streams);
	int code = 0;
	for (size_t from = 0; from < nodes && !code; from++)
		for (size_t to = 0; to < nodes && !code; to++)
			code = memory_add_way(ceiling, streams, from, to, err);
	if (nodes == 1)
		ceiling_lack(ceiling, across, NULL, "there is one NUMA node only");
	for (size_t i = 0; i < nodes; i++)
		if (probe_streams_node(streams, i)->unsure) {
			sink_note(ceiling->context->sink,
				"the kernel does not tell on which NUMA node memory lies: first touch was relied on");
			break;
		}
	return code;
}

/* Memory modules by the firmware's table. */
struct memory_modules {
	size_t filled;
	double transfers; /* per second, of all together; NAN: one does not tell */
	bool alike;
};

static struct memory_modules memory_modules_read(const char *root)
{
	struct dmi_module *modules = calloc(DMI_MODULES_MAX, sizeof *modules);
	struct memory_modules found = {.alike = true};
	size_t count = 0;
	double first = 0;
	if (modules)
		(void)dmi_modules_read(root ? root : "", modules, DMI_MODULES_MAX, &count);
	for (size_t i = 0; i < count; i++) {
		if (!(modules[i].bytes > 0))
			continue;
		first = found.filled++ > 0 ? first : modules[i].speed;
		found.alike = found.alike && modules[i].speed == first;
		found.transfers += modules[i].speed * 1e6;
	}
	free(modules);
	return found;
}

/* Each module has 64 bits of data on a channel of its own, as servers are populated for bandwidth.  Nodes have equal
 * shares where all modules are alike; which are whose is not told. */
static void memory_peaks(struct ceiling *ceiling, const struct probe_streams *streams)
{
	enum { CHANNEL_BYTES = 8 };
	const struct memory_modules found = memory_modules_read(ceiling->context->root);
	const double peak = found.transfers * CHANNEL_BYTES;
	const size_t nodes = probe_streams_nodes(streams);
	struct check_sink *sink = ceiling->context->sink;
	char source[128];
	const bool told = found.filled > 0 && isfinite(peak);
	if (!told && (ceiling_needs_peak(ceiling, "memory.node") ||
			     ceiling_needs_peak(ceiling, "memory.all")))
		sink_note(sink,
			"the peak of memory.* is not available: the firmware's DMI table, which only root may "
			"read, does not tell the speed of the memory modules");
	if (!told)
		return;
	(void)snprintf(source, sizeof source,
		"%zu memory modules, %.0f MT/s together, x %d bytes, one a channel", found.filled,
		found.transfers / 1e6, CHANNEL_BYTES);
	if (ceiling_wants(ceiling, "memory.all", ""))
		sink_peak(sink, "memory.all", "", peak, source);
	for (size_t i = 0; i < nodes && found.alike && found.filled % nodes == 0; i++) {
		char place[CEILING_PLACE_BYTES];
		(void)snprintf(place, sizeof place, "NUMA node %u",
			probe_streams_node(streams, i)->number);
		if (ceiling_wants(ceiling, "memory.node", place))
			sink_peak(sink, "memory.node", place, peak / (double)nodes, source);
	}
}

static int memory_open(struct ceiling *ceiling, void **state, struct error *err)
{
	struct probe_streams *streams;
	sink_activity(ceiling->context->sink, "taking memory on each NUMA node");
	int code = probe_streams_open(&streams, 0, &ceiling->control, err);
	*state = streams;
	if (!code)
		code = memory_add_cores(ceiling, streams, err);
	if (!code)
		code = memory_add_ways(ceiling, streams, err);
	const struct ceiling_cell all = {.figures = {"memory.all"},
		.activity = "reading and writing memory from all cores",
		.visit = memory_visit_all,
		.state = streams,
		.parts = CEILING_PARTS,
		.slot_ns = ceiling->slot_ns};
	if (!code)
		memory_peaks(ceiling, streams);
	return code ? code : ceiling_add(ceiling, &all, err);
}

static void memory_close(void *state)
{
	probe_streams_close(state);
}

const struct ceiling_subject ceiling_memory = {
	.figures = memory_figures, .open = memory_open, .close = memory_close};

/* --- waiting ---------------------------------------------------------------------------------- */

enum { SLEEPS = 100, P99_PER_MILLE = 990 };

static const uint64_t HANDOFF_NS = 30 * NS_PER_MS, SLEEPS_NS = 60 * NS_PER_MS;

static int timing_visit_lock(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	double ns;
	const int code = probe_handoff_ns(&ceiling->control, &ns, err);
	ceiling_value(ceiling, "lock.handoff", cell->place, ns);
	return code;
}

static int timing_visit_wake(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	double beyond[SLEEPS];
	double sum = 0;
	(void)err;
	if (probe_oversleep(&ceiling->control, beyond, SLEEPS) < SLEEPS)
		return 0;
	for (size_t i = 0; i < SLEEPS; i++)
		sum += beyond[i];
	ceiling_value(ceiling, "wake.latency", cell->place, sum / SLEEPS);
	ceiling_value(
		ceiling, "wake.tail", cell->place, probe_quantile(beyond, SLEEPS, P99_PER_MILLE));
	return 0;
}

static int timing_visit_clock(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	(void)err;
	ceiling_value(ceiling, "clock.read", cell->place, probe_clock_read_ns());
	return 0;
}

static const char *const timing_figures[] = {
	"lock.handoff", "wake.latency", "wake.tail", "clock.read", NULL};

static int timing_open(struct ceiling *ceiling, void **state, struct error *err)
{
	static const struct ceiling_cell cells[] = {
		{.figures = {"lock.handoff"},
			.activity = "handing a lock over",
			.visit = timing_visit_lock,
			.slot_ns = HANDOFF_NS},
		{.figures = {"wake.latency", "wake.tail"},
			.activity = "sleeping and waking up",
			.visit = timing_visit_wake,
			.slot_ns = SLEEPS_NS},
		{.figures = {"clock.read"},
			.activity = "reading the clock",
			.visit = timing_visit_clock,
			.slot_ns = NS_PER_MS},
	};
	int code = 0;
	*state = NULL;
	for (size_t i = 0; i < COUNT(cells) && !code; i++)
		code = ceiling_add(ceiling, &cells[i], err);
	return code;
}

static void timing_close(void *state)
{
	(void)state;
}

const struct ceiling_subject ceiling_timing = {
	.figures = timing_figures, .open = timing_open, .close = timing_close};
