#include "harness/fit/finding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void findings_open(struct findings *findings)
{
	*findings = (struct findings){.confidence = NAN};
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

int findings_merge(struct findings *findings, struct findings *from, struct error *err)
{
	(void)err;
	for (int id = 0; id < FINDING_COUNT; id++)
		if (from->known[id].how > findings->known[id].how)
			findings->known[id] = from->known[id];
	if (findings->step_count == 0) { /* the series changes hands */
		free(findings->step_ns);
		findings->step_ns = from->step_ns;
		findings->step_count = from->step_count;
		findings->step_series = from->step_series;
		from->step_ns = NULL;
		from->step_count = 0;
	}
	if (findings->like_count == 0) {
		memcpy(findings->like, from->like, sizeof(findings->like));
		findings->like_count = from->like_count;
	}
	if (findings->stage[0] == 0) {
		memcpy(findings->stage, from->stage, sizeof(findings->stage));
		memcpy(findings->resource, from->resource, sizeof(findings->resource));
		findings->confidence = from->confidence;
	}
	return 0;
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
