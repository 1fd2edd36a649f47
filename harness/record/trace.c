/* Life of traces. */
#include "harness/record/trace.h"

#include <stdlib.h>
#include <string.h>

void traces_release(struct traces *traces)
{
	for (size_t i = 0; i < traces->stage_count; i++)
		free(traces->stages[i].items);
	*traces = (struct traces){0};
}

size_t trace_run_end(const struct trace *trace, size_t first)
{
	size_t end = first + 1;
	while (end < trace->count && trace->items[end].number == trace->items[end - 1].number + 1)
		end++;
	return end;
}

const struct trace *traces_find(const struct traces *traces, const char *stage)
{
	for (size_t i = 0; i < traces->stage_count; i++)
		if (strcmp(traces->stages[i].stage, stage) == 0)
			return &traces->stages[i];
	return NULL;
}
