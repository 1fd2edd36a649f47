/* The declared costs of a loader, in numbers and in words. */
#include "pipelines/overhead.h"

#include "harness/base/array.h"
#include "harness/base/units.h"

struct overhead overhead_of(const struct config *config)
{
	const uint64_t sample_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_SAMPLE);
	const uint64_t locked_ns =
		(uint64_t)(config_real(config, KEY_OVERHEAD_LOCK) * (double)sample_ns);
	return (struct overhead){
		.locked_ns = locked_ns,
		.sample_ns = sample_ns - locked_ns,
		.batch_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_BATCH),
		.step_ns = (uint64_t)config_integer(config, KEY_OVERHEAD_STEP),
	};
}

void overhead_announce(const struct config *config, struct measurement *m)
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
	const struct overhead overhead = overhead_of(config);
	if (overhead.locked_ns > 0)
		measurement_note(m,
			"declared overhead: %s of a sample's is under one lock of all workers, emulated (overhead.lock)",
			units_format_duration((double)overhead.locked_ns, time));
}
