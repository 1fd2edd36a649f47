#include "harness/fit/finding.h"

#include "harness/base/array.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void findings_open(struct findings *findings)
{
	*findings = (struct findings){.confidence = NAN, .step_is = FINDING_STEP_PERIOD};
}

void findings_close(struct findings *findings)
{
	free(findings->step_ns);
	findings->step_ns = NULL;
	findings->step_count = 0;
}

void findings_add(struct findings *findings, enum finding_id id, enum finding_source source,
	enum finding_how how, double value, double low, double high, const char *why)
{
	struct finding *known = &findings->known[id];

	if (!isfinite(value) || how <= known->how)
		return;
	*known = (struct finding){
		.how = how, .source = source, .value = value, .low = low, .high = high, .why = why};
}

void findings_note(struct findings *findings, const char *format, ...)
{
	char *const note = findings->notes[findings->note_count];
	va_list list;

	if (findings->note_count == FINDINGS_NOTES_MAX)
		return;
	va_start(list, format);
	(void)vsnprintf(note, FINDINGS_NOTE_BYTES, format, list);
	va_end(list);
	for (size_t i = 0; i < findings->note_count; i++)
		if (strcmp(findings->notes[i], note) == 0)
			return;
	findings->note_count++;
}

/* Of two ranks, or of several and one more. */
static void finding_join_ranks(
	struct finding *known, double weight, const struct finding *from, double from_weight)
{
	known->low = fmin(fmin(known->low, from->low), fmin(known->value, from->value));
	known->high = fmax(fmax(known->high, from->high), fmax(known->value, from->value));
	known->value = (known->value * weight + from->value * from_weight) / (weight + from_weight);
}

bool finding_counts_before(const struct finding *one, const struct finding *other)
{
	if (one->how != other->how)
		return one->how > other->how;
	return one->source == SOURCE_STEP_LOG && other->source == SOURCE_TRACE;
}

const char finding_one_rank[] = "this rank alone: its process sees one device of the node";
static const char finding_counted_ranks[] = "one for each rank whose trace is given";

/* Makes a rate of one rank that of some, or the other way round. */
static void findings_scale_rate(struct findings *findings, double factor)
{
	struct finding *rate = &findings->known[FINDING_THROUGHPUT];

	if (rate->source != SOURCE_TRACE)
		return;
	rate->value *= factor;
	rate->low *= factor;
	rate->high *= factor;
}

static void findings_merge_values(struct findings *findings, const struct findings *from)
{
	const bool ranks = findings->ranks && from->ranks && !(findings->ranks & from->ranks);
	const double weight = __builtin_popcountll(findings->ranks);
	const double from_weight = __builtin_popcountll(from->ranks);
	struct finding *count = &findings->known[FINDING_RANKS];

	if (ranks && count->why == finding_counted_ranks) {
		findings_scale_rate(findings, 1 / count->value);
		*count = from->known[FINDING_RANKS];
	}

	for (int id = 0; id < FINDING_COUNT; id++) {
		struct finding *known = &findings->known[id];
		const struct finding *other = &from->known[id];
		if (ranks && known->source == SOURCE_TRACE && other->source == SOURCE_TRACE &&
			known->how == other->how)
			finding_join_ranks(known, weight, other, from_weight);
		else if (finding_counts_before(other, known))
			*known = *other;
	}
	if (findings->ranks & from->ranks)
		findings_note(findings,
			"two of the traces are of the same rank; of them, the first one counts");
	findings->ranks |= from->ranks;
	if (ranks && count->why == finding_one_rank) {
		count->value = weight + from_weight;
		count->low = count->high = NAN;
		count->how = FINDING_DERIVED;
		count->why = finding_counted_ranks;
		findings_scale_rate(findings, count->value);
	}
}

static void findings_take_series(struct findings *findings, struct findings *from)
{
	const bool better = findings->step_is != from->step_is
				    ? from->step_is == FINDING_STEP_TIME
				    : from->step_count > findings->step_count;

	if (from->step_count == 0 || (findings->step_count > 0 && !better))
		return;
	free(findings->step_ns);
	findings->step_ns = from->step_ns; /* it changes hands */
	findings->step_count = from->step_count;
	findings->step_series = from->step_series;
	findings->step_is = from->step_is;
	from->step_ns = NULL;
	from->step_count = 0;
}

/* Whether two notes are the same but for their numbers. */
static bool findings_alike(const char *one, const char *other)
{
	while (*one || *other) {
		one += strspn(one, "0123456789.");
		other += strspn(other, "0123456789.");
		if (*one != *other)
			return false;
		one += *one != '\0';
		other += *other != '\0';
	}
	return true;
}

/* Of another rank only what the ranks before did not say. */
static void findings_merge_notes(struct findings *findings, const struct findings *from, bool rank)
{
	const size_t before = findings->note_count;

	for (size_t i = 0; i < from->note_count; i++) {
		bool told = false;
		for (size_t k = 0; rank && k < before; k++)
			told = told || findings_alike(findings->notes[k], from->notes[i]);
		if (!told)
			findings_note(findings, "%s", from->notes[i]);
	}
}

int findings_merge(struct findings *findings, struct findings *from, struct error *err)
{
	const bool rank = findings->ranks && from->ranks;

	(void)err;
	findings_merge_values(findings, from);
	findings_take_series(findings, from);
	findings_merge_notes(findings, from, rank);
	if (findings->like_count == 0) {
		memcpy(findings->like, from->like, sizeof(findings->like));
		findings->like_count = from->like_count;
	}
	if (findings->data == DATA_UNKNOWN)
		findings->data = from->data;
	if (findings->stage[0] == 0) {
		memcpy(findings->stage, from->stage, sizeof(findings->stage));
		memcpy(findings->resource, from->resource, sizeof(findings->resource));
		findings->confidence = from->confidence;
	}
	return 0;
}

enum finding_data finding_data_of(const char *ending, double bytes)
{
	static const double array = 1 << 20; /* bytes: a file of so many is more than one sample */
	static const struct {
		const char *ending;
		enum finding_data small, large;
	} kinds[] = {
		{"jpg", DATA_PICTURES, DATA_PICTURES},
		{"jpeg", DATA_PICTURES, DATA_PICTURES},
		{"png", DATA_PICTURES, DATA_PICTURES},
		{"ppm", DATA_PICTURES, DATA_PICTURES},
		{"webp", DATA_PICTURES, DATA_PICTURES},
		{"bin", DATA_SAMPLES, DATA_ARRAYS},
		{"npy", DATA_SAMPLES, DATA_ARRAYS},
		{"dat", DATA_SAMPLES, DATA_ARRAYS},
		{"txt", DATA_SAMPLES, DATA_SHARDS},
		{"npz", DATA_SAMPLES, DATA_SHARDS},
		{"csv", DATA_SAMPLES, DATA_SHARDS},
		{"pt", DATA_SAMPLES, DATA_SHARDS},
		{"pth", DATA_SAMPLES, DATA_SHARDS},
		{"pkl", DATA_SAMPLES, DATA_SHARDS},
		{"wav", DATA_SAMPLES, DATA_SAMPLES},
		{"flac", DATA_SAMPLES, DATA_SAMPLES},
		{"mp3", DATA_SAMPLES, DATA_SAMPLES},
		{"mp4", DATA_SAMPLES, DATA_SAMPLES},
		{"tar", DATA_SHARDS, DATA_SHARDS},
		{"tfrec", DATA_SHARDS, DATA_SHARDS},
		{"tfrecord", DATA_SHARDS, DATA_SHARDS},
		{"rec", DATA_SHARDS, DATA_SHARDS},
		{"beton", DATA_SHARDS, DATA_SHARDS},
		{"gz", DATA_SHARDS, DATA_SHARDS},
		{"zst", DATA_SHARDS, DATA_SHARDS},
		{"zip", DATA_SHARDS, DATA_SHARDS},
		{"mds", DATA_SHARDS, DATA_SHARDS},
		{"idx", DATA_SHARDS, DATA_SHARDS},
		{"h5", DATA_SHARDS, DATA_SHARDS},
		{"hdf5", DATA_SHARDS, DATA_SHARDS},
		{"arrow", DATA_SHARDS, DATA_SHARDS},
		{"parquet", DATA_SHARDS, DATA_SHARDS},
		{"lmdb", DATA_SHARDS, DATA_SHARDS},
		{"mdb", DATA_SHARDS, DATA_SHARDS},
		{"jsonl", DATA_SHARDS, DATA_SHARDS},
	};
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strcasecmp(kinds[i].ending, ending) == 0)
			return bytes < array ? kinds[i].small : kinds[i].large;
	return DATA_UNKNOWN;
}

const char *finding_name(enum finding_id id)
{
	static const char *const names[FINDING_COUNT] = {
#define FINDING(id, name, key, unit, doc) [FINDING_##id] = name,
#include "harness/fit/findings.def"
#undef FINDING
	};

	return names[id];
}

const char *finding_source_name(enum finding_source source)
{
	static const char *const names[] = {
		"none", "folder", "trace", "step log", "observed", "result", "user"};

	return names[source];
}

const char *finding_how_name(enum finding_how how)
{
	static const char *const names[] = {"unknown", "assumed", "derived", "measured"};

	return names[how];
}
