/* flame.json: how the CPU time was sampled, what each stage took, and the functions that took most. */
#include "harness/record/fields.h"
#include "harness/report/flame_report.h"

enum { TOP_KEPT = 50 };

static json_t *stages_json(const struct flame_profile *profile)
{
	json_t *array = json_array();
	for (size_t i = 0; i < profile->frame_count; i++) {
		const struct flame_frame *frame = &profile->frames[i];
		if (frame->parent != FLAME_ROOT || frame->total == 0)
			continue;
		(void)json_array_append_new(array,
			json_pack("{s:o, s:I}", "name", fields_text(profile->names[frame->name]),
				"samples", (json_int_t)frame->total));
	}
	return array;
}

static json_t *functions_json(const struct flame_profile *profile)
{
	struct flame_top tops[TOP_KEPT];
	const size_t count = flame_top(profile, tops, TOP_KEPT);
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++) {
		const struct flame_frame *stage = &profile->frames[tops[i].stage];
		(void)json_array_append_new(
			array, json_pack("{s:o, s:o, s:b, s:I}", "stage",
				       fields_text(profile->names[stage->name]), "function",
				       fields_text(profile->names[tops[i].name]), "kernel",
				       tops[i].kernel, "self", (json_int_t)tops[i].self));
	}
	return array;
}

json_t *flame_json(const struct flame_profile *profile, const char *name)
{
	json_t *why = profile->why_not_perf[0] ? fields_text(profile->why_not_perf) : json_null();
	return json_pack(
		"{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o}",
		"schema", "mlbench.flame/1", "name", fields_text(name), "method",
		flame_method_name(profile->method), "why_not_perf", why, "period_ns",
		(json_int_t)profile->period_ns, "samples", (json_int_t)profile->samples, "lost",
		(json_int_t)profile->lost, "truncated", (json_int_t)profile->truncated, "outside",
		(json_int_t)profile->outside, "unsampled_threads",
		(json_int_t)profile->unsampled_threads, "repetitions", (json_int_t)profile->windows,
		"cpu_s", profile->cpu_s, "seconds", profile->seconds, "stages",
		stages_json(profile), "functions", functions_json(profile));
}
