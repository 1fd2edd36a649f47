/* The declared costs of a loader, in numbers and in words. */
#include "pipelines/overhead.h"

#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/config/shape.h"

static double overhead_of_handover(
	const struct declared_batch *declared, const struct overhead_facts *facts)
{
	return declared->objects_ns + declared->ns_of_byte * (double)facts->batch_bytes;
}

struct overhead overhead_of(const struct config *config, const struct overhead_facts *facts)
{
	const struct declared_batch declared = declared_batch_of(config);
	const uint64_t handover_ns = (uint64_t)overhead_of_handover(&declared, facts);
	const uint64_t index_ns = (uint64_t)(declared.ns_of_sample * (double)facts->samples);
	const uint64_t sample_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_SAMPLE);
	const uint64_t locked_ns =
		(uint64_t)(config_real(config, KEY_OVERHEAD_LOCK) * (double)sample_ns);
	return (struct overhead){
		.locked_ns = locked_ns,
		.sample_ns = sample_ns - locked_ns,
		.batch_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_BATCH) + handover_ns,
		.step_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_STEP) + index_ns +
			   (facts->step_null ? 0 : handover_ns),
	};
}

void overhead_announce(
	const struct config *config, const struct overhead_facts *facts, struct measurement *m)
{
	static const struct {
		enum key_id key;
		const char *of;
	} parts[] = {
		{KEY_OVERHEAD_SAMPLE, "a worker for each sample"},
		{KEY_OVERHEAD_BATCH, "a worker for each batch"},
		{KEY_OVERHEAD_STEP, "the step's thread for each batch"},
	};
	char time[UNITS_BYTES];
	for (size_t i = 0; i < COUNT(parts); i++)
		if (config_integer(config, parts[i].key) > 0)
			measurement_note(m,
				"declared overhead: %s of CPU time of %s, emulated (overhead.%s)",
				units_format_duration(config_real(config, parts[i].key), time),
				parts[i].of, config_keys[parts[i].key].name);
	const struct declared_batch declared = declared_batch_of(config);
	const double handover_ns = overhead_of_handover(&declared, facts);
	if (handover_ns > 0)
		measurement_note(m,
			"declared overhead: %s of CPU time of a worker%s for handing each batch over, emulated (overhead.%s)",
			units_format_duration(handover_ns, time),
			facts->step_null ? "" : " and as much of the step's thread",
			declared.objects_ns > 0 ? "objects" : "bandwidth");
	if (declared.ns_of_sample > 0)
		measurement_note(m,
			"declared overhead: %s of CPU time of the step's thread for going through the index of the data set for each batch, emulated (overhead.index)",
			units_format_duration(
				declared.ns_of_sample * (double)facts->samples, time));
	const struct overhead overhead = overhead_of(config, facts);
	if (overhead.locked_ns > 0)
		measurement_note(m,
			"declared overhead: %s of a sample's is under one lock of all workers, emulated (overhead.lock)",
			units_format_duration((double)overhead.locked_ns, time));
}
