/* The figures of predictions. */
#include "harness/lab/ask_figures.h"

#include "harness/base/text.h"

#include <errno.h>
#include <string.h>

static const struct ask_figure_spec {
	const char *name, *unit;
	bool word;
} ask_figure_specs[ASK_FIGURES] = {
	[ASK_RATE] = {"rate", "samples/s", false},
	[ASK_DEVICE] = {"device", "%", false},
	[ASK_BEST] = {"best", "samples/s", false},
	[ASK_STAGE] = {"stage", "", true},
	[ASK_RESOURCE] = {"resource", "", true},
};

enum ask_figure ask_figure_find(const char *name)
{
	int figure = 0;
	while (figure < ASK_FIGURES && strcmp(ask_figure_specs[figure].name, name) != 0)
		figure++;
	return (enum ask_figure)figure;
}

const char *ask_figure_name(enum ask_figure figure)
{
	return ask_figure_specs[figure].name;
}

const char *ask_figure_unit(enum ask_figure figure)
{
	return ask_figure_specs[figure].unit;
}

bool ask_figure_is_word(enum ask_figure figure)
{
	return ask_figure_specs[figure].word;
}

int ask_figure_refuse(const char *name, struct error *err)
{
	const char *names[ASK_FIGURES];
	for (int i = 0; i < ASK_FIGURES; i++)
		names[i] = ask_figure_specs[i].name;
	const char *nearest = suggest_nearest(name, names, ASK_FIGURES);
	return error_set(err, -EINVAL, "unknown figure '%.40s'%s%s%s", name,
		nearest ? "; did you mean '" : " (rate, device, best, stage, resource)",
		nearest ? nearest : "", nearest ? "'?" : "");
}
