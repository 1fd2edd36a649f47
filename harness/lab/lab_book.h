/* A student's folder: DIR/student.json (name, teacher's public key, calibration) and DIR/NN.json for each lab that was begun
 * (lab_state.h), each written beside and renamed, so that a kill leaves the old one or the new.  One process at a time has the
 * folder.  DIR/NN/ holds what was measured.
 *
 * Every file has a code under the student's secret.  student.json also lists the code that each NN.json has, and counts what was
 * written, so that one file alone cannot be put back from a copy.  The secret and the highest count lie outside, in
 * ${XDG_STATE_HOME:-~/.local/state}/mlbench/labs: neither goes with a folder that is handed in, copied or put back as a whole.
 * A teacher gets the secret in student.json, sealed for the teacher's key. */
#ifndef MLBENCH_LAB_LAB_BOOK_H
#define MLBENCH_LAB_LAB_BOOK_H

#include "harness/base/error.h"
#include "harness/config/section_owner.h"
#include "harness/lab/lab_draw.h"

#include <jansson.h>
#include <stdbool.h>

#define LAB_BOOK_FOLDER "mlbench-labs"

struct lab_book {
	char *folder; /* owned */
	int lock;
	json_t *student; /* owned */
	char *secret;    /* owned */
};

/* Of a folder that is only read, somebody else's perhaps. */
struct lab_student {
	json_t *json;   /* student.json; owned */
	char *secret;   /* owned; NULL: neither on this account nor sealed for that key */
	bool authentic; /* its code fits */
};
/* key: a teacher's secret key; NULL: none.  -EINVAL: it is damaged. */
int lab_student_read(
	const char *folder, const char *key, struct lab_student *student, struct error *err);
void lab_student_release(struct lab_student *student);

/* make: begins one where there is none; otherwise -ENOENT.  -EBUSY: another process has it.  name: of the student, taken over
 * where the folder is new; NULL: the user's. */
int lab_book_open(
	struct lab_book *book, const char *folder, bool make, const char *name, struct error *err);
void lab_book_close(struct lab_book *book); /* safe on {.lock = -1} */

/* *state NULL: that lab was not begun.  -EBADMSG: its code does not fit, so it counts as nothing; forgive: it gets "edited":
 * true instead, which stays with the attempts that follow. */
int lab_book_load(const struct lab_book *book, unsigned number, bool forgive, json_t **state,
	struct error *err);
/* With a new code over it. */
int lab_book_save(const struct lab_book *book, json_t *state, struct error *err);
int lab_book_save_student(const struct lab_book *book, struct error *err);

/* Of a state that was read from that lab's file: 1 it is what the program wrote last, 0 it is not (*why, a constant, may be NULL:
 * in a few words), -1 not known without the secret. */
int lab_book_is_authentic(
	const json_t *state, unsigned number, const struct lab_student *student, const char **why);

/* Whose may_open is -EINVAL for a lab's measurement whose state (beside its folder, DIR/05/m001) is not an authentic one that is
 * over; for section_owners_register. */
extern const struct section_owner lab_owner;

/* "DIR/05", fresh; NULL without memory. */
char *lab_book_place(const struct lab_book *book, unsigned number);

/* What of it was planted: opens "sealed.mine". */
int lab_book_drawn(const struct lab_book *book, const struct lab *lab, const json_t *state,
	struct lab_drawn *drawn, struct error *err);
/* A teacher's public key from now on, for which the secret is sealed, too. */
int lab_book_take_teacher(const struct lab_book *book, const char *key, struct error *err);
/* Seals it anew for a teacher whose key came later; nothing without a key. */
int lab_book_seal_for_teacher(const struct lab_book *book, const struct lab *lab,
	const struct lab_drawn *drawn, json_t *state, struct error *err);
/* Draws and seals: the state of a new attempt. */
int lab_book_begin(const struct lab_book *book, const struct lab *lab,
	const struct lab_laptop *laptop, const json_t *before, double now, json_t **state,
	struct lab_drawn *drawn, struct error *err);

#endif
