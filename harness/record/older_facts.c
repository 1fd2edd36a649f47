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

/* A line of [sweep] that is read no more, or otherwise. */
static const char *older_line(const char *line, size_t length)
{
	static const struct {
		const char *was, *now;
	} lines[] = {{"error = ", ""}, {"mode = adaptive\n", "mode = sequential\n"}};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (length >= strlen(lines[i].was) &&
			strncmp(line, lines[i].was, strlen(lines[i].was)) == 0)
			return lines[i].now;
	return NULL;
}

char *older_config(const char *resolved)
{
	struct buffer out = {0};
	bool sweep = false;
	while (*resolved) {
		const char *const newline = strchr(resolved, '\n');
		const size_t length = newline ? (size_t)(newline - resolved) + 1 : strlen(resolved);
		const char *const now = sweep ? older_line(resolved, length) : NULL;
		if (*resolved == '[')
			sweep = strncmp(resolved, "[sweep]", 7) == 0;
		if (now)
			buffer_text(&out, now);
		else
			buffer_add(&out, resolved, length);
		resolved += length;
	}
	buffer_text(&out, "");
	if (out.failed)
		buffer_release(&out);
	return out.data;
}
