/* What engines, kinds of samples and backends of older results were like. */
#include "harness/record/record.h"

#include "harness/config/tables.h"

#include <string.h>

bool older_reads_block(const char *engine)
{
	return strcmp(engine, "pread") == 0;
}

struct workload_facts older_facts(const struct record *record, const struct measurement *m)
{
	const char *backend = record->step.backend;
	struct config config = {0};
	struct workload_facts facts = {.step_null = strcmp(backend, "null") == 0,
		.step_emulated = record->step.emulated,
		.step_on_cores = strcmp(backend, "openblas") == 0,
		.step_has_memory = strcmp(backend, "cuda") == 0};
	if (config_grid_point(&record->config, &record->grid, m->point, &config, NULL) == 0) {
		/* The oldest do not say which engine read: it was the one that was asked for. */
		facts.uses_codecs = config_integer(&config, KEY_SAMPLE_KIND) == SAMPLE_KIND_IMAGE;
		const int64_t asked = config_integer(&config, KEY_READ_ENGINE);
		facts.reads_memory = m->engine[0] ? strcmp(m->engine, "memory") == 0
						  : asked == READ_ENGINE_MEMORY;
		facts.reads_block =
			m->engine[0] ? older_reads_block(m->engine) : asked == READ_ENGINE_PREAD;
	}
	config_release(&config);
	return facts;
}
