/* The folder of a student. */
#include "harness/lab/lab_book.h"

#include "harness/base/files.h"
#include "harness/lab/lab_file.h"
#include "harness/lab/lab_state.h"
#include "harness/lab/seal.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAB_STUDENT_FILE "student.json"
#define LAB_STUDENT_SCHEMA "mlbench.lab_student/1"

enum { LAB_FILE_BYTES_MAX = 4 << 20 };

/* --- files ------------------------------------------------------------------------------------ */

static int lab_read_json(const char *path, json_t **json, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	json_error_t wrong;
	*json = NULL;
	int code = files_read(path, LAB_FILE_BYTES_MAX, &text, &size, err);
	if (!code) {
		*json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
		if (!json_is_object(*json)) {
			json_decref(*json);
			*json = NULL;
			code = error_set(err, -EINVAL, "'%s' is no JSON object", path);
		}
	}
	free(text);
	return code;
}

static int lab_write_json(const char *path, const json_t *json, struct error *err)
{
	char *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
	const int code = text ? files_write_atomic(path, text, strlen(text), err)
			      : error_set(err, -ENOMEM, "out of memory for '%s'", path);
	free(text);
	return code;
}

static char *lab_book_path(const struct lab_book *book, unsigned number, const char *ending)
{
	char name[32];
	(void)snprintf(name, sizeof name, "%02u%s", number, ending);
	return files_join(book->folder, name);
}

char *lab_book_place(const struct lab_book *book, unsigned number)
{
	return lab_book_path(book, number, "");
}

/* --- the student ------------------------------------------------------------------------------ */

static int lab_make_student(struct lab_book *book, const char *name, struct error *err)
{
	char secret[SEAL_SECRET_TEXT];
	const char *user = getenv("USER");
	seal_make_secret(secret);
	if (!name)
		name = user && *user ? user : "student";
	book->student = json_pack("{s:s, s:o, s:s, s:n}", "schema", LAB_STUDENT_SCHEMA, "student",
		fields_text(name), "secret", secret, "teacher");
	return book->student ? lab_book_save_student(book, err)
			     : error_set(err, -ENOMEM, "out of memory");
}

static int lab_read_student(struct lab_book *book, const char *path, struct error *err)
{
	int code = lab_read_json(path, &book->student, err);
	if (code)
		return code;
	const char *secret = json_string_value(json_object_get(book->student, "secret"));
	const char *schema = json_string_value(json_object_get(book->student, "schema"));
	if (!schema || strcmp(schema, LAB_STUDENT_SCHEMA) != 0 || !secret || !seal_is_key(secret) ||
		!json_is_string(json_object_get(book->student, "student")))
		code = error_set(err, -EINVAL, "'%s' is damaged", path);
	return code;
}

int lab_book_save_student(const struct lab_book *book, struct error *err)
{
	char *path = files_join(book->folder, LAB_STUDENT_FILE);
	int code = path ? lab_write_json(path, book->student, err)
			: error_set(err, -ENOMEM, "out of memory");
	if (!code)
		(void)chmod(path, 0600); /* a neighbour need not read it */
	free(path);
	return code;
}

static int lab_book_lock(struct lab_book *book, struct error *err)
{
	book->lock = open(book->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (book->lock < 0)
		return error_set_errno(err, errno, "cannot open '%s'", book->folder);
	const int code = files_lock(book->lock, book->folder);
	return code ? error_set(err, code, "another 'mlbench lab' works in '%s'", book->folder) : 0;
}

int lab_book_open(
	struct lab_book *book, const char *folder, bool make, const char *name, struct error *err)
{
	*book = (struct lab_book){.lock = -1};
	int code = seal_begin(err);
	book->folder = strdup(folder);
	char *path = files_join(folder, LAB_STUDENT_FILE);
	if (!code && (!book->folder || !path))
		code = error_set(err, -ENOMEM, "out of memory");
	const bool there = path && access(path, F_OK) == 0;
	if (!code && !there && !make)
		code = error_set(err, -ENOENT,
			"there is no student's folder '%s' yet; 'mlbench lab start N' begins one",
			folder);
	if (!code && !there)
		code = files_make_folder(folder, err);
	if (!code)
		code = lab_book_lock(book, err);
	if (!code)
		code = there ? lab_read_student(book, path, err)
			     : lab_make_student(book, name, err);
	free(path);
	if (code)
		lab_book_close(book);
	else
		book->secret = json_string_value(json_object_get(book->student, "secret"));
	return code;
}

void lab_book_close(struct lab_book *book)
{
	if (book->lock >= 0)
		(void)close(book->lock);
	json_decref(book->student);
	free(book->folder);
	*book = (struct lab_book){.lock = -1};
}

/* --- states ----------------------------------------------------------------------------------- */

/* Over all of it but the code itself. */
static int lab_state_code(
	const json_t *state, const char *secret, char out[SEAL_CODE_TEXT], struct error *err)
{
	json_t *copy = json_copy((json_t *)state); /* shallow; it is not changed */
	(void)json_object_del(copy, "mac");
	char *text = copy ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	const int code =
		text ? seal_code(secret, text, out, err) : error_set(err, -ENOMEM, "out of memory");
	free(text);
	json_decref(copy);
	return code;
}

static bool lab_code_fits(const json_t *state, const char *secret)
{
	char code[SEAL_CODE_TEXT];
	const char *mac = json_string_value(json_object_get(state, "mac"));
	return mac && lab_state_code(state, secret, code, NULL) == 0 && seal_code_equal(mac, code);
}

int lab_book_is_authentic(const json_t *state, const char *secret)
{
	if (json_is_true(json_object_get(state, "edited")))
		return 0;
	return secret ? lab_code_fits(state, secret) : -1;
}

int lab_book_load(const struct lab_book *book, unsigned number, bool forgive, json_t **state,
	struct error *err)
{
	char *path = lab_book_path(book, number, ".json");
	int code = path ? 0 : error_set(err, -ENOMEM, "out of memory");
	*state = NULL;
	if (!code && access(path, F_OK) == 0) {
		code = lab_read_json(path, state, err);
		if (!code && lab_state_check(*state, err))
			code = error_prefix(err, -EINVAL, "%s", path);
		if (!code && lab_state_number(*state) != number)
			code = error_set(err, -EINVAL, "%s: it is of lab %u", path,
				lab_state_number(*state));
		const bool edited = !code && !lab_code_fits(*state, book->secret);
		if (edited && forgive)
			(void)json_object_set_new(*state, "edited", json_true());
		else if (edited)
			code = error_set(err, -EBADMSG,
				"%s was changed by hand and counts as nothing: put it back as it was, or begin anew with 'mlbench lab reset %u'",
				path, number);
	}
	if (code) {
		json_decref(*state);
		*state = NULL;
	}
	free(path);
	return code;
}

int lab_book_save(const struct lab_book *book, json_t *state, struct error *err)
{
	char text[SEAL_CODE_TEXT];
	char *path = lab_book_path(book, lab_state_number(state), ".json");
	int code = path ? lab_state_code(state, book->secret, text, err)
			: error_set(err, -ENOMEM, "out of memory");
	if (!code && json_object_set_new(state, "mac", json_string(text)))
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = lab_write_json(path, state, err);
	free(path);
	return code;
}

/* The secret of the student whose folder it is, fresh; NULL. */
static char *lab_secret_in(const char *folder)
{
	char *path = files_join(folder, LAB_STUDENT_FILE);
	json_t *student = NULL;
	char *secret = NULL;
	if (path && lab_read_json(path, &student, NULL) == 0) {
		const char *text = json_string_value(json_object_get(student, "secret"));
		secret = text ? strdup(text) : NULL;
	}
	json_decref(student);
	free(path);
	return secret;
}

static int lab_book_may_open(const char *folder, struct error *err)
{
	char path[PATH_MAX + 8] = "";
	json_t *state = NULL;
	char *slash = realpath(folder, path) ? strrchr(path, '/') : NULL;
	if (slash)
		(void)snprintf(slash, sizeof ".json", ".json");
	const bool read = slash && lab_read_json(path, &state, NULL) == 0 &&
			  lab_state_check(state, NULL) == 0;
	char *up = read ? strrchr(path, '/') : NULL;
	if (up)
		*up = '\0';
	char *secret = up ? lab_secret_in(path) : NULL;
	const bool over = secret && seal_begin(NULL) == 0 && lab_code_fits(state, secret) &&
			  lab_state_stage(state) >= LAB_PASSED;
	const unsigned number = read ? lab_state_number(state) : 0;
	json_decref(state);
	free(secret);
	if (over)
		return 0;
	return number ? error_set(err, -EINVAL,
				"'%s' is a measurement of lab %u: it opens when that is over (mlbench lab check %u)",
				folder, number, number)
		      : error_set(err, -EINVAL,
				"'%s' is a measurement of a lab: it opens in its student's folder, when the lab is over",
				folder);
}

const struct section_owner lab_owner = {
	.sections = lab_sections,
	.variants = true,
	.may_open = lab_book_may_open,
};

/* --- what was drawn --------------------------------------------------------------------------- */

int lab_book_drawn(const struct lab_book *book, const struct lab *lab, const json_t *state,
	struct lab_drawn *drawn, struct error *err)
{
	char *text = NULL;
	const char *sealed =
		json_string_value(json_object_get(json_object_get(state, "sealed"), "mine"));
	int code = seal_open(book->secret, sealed ? sealed : "", &text, err);
	if (code)
		return code;
	json_t *json = json_loads(text, 0, NULL);
	free(text);
	code = json ? lab_drawn_from_json(lab, json, drawn, err)
		    : error_set(err, -EBADMSG, "what is sealed is no JSON");
	json_decref(json);
	return code;
}

/* For the student, and for the teacher whose key is known; mine NULL: for the teacher alone. */
static int lab_seal_drawn(const struct lab_book *book, const struct lab *lab,
	const struct lab_drawn *drawn, char **mine, char **teacher, struct error *err)
{
	const char *key = json_string_value(json_object_get(book->student, "teacher"));
	json_t *json = lab_drawn_to_json(lab, drawn);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	*teacher = NULL;
	int code = text ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code && mine)
		code = seal_close(book->secret, text, mine, err);
	if (!code && key)
		code = seal_close_for(key, text, teacher, err);
	free(text);
	json_decref(json);
	return code;
}

int lab_book_seal_for_teacher(const struct lab_book *book, const struct lab *lab,
	const struct lab_drawn *drawn, json_t *state, struct error *err)
{
	char *teacher;
	const int code = lab_seal_drawn(book, lab, drawn, NULL, &teacher, err);
	if (!code && teacher)
		(void)json_object_set_new(
			json_object_get(state, "sealed"), "teacher", json_string(teacher));
	free(teacher);
	return code;
}

/* The student's file counts, too: who deletes a state does not get its draw again. */
static unsigned lab_count_attempt(
	const struct lab_book *book, unsigned number, const json_t *before)
{
	char name[16];
	json_t *attempts = json_object_get(book->student, "attempts");
	(void)snprintf(name, sizeof name, "%02u", number);
	if (!json_is_object(attempts)) {
		attempts = json_object();
		(void)json_object_set_new(book->student, "attempts", attempts);
	}
	const json_int_t counted = json_integer_value(json_object_get(attempts, name));
	const json_int_t last = json_integer_value(json_object_get(before, "attempt"));
	const json_int_t attempt = 1 + (counted > last ? counted : last);
	(void)json_object_set_new(attempts, name, json_integer(attempt));
	return (unsigned)attempt;
}

int lab_book_begin(const struct lab_book *book, const struct lab *lab,
	const struct lab_laptop *laptop, const json_t *before, double now, json_t **state,
	struct lab_drawn *drawn, struct error *err)
{
	const unsigned attempt = lab_count_attempt(book, lab->number, before);
	char words[64];
	uint64_t seed = 0;
	char *mine = NULL;
	char *teacher = NULL;
	*state = NULL;
	(void)snprintf(words, sizeof words, "draw of lab %u, attempt %u", lab->number, attempt);
	int code = seal_number(book->secret, words, &seed, err);
	if (!code)
		code = lab_draw(lab, laptop, seed, drawn, err);
	if (code)
		return code;
	code = lab_seal_drawn(book, lab, drawn, &mine, &teacher, err);
	json_t *earlier = before ? json_deep_copy(json_object_get(before, "earlier")) : NULL;
	if (!code && before)
		(void)json_array_append_new(earlier, lab_state_attempt(before));
	if (!code)
		*state = lab_state_new(lab,
			json_string_value(json_object_get(book->student, "student")), attempt,
			earlier, mine, teacher, now);
	else
		json_decref(earlier);
	if (!code && !*state)
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code && json_is_true(json_object_get(before, "edited")))
		(void)json_object_set_new(*state, "edited", json_true());
	free(teacher);
	free(mine);
	return code;
}
