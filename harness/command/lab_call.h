/* One call of `mlbench lab` for one lab, and what is printed of it (lab_say.c). */
#ifndef MLBENCH_COMMAND_LAB_CALL_H
#define MLBENCH_COMMAND_LAB_CALL_H

#include "harness/command/command.h"
#include "harness/command/lab_run.h"
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_state.h"
#include "harness/report/style.h"

struct lab_call {
	const struct invocation *invocation;
	const char *action;
	struct lab *lab;
	struct lab_book book;
	char *place;   /* DIR/05 */
	json_t *state; /* NULL: not begun */
	struct lab_drawn drawn;
	struct style style;
	struct buffer text; /* what is printed */
	json_t *more;       /* what a document has beside the state */
};

/* Of "NAME=VALUE" the value; NULL: the word is another one. */
const char *lab_word_value(const char *word, const char *name);

/* A line with a label, or "" for one that goes on. */
void lab_say(struct lab_call *call, enum ink ink, const char *label, const char *text);
void lab_sayf(struct lab_call *call, enum ink ink, const char *label, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

void lab_say_title(struct lab_call *call);
void lab_say_knobs(struct lab_call *call);
void lab_say_asks(struct lab_call *call);
void lab_say_evidence(struct lab_call *call);
void lab_say_predictions(struct lab_call *call);
void lab_say_measured(struct lab_call *call, const struct report *report);
void lab_say_check(struct lab_call *call, const struct lab_check *check);
void lab_say_answers(struct lab_call *call);
void lab_say_fixes(struct lab_call *call); /* wrong ones, and the best */
void lab_say_next(struct lab_call *call);  /* as a command */

/* The last measurement of a setting; NULL. */
const json_t *lab_find_measured(const struct lab_call *call, const struct lab_setting *setting);

#endif
