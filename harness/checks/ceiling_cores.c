/* What cores give: samples decoded and matrix products, each core alone and all at once, with the clock where the kernel
 * tells it.  Cores that are offline, and those that refuse a thread, are named. */
#include "harness/checks/ceiling.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/measure/proc_text.h"
#include "workloads/backend/probe_compute.h"
#include "workloads/dataset/probe_decode.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 6, LIST_BYTES = 512 };

/* --- which cores ------------------------------------------------------------------------------ */

bool ceiling_list_has(const char *list, unsigned number)
{
	while (*list) {
		char *end;
		const unsigned long first = strtoul(list, &end, 10);
		if (end == list)
			return false;
		unsigned long last = first;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (number >= first && number <= last)
			return true;
		list = end + (*end == ',');
	}
	return false;
}

static bool read_line_below(const struct ceiling *ceiling, const char *path, char *out, size_t room)
{
	char full[PATH_MAX];
	(void)snprintf(full, sizeof full, "%s%s",
		ceiling->context->root ? ceiling->context->root : "", path);
	return files_first_line(full, out, room) == 0;
}

/* Cores that are there and offline; but siblings that are switched off on purpose (SMT off) are no fault. */
static void cores_say_offline(struct ceiling *ceiling, const char *const *figures)
{
	char present[LIST_BYTES];
	char online[LIST_BYTES];
	char smt[32] = "";
	char place[CEILING_PLACE_BYTES];
	char why[PROBE_WHY_BYTES];
	if (ceiling->context->open ||
		!read_line_below(ceiling, "/sys/devices/system/cpu/present", present, LIST_BYTES) ||
		!read_line_below(ceiling, "/sys/devices/system/cpu/online", online, LIST_BYTES))
		return;
	(void)read_line_below(ceiling, "/sys/devices/system/cpu/smt/control", smt, sizeof smt);
	if (strcmp(smt, "off") == 0 || strcmp(smt, "forceoff") == 0)
		return;
	for (unsigned core = 0; core < UINT16_MAX; core++) {
		if (!ceiling_list_has(present, core) || ceiling_list_has(online, core))
			continue;
		(void)snprintf(place, sizeof place, "core %u", core);
		(void)snprintf(why, sizeof why, "core %u is offline", core);
		ceiling_miss(ceiling, figures, place, why);
	}
}

/* A cell of each core that this process may use. */
static int cores_add(struct ceiling *ceiling, const struct ceiling_cell *like, const char *doing,
	struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < ceiling->core_count && !code; i++) {
		struct ceiling_cell cell = *like;
		cell.index = i;
		(void)snprintf(cell.place, sizeof cell.place, "core %u", ceiling->cores[i]);
		(void)snprintf(cell.activity, sizeof cell.activity, "%s on core %u", doing,
			ceiling->cores[i]);
		code = ceiling_add(ceiling, &cell, err);
	}
	return code;
}

/* --- decoding --------------------------------------------------------------------------------- */

struct cores_decode {
	struct config config;
	struct probe_samples samples;
	struct probe_decoding *decoding; /* worker i is the i-th core's */
};

static int decode_visit_core(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct cores_decode *decode = cell->state;
	double rate;
	const int code = probe_decoding_slot(
		decode->decoding, &ceiling->cores[cell->index], cell->index, 1, &rate, err);
	ceiling_value(ceiling, "decode.core", cell->place, rate);
	return code;
}

static int decode_visit_all(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct cores_decode *decode = cell->state;
	double rate;
	const int code =
		probe_decoding_slot(decode->decoding, NULL, 0, ceiling->core_count, &rate, err);
	ceiling_value(ceiling, "decode.all", cell->place, rate);
	return code;
}

static const char *const decode_figures[] = {"decode.core", "decode.all", NULL};

static int decode_add(struct ceiling *ceiling, struct cores_decode *decode, struct error *err)
{
	struct ceiling_cell cell = {.figures = {"decode.core"},
		.visit = decode_visit_core,
		.state = decode,
		.slot_ns = ceiling->slot_ns,
		.parts = CEILING_PARTS,
		.warms = true};
	const int code = cores_add(ceiling, &cell, "decoding", err);
	cell.figures[0] = "decode.all";
	cell.visit = decode_visit_all;
	(void)snprintf(cell.activity, sizeof cell.activity, "decoding on all %u cores",
		ceiling->core_count);
	return code ? code : ceiling_add(ceiling, &cell, err);
}

static int decode_open(struct ceiling *ceiling, void **state, struct error *err)
{
	static const char *const per_core[] = {"decode.core", NULL};
	struct cores_decode *decode = calloc(1, sizeof *decode);
	*state = decode;
	if (!decode)
		return error_set(err, -ENOMEM, "out of memory");
	sink_activity(ceiling->context->sink, "making the pictures that are decoded");
	config_init(&decode->config);
	int code = probe_samples_make(
		&decode->config, SAMPLES, &ceiling->control, &decode->samples, err);
	if (!code)
		code = probe_decoding_open(&decode->decoding, &decode->config, &decode->samples,
			ceiling->core_count, &ceiling->control, err);
	if (!code)
		code = decode_add(ceiling, decode, err);
	if (!code)
		sink_note(ceiling->context->sink, "decoding: %s", decode->samples.what);
	cores_say_offline(ceiling, per_core);
	return code;
}

static void decode_close(void *state)
{
	struct cores_decode *decode = state;
	if (!decode)
		return;
	probe_decoding_close(decode->decoding);
	probe_samples_release(&decode->samples);
	config_release(&decode->config);
	free(decode);
}

const struct ceiling_subject ceiling_decode = {
	.figures = decode_figures, .open = decode_open, .close = decode_close};

/* --- peaks ------------------------------------------------------------------------------------ */

/* Two units for fused multiply-add of 8 or 16 floats; one, or halves of one, where it says so.  From the makers'
 * optimisation guides: AMD's for family 17h (Zen, 2), 19h (Zen 3, 4) and 1Ah (Zen 5); Intel's for models with AVX-512,
 * whose number of units depends on the product. */
static unsigned flop_per_cycle_amd(unsigned long family, unsigned long model)
{
	enum {
		ZEN = 0x17,
		ZEN_2_MODEL = 0x30,
		ZEN_3_4 = 0x19,
		ZEN_5 = 0x1A,
		ZEN_5_SERVER_MOST = 0x1F
	};
	if (family == ZEN)
		return model < ZEN_2_MODEL ? 16 : 32;
	if (family == ZEN_3_4)
		return 32;
	return family == ZEN_5 && model <= ZEN_5_SERVER_MOST ? 64 : 0;
}

static unsigned flop_per_cycle_intel(unsigned long model, const char *name)
{
	enum {
		SKYLAKE_SP = 0x55,
		ICE_LAKE_SP = 0x6A,
		SAPPHIRE = 0x8F,
		EMERALD = 0xCF,
		GRANITE = 0xAD
	};
	const bool two_units =
		strstr(name, "Platinum") || strstr(name, "Gold 6") || strstr(name, "Xeon(R) W-");
	if (model == SAPPHIRE || model == EMERALD || model == GRANITE)
		return 64;
	return (model == SKYLAKE_SP || model == ICE_LAKE_SP) && two_units ? 64 : 0;
}

unsigned ceiling_flop_per_cycle(const char *cpuinfo, char *why, size_t room)
{
	char vendor[64] = "";
	char family[16] = "";
	char model[16] = "";
	char name[128] = "";
	char flags[8192] = "";
	(void)parse_field(cpuinfo, "vendor_id", vendor, sizeof vendor);
	(void)parse_field(cpuinfo, "cpu family", family, sizeof family);
	(void)parse_field(cpuinfo, "model", model, sizeof model);
	(void)parse_field(cpuinfo, "model name", name, sizeof name);
	(void)parse_field(cpuinfo, "flags", flags, sizeof flags);
	unsigned flop = 0;
	if (strcmp(vendor, "AuthenticAMD") == 0)
		flop = flop_per_cycle_amd(strtoul(family, NULL, 10), strtoul(model, NULL, 10));
	else if (parse_has_word(flags, "avx512f"))
		flop = flop_per_cycle_intel(strtoul(model, NULL, 10), name);
	else if (parse_has_word(flags, "avx2") && parse_has_word(flags, "fma"))
		flop = 32;
	if (flop == 0)
		(void)snprintf(why, room, "how many FLOP per cycle %.64s does is not known here",
			*name ? name : "this CPU");
	return flop;
}

struct core_peak {
	unsigned flop; /* per cycle; 0: unknown */
	char why[PROBE_WHY_BYTES];
};

static double core_mhz(const struct ceiling *ceiling, unsigned core, const char *file)
{
	char path[128];
	char text[32];
	(void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/%s", core, file);
	const bool known = read_line_below(ceiling, path, text, sizeof text);
	const double khz = known ? strtod(text, NULL) : 0;
	return khz > 0 ? khz / 1e3 : (double)NAN;
}

static void core_peak_read(const struct ceiling *ceiling, struct core_peak *peak)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/proc/cpuinfo",
		ceiling->context->root ? ceiling->context->root : "");
	char *cpuinfo = proc_text(path);
	peak->flop = ceiling_flop_per_cycle(cpuinfo ? cpuinfo : "", peak->why, sizeof peak->why);
	free(cpuinfo);
	if (peak->flop && isnan(core_mhz(ceiling, ceiling->cores[0], "cpuinfo_max_freq"))) {
		peak->flop = 0;
		(void)snprintf(peak->why, sizeof peak->why,
			"the kernel does not tell the maximal clock (no cpufreq, as in most virtual machines)");
	}
}

static void core_peaks_hand_over(const struct ceiling *ceiling)
{
	struct check_sink *sink = ceiling->context->sink;
	struct core_peak peak = {0};
	char place[CEILING_PLACE_BYTES];
	char source[128];
	double all = 0;
	core_peak_read(ceiling, &peak);
	for (unsigned i = 0; i < ceiling->core_count; i++) {
		const double mhz = core_mhz(ceiling, ceiling->cores[i], "cpuinfo_max_freq");
		(void)snprintf(place, sizeof place, "core %u", ceiling->cores[i]);
		if (isfinite(mhz) && ceiling_wants(ceiling, "cpu.clock", place))
			sink_peak(sink, "cpu.clock", place, mhz, "maximal clock, by cpufreq");
		if (!peak.flop || isnan(mhz))
			continue;
		all += mhz * 1e6 * peak.flop;
		(void)snprintf(source, sizeof source, "%.2f GHz x %u FLOP per cycle", mhz / 1e3,
			peak.flop);
		if (ceiling_wants(ceiling, "gemm.core", place))
			sink_peak(sink, "gemm.core", place, mhz * 1e6 * peak.flop, source);
	}
	(void)snprintf(source, sizeof source,
		"the sum of %u cores' maximal clock x %u FLOP per cycle", ceiling->core_count,
		peak.flop);
	if (all > 0 && ceiling_wants(ceiling, "gemm.all", ""))
		sink_peak(sink, "gemm.all", "", all, source);
	if (!peak.flop && (ceiling_needs_peak(ceiling, "gemm.core") ||
				  ceiling_needs_peak(ceiling, "gemm.all")))
		sink_note(
			sink, "the peak of gemm.core and gemm.all is not available: %s", peak.why);
}

/* --- matrix products -------------------------------------------------------------------------- */

struct cores_gemm {
	struct probe_gemm_plan plan;
	struct probe_gemms *gemms;
	size_t one, all; /* products of them */
	bool tells_clock;
};

/* A slot on the core that its thread was pinned to. */
struct gemm_slot {
	const struct ceiling *ceiling;
	const struct cores_gemm *gemm;
	unsigned core;
	double flops, mhz;
	int code;
	struct error *err;
};

static void gemm_on_core(void *context, unsigned index)
{
	struct gemm_slot *slot = context;
	(void)index;
	slot->code = probe_gemms_slot(slot->gemm->gemms, slot->gemm->one, &slot->flops, slot->err);
	if (slot->gemm->tells_clock)
		slot->mhz = core_mhz(slot->ceiling, slot->core, "scaling_cur_freq");
}

static int gemm_visit_core(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	struct gemm_slot slot = {.ceiling = ceiling,
		.gemm = cell->state,
		.core = ceiling->cores[cell->index],
		.flops = NAN,
		.mhz = NAN,
		.err = err};
	const int code = probe_crew_on(&slot.core, 1, gemm_on_core, &slot, err);
	if (code || slot.code)
		return code ? code : slot.code;
	ceiling_value(ceiling, "gemm.core", cell->place, slot.flops);
	ceiling_value(ceiling, "cpu.clock", cell->place, slot.mhz);
	return 0;
}

static int gemm_visit_all(
	struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	const struct cores_gemm *gemm = cell->state;
	double flops;
	const int code = probe_gemms_slot(gemm->gemms, gemm->all, &flops, err);
	ceiling_value(ceiling, "gemm.all", cell->place, flops);
	return code;
}

static const char *const gemm_figures[] = {"gemm.core", "gemm.all", "cpu.clock", NULL};

static int gemm_add(struct ceiling *ceiling, struct cores_gemm *gemm, struct error *err)
{
	struct ceiling_cell cell = {
		.figures = {"gemm.core", gemm->tells_clock ? "cpu.clock" : NULL},
		.visit = gemm_visit_core,
		.state = gemm,
		.slot_ns = ceiling->slot_ns,
		.parts = CEILING_PARTS,
		.warms = true};
	const int code = cores_add(ceiling, &cell, "multiplying matrices", err);
	cell.figures[0] = "gemm.all";
	cell.figures[1] = NULL;
	cell.visit = gemm_visit_all;
	cell.slot_ns += cell.slot_ns / 2;
	(void)snprintf(cell.activity, sizeof cell.activity, "multiplying matrices on all %u cores",
		ceiling->core_count);
	return code ? code : ceiling_add(ceiling, &cell, err);
}

/* Large enough for the cores to be the limit, and small enough for a slot. */
static unsigned gemm_edge(unsigned cores)
{
	return cores <= 4 ? 1024 : cores <= 32 ? 2048 : 4096;
}

static int gemm_open(struct ceiling *ceiling, void **state, struct error *err)
{
	static const char *const per_core[] = {"gemm.core", "cpu.clock", NULL};
	static const char *const clock[] = {"cpu.clock", NULL};
	enum { EDGE = 512 };
	const bool all = ceiling_wants(ceiling, "gemm.all", "");
	struct cores_gemm *gemm = calloc(1, sizeof *gemm);
	*state = gemm;
	if (!gemm)
		return error_set(err, -ENOMEM, "out of memory");
	gemm->plan = (struct probe_gemm_plan){.edges = {EDGE, gemm_edge(ceiling->core_count)},
		.edge_count = all ? 2 : 1,
		.all_threads = ceiling->core_count};
	gemm->tells_clock = isfinite(core_mhz(ceiling, ceiling->cores[0], "scaling_cur_freq"));
	int code = probe_gemms_open(&gemm->gemms, &gemm->plan, &ceiling->control, err);
	if (!code) {
		gemm->one = probe_gemms_find(gemm->gemms, EDGE, 1);
		gemm->all =
			probe_gemms_find(gemm->gemms, gemm->plan.edges[all], ceiling->core_count);
		code = gemm_add(ceiling, gemm, err);
	}
	if (!code)
		core_peaks_hand_over(ceiling);
	if (!code && !gemm->tells_clock)
		ceiling_lack(ceiling, clock, NULL,
			"the kernel does not tell the clock of cores (no cpufreq, as in most virtual machines)");
	cores_say_offline(ceiling, per_core);
	return code;
}

static void gemm_close(void *state)
{
	struct cores_gemm *gemm = state;
	if (gemm)
		probe_gemms_close(gemm->gemms);
	free(gemm);
}

const struct ceiling_subject ceiling_gemm = {
	.figures = gemm_figures, .open = gemm_open, .close = gemm_close};
