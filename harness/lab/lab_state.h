/* What a student did in one lab: one JSON object (mlbench.lab/1, docs/workshop/LABS.md), and the rules of the order:
 *
 *   started --predict all--> predicted --measure--> measured --check--> passed
 *                                                         \--explain --force--> given-up
 *
 * Functions change the object that they get and nothing else; times are seconds since the epoch.  -EINVAL: it is not the time
 * for it, or the words are wrong; err says what comes first. */
#ifndef MLBENCH_LAB_LAB_STATE_H
#define MLBENCH_LAB_LAB_STATE_H

#include "harness/lab/lab_draw.h"
#include "harness/lab/lab_file.h"
#include "harness/lab/lab_judge.h"

#include <jansson.h>
#include <stdbool.h>

#define LAB_SCHEMA "mlbench.lab/1"

enum lab_stage { LAB_STARTED, LAB_PREDICTED, LAB_MEASURED, LAB_PASSED, LAB_GIVEN_UP, LAB_STAGES };
const char *lab_stage_name(enum lab_stage stage); /* "given-up" */
enum lab_stage lab_state_stage(const json_t *state);

/* earlier: the attempts before, taken over; NULL: none.  sealed_teacher: NULL: there is no teacher's key. */
json_t *lab_state_new(const struct lab *lab, const char *student, unsigned attempt, json_t *earlier,
	const char *sealed_mine, const char *sealed_teacher, double now);
/* Whether it has the form of one: what is read from files.  -EINVAL. */
int lab_state_check(const json_t *state, struct error *err);
unsigned lab_state_number(const json_t *state);

/* "now=200..300", "deep=1500@60%", "stage=read": one prediction, in place of an earlier one of its name. */
int lab_state_predict(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	const char *word, double now, struct error *err);
/* Names of the questions that have no prediction yet: appended, separated by commas; returns how many. */
size_t lab_state_open_asks(const struct lab *lab, const struct lab_drawn *drawn,
	const json_t *state, struct buffer *out);

struct lab_measured {
	double rate, low, high; /* samples/s: median, least and largest of the repetitions */
	double device;          /* busy share of the step's device, per cent; NAN */
};
/* -EINVAL before everything is predicted. */
int lab_state_may_measure(const struct lab *lab, const struct lab_drawn *drawn, const json_t *state,
	struct error *err);
/* Takes setting.  Predictions about this setting get what was measured. */
void lab_state_note_measured(json_t *state, json_t *setting, const struct lab_measured *measured,
	const char *folder, double now);
unsigned lab_state_measurements(const json_t *state);

/* The next hint: its text and price; *text NULL: all are taken. */
int lab_state_take_hint(const struct lab *lab, size_t variant, json_t *state, double now,
	const char **text, double *price, struct error *err);

/* What a check is called with, beside settings. */
struct lab_claim {
	const char *cause, *evidence;
	const char *answers[LAB_PAIRS_MAX]; /* NAME=NUMBER, as typed */
	size_t answer_count;
};
struct lab_check {
	bool measures; /* the lab has a best setting */
	struct lab_judgement judgement;
	bool stage_right, cause_right, evidence_right, answers_right;
	bool passed, open; /* open: could not tell */
};
/* Everything of a check that needs no measuring: fills check's claims.  -EINVAL: words that are missing or mean nothing. */
int lab_check_claims(const struct lab *lab, const struct lab_drawn *drawn, const json_t *state,
	const struct lab_claim *claim, struct lab_check *check, struct error *err);
/* The claims of the check with which it was passed, judged again: 1 right, and the points are what hints and checks leave; 0 they
 * are not; -1: it was not passed. */
int lab_state_judge_again(
	const struct lab *lab, const struct lab_drawn *drawn, const json_t *state);
/* After measuring: the verdict, kept in the state, which takes setting. */
void lab_state_note_check(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	json_t *setting, const struct lab_claim *claim, struct lab_check *check, double now);

/* -EINVAL: it was ended before. */
int lab_state_give_up(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	double now, struct error *err);

/* What it comes to: 100 less hints and checks that failed, at least 0. */
double lab_state_points(const json_t *state);
/* An attempt as later ones keep it. */
json_t *lab_state_attempt(const json_t *state);

/* How predictions did, of those that were scored. */
struct lab_predicted {
	size_t count, scored, hits, factors;
	double factor;     /* geometric mean; NAN: none */
	double brier;      /* mean; NAN */
	double confidence; /* mean; NAN */
};
struct lab_predicted lab_state_predicted(const json_t *state);

#endif
