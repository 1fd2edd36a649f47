/* What a lab may ask a student to predict. */
#ifndef MLBENCH_LAB_ASK_FIGURES_H
#define MLBENCH_LAB_ASK_FIGURES_H

#include "harness/base/error.h"

#include <stdbool.h>

enum ask_figure {
	ASK_RATE,   /* samples/s of a setting */
	ASK_DEVICE, /* busy share of the step's device in it, per cent */
	ASK_BEST,   /* samples/s of the best setting, which a check measures */
	ASK_STAGE,  /* words: of the cause */
	ASK_RESOURCE,
	ASK_FIGURES
};

/* ASK_FIGURES: there is none of this name. */
enum ask_figure ask_figure_find(const char *name);
const char *ask_figure_name(enum ask_figure figure);
const char *ask_figure_unit(enum ask_figure figure); /* "samples/s"; "" of words */
bool ask_figure_is_word(enum ask_figure figure);
int ask_figure_refuse(const char *name, struct error *err); /* -EINVAL */

#endif
