/* Statistics of a record, and the questions that all writers ask. */
#include "harness/report/report.h"

#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/config/shape.h"
#include "harness/config/tables.h"
#include "harness/record/config_json.h"
#include "harness/report/rounds.h"
#include "harness/report/saved_diagnoses.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the data's storage gives at best on this node, cold, for files of the data set's size; 0: not
 * known. */
static double storage_ceiling(const struct record *record)
{
	const struct fact *bytes = fact_find(&record->environment, "dataset", "bytes");
	const struct fact *samples = fact_find(&record->environment, "dataset", "samples");
	if (!record->has_ceilings || !bytes || !samples || bytes->kind != FACT_NUMBER ||
		samples->kind != FACT_NUMBER)
		return 0;
	const double best = ceilings_read_bytes_per_s(
		&record->ceilings, bytes->number / samples->number, 0, true);
	return isnan(best) ? 0 : best;
}

/* The least of the machine's memory and the cgroup's limit; 0: neither is known. */
static double memory_limit(const struct record *record)
{
	const struct fact *total = fact_find(&record->environment, "memory", "total");
	const struct fact *limit = fact_find(&record->environment, "cgroup", "memory_limit");
	double least = 0;
	if (total && total->kind == FACT_NUMBER)
		least = total->number;
	if (limit && limit->kind == FACT_NUMBER && (least <= 0 || limit->number < least))
		least = limit->number;
	return least;
}

/* A control group's limit: the lower of the two, of which memory.high kills nobody. */
static void cache_limit_of(const struct record *record, struct point_facts *facts)
{
	static const char *const limits[] = {"memory_limit", "memory_high"};
	static const char *const groups[] = {"memory_limit_group", "memory_high_group"};
	const struct fact *version = fact_find(&record->environment, "cgroup", "version");
	const bool v1 = version && version->kind == FACT_NUMBER && version->number < 2;
	const char *const names[] = {v1 ? "memory.limit_in_bytes" : "memory.max", "memory.high"};
	const struct fact *total = fact_find(&record->environment, "memory", "total");
	facts->machine_bytes = total && total->kind == FACT_NUMBER ? total->number : 0;
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		const struct fact *limit = fact_find(&record->environment, "cgroup", limits[i]);
		const struct fact *group = fact_find(&record->environment, "cgroup", groups[i]);
		const double least = facts->cache_limit_bytes;
		if (!limit || limit->kind != FACT_NUMBER || !group || group->kind != FACT_TEXT ||
			(least > 0 && limit->number >= least))
			continue;
		facts->cache_limit_bytes = limit->number;
		(void)snprintf(
			facts->cache_limit_name, sizeof facts->cache_limit_name, "%s", names[i]);
		(void)snprintf(facts->cache_limit_group, sizeof facts->cache_limit_group, "%s",
			group->text);
	}
}

static const char *data_text(const struct record *record, const char *name)
{
	const struct fact *fact = fact_find(&record->environment, "data", name);
	return fact && fact->kind == FACT_TEXT ? fact->text : "";
}

/* Of one over a network or in user space, what the file system itself was told matters; of one on a disk, the mount's own
 * options. */
static void mount_of(const struct record *record, char out[MOUNT_WORDS_BYTES])
{
	const char *type = data_text(record, "file_system");
	const char *super = data_text(record, "super_options");
	const bool on_disk = data_text(record, "disk")[0] || !super[0];
	const char *told = on_disk ? data_text(record, "options") : super;
	const int room = MOUNT_WORDS_BYTES - (int)sizeof " (...)" - (int)strlen(type);
	if (type[0] && room > 0)
		(void)snprintf(out, MOUNT_WORDS_BYTES, "%s (%.*s%s)", type, room, told,
			(int)strlen(told) > room ? "..." : "");
}

const char *report_stage_item(const struct stage_summary *stage)
{
	if (stage_is(stage->name, STAGE_CHECKPOINT))
		return "checkpoint";
	if (stage_is(stage->name, STAGE_EVALUATE))
		return "evaluation";
	return stage->per_batch ? "batch" : "sample";
}

/* What so many decode workers gave alone: only where every swept key leaves decoding itself as it is; 0: not
 * known. */
static double decode_alone(const struct record *record, long long workers)
{
	static const char *const harmless[] = {"batch", "prefetch", "decode", "read", "upload",
		"step", "sync", "checkpoint", "evaluate"};
	for (size_t axis = 0; axis < record->config.axis_count; axis++) {
		const char *section = config_keys[record->config.axes[axis].key].section;
		bool known = false;
		if (record->config.axes[axis].key == KEY_DECODE_THREADS)
			return 0;
		for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
			known = known || strcmp(section, harmless[i]) == 0;
		if (!known)
			return 0;
	}
	for (size_t i = 0; i < record->limit_count; i++) {
		const struct stage_limit *limit = &record->limits[i];
		long long alone;
		if (stage_is(limit->stage, STAGE_DECODE) && isfinite(limit->capacity) &&
			sscanf(limit->how, "alone: %lld worker", &alone) == 1 && alone == workers)
			return limit->capacity;
	}
	return 0;
}

/* Of a folder without a recipe nobody knows here what is in it. */
static bool may_hold(const struct config *config, enum dataset_format format)
{
	return config_integer(config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE ||
	       config_integer(config, KEY_DATASET_FORMAT) == (int64_t)format;
}

static void report_facts_of(const struct record *record, const struct config *config,
	const struct workload_facts *workload, struct point_facts *facts)
{
	*facts = (struct point_facts){
		.cores = record->cores,
		.decode_workers = (unsigned)config_integer(config, KEY_DECODE_WORKERS),
		.read_threads = shape_readers(config),
		.read_depth = shape_read_depth(config),
		.by_workers = shape_by_workers(config),
		.turns = config_integer(config, KEY_PREFETCH_DEPTH) == 0,
		.step_threads = workload->step_on_cores
					? (unsigned)config_integer(config, KEY_STEP_THREADS)
					: 0,
		.worker_threads = (unsigned)config_integer(config, KEY_DECODE_THREADS),
		.batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.prefetch_depth = (uint32_t)config_integer(config, KEY_PREFETCH_DEPTH),
		.overhead_sample_ns = config_real(config, KEY_OVERHEAD_SAMPLE),
		.overhead_batch_ns = config_real(config, KEY_OVERHEAD_BATCH),
		.overhead_step_ns = config_real(config, KEY_OVERHEAD_STEP),
		.declared = declared_batch_of(config),
		.step_emulated = workload->step_emulated,
		.pictures = workload->uses_codecs,
		.may_be_jpeg = workload->uses_codecs && may_hold(config, DATASET_FORMAT_JPEG) &&
			       !config_integer(config, KEY_CODEC_JPEG_SCALED),
		.may_be_png = workload->uses_codecs && may_hold(config, DATASET_FORMAT_PNG) &&
			      config_integer(config, KEY_CODEC_PNG) == CODEC_PNG_LIBPNG,
		.reads_memory = workload->reads_memory,
		.reads_large = workload->reads_large,
		.reads_block = workload->reads_block,
		.reads_direct = config_on(config, KEY_READ_DIRECT),
		.any_order = config_integer(config, KEY_BATCH_ORDER) == BATCH_ORDER_AS_COMPLETED,
		.storage_bytes_per_s = storage_ceiling(record),
		.decode_alone =
			decode_alone(record, (long long)config_integer(config, KEY_DECODE_WORKERS)),
		.memory_limit_bytes = memory_limit(record),
		.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
		.duration_s = (double)config_integer(config, KEY_MEASURE_DURATION) * 1e-9,
		.warmup_s = (double)config_integer(config, KEY_MEASURE_WARMUP) * 1e-9,
		/* Of a sequential sweep each point has its own number. */
		.repeats = record_is_sequential(&record->config)
				   ? 0
				   : (unsigned)config_integer(config, KEY_MEASURE_REPEATS),
		.epochs = (unsigned)config_integer(config, KEY_MEASURE_EPOCHS),
	};
	if (record->has_ceilings)
		memcpy(facts->storage_pages, record->ceilings.read_pages,
			sizeof facts->storage_pages);
	cache_limit_of(record, facts);
	mount_of(record, facts->mount);
}

int report_facts(const struct report *report, size_t point, const struct workload_facts *workload,
	struct point_facts *facts, struct error *err)
{
	const struct record *record = report->record;
	struct config config = {0};
	const int code = config_grid_point(&record->config, &record->grid, point, &config, err);
	if (!code)
		report_facts_of(record, &config, workload, facts);
	config_release(&config);
	return code;
}

static int report_summarise(struct report *report, size_t point,
	const struct measurement *const *repeats, size_t count, struct error *err)
{
	struct point_facts facts;
	struct point_summary *summary = calloc(1, sizeof *summary);
	if (!summary)
		return error_set(err, -ENOMEM, "out of memory for the summary");
	const struct workload_facts workload = summary_facts(repeats, count);
	int code = report_facts(report, point, &workload, &facts, err);
	if (!code)
		code = summary_of_point(repeats, count, &facts, summary, err);
	if (code) {
		point_summary_release(summary);
		free(summary);
		return code;
	}
	summary->id = (uint32_t)point;
	report->points[point] = summary;
	return 0;
}

struct place {
	uint32_t point;
	size_t entry;
};

static int order_by_point(const void *a, const void *b)
{
	const struct place *left = a;
	const struct place *right = b;
	if (left->point != right->point)
		return left->point < right->point ? -1 : 1;
	return left->entry < right->entry ? -1 : left->entry > right->entry;
}

/* Loads the repetitions of one point, for as long as they are summarised. */
static int summarise_point(
	struct report *report, const struct place *places, size_t count, struct error *err)
{
	struct measurement *repeats = calloc(count, sizeof *repeats);
	const struct measurement **list = calloc(count, sizeof(const struct measurement *));
	int code = repeats && list ? 0 : error_set(err, -ENOMEM, "out of memory for the summary");
	for (size_t i = 0; i < count && !code; i++) {
		code = record_load(report->record, places[i].entry, &repeats[i], err);
		list[i] = &repeats[i];
		if (!code && checksums_add(&report->checksums, report->record, &repeats[i]))
			code = error_set(err, -ENOMEM, "out of memory for the checksums");
	}
	if (!code)
		code = report_summarise(report, places[0].point, list, count, err);
	for (size_t i = 0; repeats && i < count; i++)
		measurement_release(&repeats[i]);
	free(list);
	free(repeats);
	return code;
}

static int summarise_all(
	struct report *report, const struct place *sorted, size_t count, struct error *err)
{
	int code = 0;
	for (size_t first = 0; first < count && !code;) {
		size_t last = first;
		while (last < count && sorted[last].point == sorted[first].point)
			last++;
		code = summarise_point(report, sorted + first, last - first, err);
		first = last;
	}
	return code;
}

static bool has_rate(const struct point_summary *p)
{
	return p && p->status != POINT_FAILED && !isnan(p->median);
}

static const struct config_value *report_value_at(
	const struct report *report, size_t point, size_t axis)
{
	const struct config_grid *grid = &report->record->grid;
	const size_t choice = grid->choice[point * grid->axis_count + axis];
	return &report->record->config.axes[axis].values[choice];
}

/* Rank of the point's value among its axis's values: the number of smaller ones. */
static size_t report_rank_of(const struct report *report, size_t point, size_t axis)
{
	const struct config_axis *a = &report->record->config.axes[axis];
	const struct config_value *mine = report_value_at(report, point, axis);
	const enum key_type type = config_keys[a->key].type;
	const bool real = type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE;
	size_t rank = 0;
	for (size_t i = 0; i < a->count; i++)
		rank += real ? a->values[i].real < mine->real
			     : a->values[i].integer < mine->integer;
	return rank;
}

/* The sum of ranks; SIZE_MAX: it has another text or choice than the point that it is compared with, and of these
 * none is less than another. */
static size_t cost_of(const struct report *report, size_t point, size_t beside)
{
	size_t cost = 0;
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++) {
		const enum key_type type = config_keys[report->record->config.axes[axis].key].type;
		const bool ordered = type != KEY_TYPE_TEXT && type != KEY_TYPE_CHOICE;
		if (!ordered && report_value_at(report, point, axis) !=
					report_value_at(report, beside, axis))
			return SIZE_MAX;
		cost += ordered ? report_rank_of(report, point, axis) : 0;
	}
	return cost;
}

bool report_same_workload(const struct report *report, size_t a, size_t b)
{
	return config_grid_same_workload(&report->record->config, &report->record->grid, a, b);
}

size_t report_fastest_like(const struct report *report, size_t like)
{
	const size_t points = report->record->grid.points;
	size_t best = points;
	for (size_t i = 0; i < points && like < points; i++) {
		const struct point_summary *p = report->points[i];
		if (!p || !has_rate(p) || !report_same_workload(report, i, like))
			continue;
		const bool steadier = best < points && p->status == POINT_OK &&
				      report->points[best]->status != POINT_OK;
		const bool shakier = best < points && p->status != POINT_OK &&
				     report->points[best]->status == POINT_OK;
		if (best == points || steadier ||
			(!shakier && p->median > report->points[best]->median))
			best = i;
	}
	return best;
}

/* Half of its 95 % interval over the throughput; 0: it has none. */
static double relative_noise(const struct point_summary *p)
{
	const double half = fmax(p->ci95.high - p->median, p->median - p->ci95.low);
	return half > 0 ? half / p->median : 0;
}

/* Whether what the second gives less may be noise.  A difference of 2 % is no reason to take more
 * cores, and one of 10 % is told however wide the intervals are. */
static bool is_tied(const struct report *report, size_t fastest_point, size_t point)
{
	static const double LEAST = STOP_DIFFERENCE;
	static const double MOST = 0.10;
	const struct point_summary *fastest = report->points[fastest_point];
	const struct point_summary *other = report->points[point];
	const bool worse = report->decided && report->decided[point].state == STOP_WORSE;
	const double noise = worse ? 0 : hypot(relative_noise(fastest), relative_noise(other));
	return other->status == fastest->status &&
	       other->median >= fastest->median * (1 - fmin(fmax(noise, LEAST), MOST));
}

/* share: of the fastest one's throughput that it may lack; negative: as much as may be noise. */
static size_t smallest_like(const struct report *report, size_t like, double share)
{
	const size_t points = report->record->grid.points;
	const size_t fastest = report_fastest_like(report, like);
	size_t chosen = fastest;
	size_t cost = fastest < points ? cost_of(report, fastest, fastest) : 0;
	for (size_t i = 0; i < points && fastest < points; i++) {
		const struct point_summary *p = report->points[i];
		if (!has_rate(p) || !report_same_workload(report, i, like) ||
			!(share < 0 ? is_tied(report, fastest, i)
				    : p->median >= report->points[fastest]->median * (1 - share)))
			continue;
		const size_t other = cost_of(report, i, fastest);
		if (other < cost) {
			chosen = i;
			cost = other;
		}
	}
	return chosen;
}

size_t report_best_like(const struct report *report, size_t like)
{
	return smallest_like(report, like, -1);
}

size_t report_smallest_within(const struct report *report, double share)
{
	return smallest_like(report, report->best, share);
}

static void count_points(struct report *report)
{
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++) {
		const struct point_summary *p = report->points[i];
		if (!p)
			continue;
		report->good += p->status == POINT_OK;
		report->unsteady += p->status == POINT_UNSTEADY;
		report->failed += p->status == POINT_FAILED;
		report->left_out += p->left_out;
	}
	size_t first = 0;
	while (first < points && !has_rate(report->points[first]))
		first++;
	report->best = report_best_like(report, first);
}

static int report_decide(struct report *report, struct error *err)
{
	enum { FEW = 3 };
	const struct record *record = report->record;
	size_t rounds = 0;
	if (!record_is_sequential(&record->config))
		return 0;
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].repeat >= rounds)
			rounds = (size_t)record->entries[i].repeat + 1;
	report->decided = calloc(record->grid.points, sizeof *report->decided);
	if (!report->decided)
		return error_set(err, -ENOMEM, "out of memory for the summary");
	const int wanted = rounds_judge(record, rounds, report->decided, err);
	if (wanted < 0)
		return wanted;
	for (size_t i = 0; i < record->grid.points; i++) {
		struct point_summary *p = report->points[i];
		if (!p || p->repeat_count == 0 || p->repeat_count >= FEW)
			continue;
		const double half = 1 + stop_rule_half_width(&report->decided[i], p->repeat_count);
		p->ci95 = (struct interval){p->median / half, p->median * half};
	}
	return 0;
}

int report_open(struct report *report, const struct record *record, struct error *err)
{
	const size_t count = record->entry_count;
	*report = (struct report){.record = record};
	report->points = calloc(record->grid.points, sizeof(struct point_summary *));
	struct place *sorted = calloc(count + 1, sizeof *sorted);
	int code = report->points && sorted
			   ? 0
			   : error_set(err, -ENOMEM, "out of memory for the summary");
	if (!code) {
		for (size_t i = 0; i < count; i++)
			sorted[i] = (struct place){.point = record->entries[i].point, .entry = i};
		qsort(sorted, count, sizeof *sorted, order_by_point);
		code = summarise_all(report, sorted, count, err);
	}
	if (!code)
		code = report_decide(report, err);
	if (!code && checksums_check(&report->checksums, NULL, &report->checksum_check))
		code = error_set(err, -ENOMEM, "out of memory for the checksums");
	free(sorted);
	if (!code)
		count_points(report);
	else
		report_close(report);
	return code;
}

void report_drop_diagnoses(struct report *report)
{
	for (size_t i = 0; report->diagnoses && i < report->record->grid.points; i++)
		free(report->diagnoses[i]);
	free(report->diagnoses);
	report->diagnoses = NULL;
}

void report_close(struct report *report)
{
	for (size_t i = 0; report->points && i < report->record->grid.points; i++) {
		if (report->points[i])
			point_summary_release(report->points[i]);
		free(report->points[i]);
	}
	report_drop_diagnoses(report);
	checksums_release(&report->checksums);
	free(report->points);
	free(report->decided);
	*report = (struct report){0};
}

const char *report_status(const struct report *report)
{
	if (report->good + report->unsteady == 0 && report->failed > 0)
		return "failed";
	return report->record->interrupted ? "interrupted" : "complete";
}

bool report_limit_is_of(const struct stage_limit *limit, const struct point_summary *p)
{
	unsigned workers;
	if (!stage_is(limit->stage, STAGE_DECODE))
		return true;
	if (sscanf(limit->how, "alone: %u worker", &workers) != 1)
		return false;
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_DECODE))
			return p->stages[i].workers == workers;
	return false;
}

void report_exceeded_text(const struct report *report, const struct point_summary *p,
	const char *before, struct buffer *out)
{
	static const double CLEARLY = 0.9;
	char number[UNITS_BYTES];
	struct buffer settings = {0};
	report_settings(report, p->id, &settings);
	for (size_t i = 0; i < report->record->limit_count; i++) {
		const struct stage_limit *limit = &report->record->limits[i];
		if (stage_is(limit->stage, STAGE_STEP) || !report_limit_is_of(limit, p) ||
			!(limit->capacity < CLEARLY * p->median))
			continue;
		buffer_format(out, "%sThe %s limit (%s/s) ",
			out->size > 0 && !*before ? " " : before, limit->stage,
			units_format_count(limit->capacity, number));
		if (!limit->settings[0])
			buffer_format(out,
				"is less than the best point gives, and not a limit there: it was "
				"measured otherwise (%s).",
				limit->how);
		else if (!settings.data || strcmp(limit->settings, settings.data) != 0)
			buffer_format(out, "was measured with %s; the best point uses %s.",
				limit->settings, settings.data ? settings.data : "");
		else
			buffer_text(out,
				"is less than the whole pipeline gives at the same settings, and "
				"not a limit there: measure it again.");
	}
	buffer_release(&settings);
}

void report_contaminated_text(const struct report *report, struct buffer *out)
{
	const size_t points = report->record->grid.points;
	size_t count = 0;
	size_t shown = points;
	for (size_t i = 0; i < points; i++) {
		if (!report->points[i] || !report->points[i]->contaminated[0])
			continue;
		count++;
		if (shown == points || i == report->best)
			shown = i;
	}
	if (count == 0)
		return;
	if (points > 1)
		buffer_format(out,
			"%zu of %zu points were measured under other load; at %s: ", count, points,
			shown == report->best ? "the best" : "the first of them");
	buffer_format(out, "%s%s", report->points[shown]->contaminated,
		points > 1 ? "" : "; the figures may differ from those of an idle node");
}

void report_left_out_text(const struct report *report, struct buffer *out)
{
	size_t points = 0;
	for (size_t i = 0; i < report->record->grid.points; i++)
		points += report->points[i] && report->points[i]->left_out > 0;
	if (report->left_out > 0)
		buffer_format(out,
			"%zu of %zu repetitions, at %zu point%s, were unsteady or failed, or "
			"came before the throughput changed, and are excluded",
			report->left_out, report->record->entry_count, points,
			points == 1 ? "" : "s");
}

/* A key's value at a point, swept or not. */
/* --- ranks ------------------------------------------------------------------------------------ */

static const struct report_ranks *report_ranks;

void report_ranks_register(const struct report_ranks *ranks)
{
	report_ranks = ranks;
}

int report_weigh_ranks(
	const struct report *report, size_t point, struct verdict *verdict, struct error *err)
{
	return report_ranks ? report_ranks->weigh(report, point, verdict, err) : 0;
}

const struct report_ranks *report_ranks_registered(void)
{
	return report_ranks;
}

int64_t report_integer_at(const struct report *report, size_t point, enum key_id key)
{
	const struct config *config = &report->record->config;
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (config->axes[axis].key == key)
			return report_value_at(report, point, axis)->integer;
	return config_integer(config, key);
}

/* Whether nothing but reading is measured at a point: nothing is decoded, and the step is null. */
static bool report_reads_alone(const struct report *report, size_t point)
{
	const struct workload_facts *facts = &report->points[point]->facts;
	return facts->step_null && !facts->reads_memory &&
	       report_integer_at(report, point, KEY_CODEC_NAME) == CODEC_NAME_NULL;
}

void report_add_rate(const struct report *report, size_t point, struct buffer *out)
{
	const struct point_summary *p = report->points[point];
	char number[UNITS_BYTES];
	buffer_format(out, "%s samples/s", units_format_count(p->median, number));
	if (report_integer_at(report, point, KEY_RUN_RANKS) > 1)
		buffer_format(out, " in each of %" PRId64 " ranks",
			report_integer_at(report, point, KEY_RUN_RANKS));
	if (report_integer_at(report, point, KEY_SAMPLE_KIND) == SAMPLE_KIND_TOKENS)
		buffer_format(out, " (%s tokens/s)",
			units_format_count(p->median * (double)report_integer_at(
							       report, point, KEY_TOKENS_LENGTH),
				number));
	if (!report_reads_alone(report, point) || !(p->bytes_read_per_s > 0))
		return;
	buffer_format(out, " (%s", units_format_rate(p->bytes_read_per_s, number));
	buffer_format(
		out, ", %s IOPS)", units_format_count(p->median * p->reads_per_sample, number));
}

const char *report_setting(
	const struct report *report, size_t point, size_t axis, char *out, size_t room)
{
	const enum key_id key = report->record->config.axes[axis].key;
	return config_format_value(key, report_value_at(report, point, axis), out, room);
}

void report_settings(const struct report *report, size_t point, struct buffer *out)
{
	config_point_text(&report->record->config, &report->record->grid, point, out);
}

void report_settings_of(const struct report *report, size_t point, bool knobs, struct buffer *out)
{
	const char *gap = "";
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++) {
		const enum key_id key = report->record->config.axes[axis].key;
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		if ((config_keys[key].kind == KEY_KIND_KNOB) != knobs)
			continue;
		buffer_format(out, "%s%s=%s", gap, config_key_name(key, name),
			report_setting(report, point, axis, value, sizeof value));
		gap = " ";
	}
}

void report_differing_settings(
	const struct report *report, size_t point, size_t from, struct buffer *out)
{
	const char *gap = "";
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++) {
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		if (report_value_at(report, point, axis) == report_value_at(report, from, axis))
			continue;
		buffer_format(out, "%s%s=%s", gap,
			config_key_name(report->record->config.axes[axis].key, name),
			report_setting(report, point, axis, value, sizeof value));
		gap = " ";
	}
}

static int report_write_file(const struct report *report, const char *name, const char *text,
	size_t size, struct error *err)
{
	char *path = files_join(report->record->folder, name);
	const int code = path ? files_write_atomic(path, text, size, err)
			      : error_set(err, -ENOMEM, "out of memory for '%s'", name);
	free(path);
	return code;
}

int report_write_files(const struct report *report, struct error *err)
{
	json_t *json = report_summary_json(report);
	char *text = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	int code = text ? report_write_file(report, "summary.json", text, strlen(text), err)
			: error_set(err, -ENOMEM, "out of memory for 'summary.json'");
	free(text);
	struct buffer csv = {0};
	report_csv(report, json_object_get(json, "points"), &csv);
	json_decref(json);
	if (!code)
		code = csv.failed
			       ? error_set(err, -ENOMEM, "out of memory for 'points.csv'")
			       : report_write_file(report, "points.csv", csv.data, csv.size, err);
	buffer_release(&csv);
	return code ? code : saved_diagnoses_write(report, err);
}

void report_data_text(const struct record *record, struct buffer *out)
{
	const struct fact *samples = fact_find(&record->environment, "dataset", "samples");
	const struct fact *bytes = fact_find(&record->environment, "dataset", "bytes");
	const struct fact *path = fact_find(&record->environment, "data", "path");
	char text[UNITS_BYTES];
	if (!samples || samples->kind != FACT_NUMBER)
		return;
	buffer_format(out, "%s samples", units_format_count(samples->number, text));
	if (bytes && bytes->kind == FACT_NUMBER)
		buffer_format(out, ", %s", units_format_size(bytes->number, text));
	if (path && path->kind == FACT_TEXT)
		buffer_format(out, " in %s", path->text);
}

void report_bad_text(const struct report *report, struct buffer *out)
{
	uint64_t bad = 0;
	double worst = NAN;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *const p = report->points[i];
		bad += p ? p->bad_samples : 0;
		worst = fmax(worst, p ? p->bad_share : (double)NAN);
	}
	if (bad == 0)
		return;
	buffer_format(out, "%llu time%s, a sample could not be read or decoded",
		(unsigned long long)bad, bad == 1 ? "" : "s");
	if (worst > 0)
		buffer_format(out, ", %s %% of those measured%s", UNITS_PLAIN(worst * 100, 2),
			report->record->grid.points > 1 ? " at the worst point" : "");
	buffer_text(out, "; throughput and the verdict exclude them");
}

int report_finish(struct record *record, struct error *err)
{
	struct report report;
	int code = record_end(record, err);
	const int built = report_open(&report, record, code ? NULL : err);
	code = code ? code : built;
	if (!code)
		code = report_diagnose(&report, err);
	if (!code)
		code = report_write_files(&report, err);
	if (!built)
		report_close(&report);
	return code;
}
