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
#define LAB_STUDENT_SCHEMA "mlbench.lab_student/2"
#define LAB_STUDENT_OLDER "mlbench.lab_student/1" /* with its secret in it */
#define LAB_SECRET_SCHEMA "mlbench.lab_secret/1"

enum { LAB_FILE_BYTES_MAX = 4 << 20, LAB_KEY_ID = 32 };

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

/* --- codes ------------------------------------------------------------------------------------ */

/* Over all of it but the code itself. */
static int lab_json_code(
	const json_t *json, const char *secret, char out[SEAL_CODE_TEXT], struct error *err)
{
	json_t *copy = json_copy((json_t *)json); /* shallow; it is not changed */
	(void)json_object_del(copy, "mac");
	char *text = copy ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	const int code =
		text ? seal_code(secret, text, out, err) : error_set(err, -ENOMEM, "out of memory");
	free(text);
	json_decref(copy);
	return code;
}

static bool lab_code_fits(const json_t *json, const char *secret)
{
	char code[SEAL_CODE_TEXT];
	const char *mac = json_string_value(json_object_get(json, "mac"));
	return mac && lab_json_code(json, secret, code, NULL) == 0 && seal_code_equal(mac, code);
}

static int lab_put_code(json_t *json, const char *secret, struct error *err)
{
	char text[SEAL_CODE_TEXT];
	const int code = lab_json_code(json, secret, text, err);
	if (!code && json_object_set_new(json, "mac", json_string(text)))
		return error_set(err, -ENOMEM, "out of memory");
	return code;
}

/* student.json lists the codes of the states: one, or two while a state is being written. */
static bool lab_student_knows(const json_t *student, const json_t *state)
{
	char name[16];
	(void)snprintf(name, sizeof name, "%02u", lab_state_number(state));
	const char *mac = json_string_value(json_object_get(state, "mac"));
	const json_t *codes = json_object_get(json_object_get(student, "files"), name);
	for (size_t i = 0; mac && i < json_array_size(codes); i++) {
		const char *listed = json_string_value(json_array_get(codes, i));
		if (listed && seal_code_equal(mac, listed))
			return true;
	}
	return false;
}

/* --- the secret ------------------------------------------------------------------------------- */

/* The name of a secret, by which it is found. */
static int lab_key_id(const char *secret, char out[LAB_KEY_ID + 1], struct error *err)
{
	char code[SEAL_CODE_TEXT];
	const int failed = seal_code(secret, "mlbench.lab key", code, err);
	(void)snprintf(out, LAB_KEY_ID + 1, "%.*s", LAB_KEY_ID, failed ? "" : code);
	return failed;
}

static char *lab_secret_path(const char *id, bool make, struct error *err)
{
	const char *state = getenv("XDG_STATE_HOME");
	const bool given = state && state[0] == '/';
	const char *home = given ? state : getenv("HOME");
	char *folder = NULL;
	char *path = NULL;
	if (!home || home[0] != '/') {
		(void)error_set(err, -EINVAL,
			"there is no place for the key of a lab: neither HOME nor XDG_STATE_HOME is set");
		return NULL;
	}
	folder = files_join(home, given ? "mlbench/labs" : ".local/state/mlbench/labs");
	const int failed = folder && make ? files_make_folder(folder, err) : 0;
	if (!failed && (!folder || asprintf(&path, "%s/%s.json", folder, id) < 0)) {
		path = NULL;
		(void)error_set(err, -ENOMEM, "out of memory");
	}
	free(folder);
	return path;
}

/* The secret of that student's file on this account, fresh, and how often it was written; NULL: it is not here. */
static char *lab_secret_find(const json_t *student, json_int_t *count)
{
	const char *id = json_string_value(json_object_get(student, "key"));
	const bool is_id =
		id && strlen(id) == LAB_KEY_ID && strspn(id, "0123456789abcdef") == LAB_KEY_ID;
	char *path = is_id ? lab_secret_path(id, false, NULL) : NULL;
	json_t *json = NULL;
	char *secret = NULL;
	char own[LAB_KEY_ID + 1];
	*count = 0;
	if (path && lab_read_json(path, &json, NULL) == 0) {
		const char *text = json_string_value(json_object_get(json, "secret"));
		if (text && seal_is_key(text) && lab_key_id(text, own, NULL) == 0 &&
			strcmp(own, id) == 0)
			secret = strdup(text);
		*count = json_integer_value(json_object_get(json, "count"));
	}
	json_decref(json);
	free(path);
	return secret;
}

static int lab_secret_save(const struct lab_book *book, struct error *err)
{
	char *path = lab_secret_path(
		json_string_value(json_object_get(book->student, "key")), true, err);
	json_t *json = json_pack("{s:s, s:s, s:O}", "schema", LAB_SECRET_SCHEMA, "secret",
		book->secret, "count", json_object_get(book->student, "count"));
	const mode_t before = umask(077); /* a neighbour need not read it */
	const int code = !path   ? -EINVAL
			 : !json ? error_set(err, -ENOMEM, "out of memory")
				 : lab_write_json(path, json, err);
	(void)umask(before);
	json_decref(json);
	free(path);
	return code;
}

/* --- the student ------------------------------------------------------------------------------ */

static int lab_make_student(struct lab_book *book, const char *name, struct error *err)
{
	char secret[SEAL_SECRET_TEXT];
	char id[LAB_KEY_ID + 1];
	const char *user = getenv("USER");
	seal_make_secret(secret);
	const int code = lab_key_id(secret, id, err);
	if (code)
		return code;
	if (!name)
		name = user && *user ? user : "student";
	book->secret = strdup(secret);
	book->student = json_pack("{s:s, s:o, s:s, s:i, s:{}, s:n}", "schema", LAB_STUDENT_SCHEMA,
		"student", fields_text(name), "key", id, "count", 0, "files", "teacher");
	return book->student && book->secret ? lab_book_save_student(book, err)
					     : error_set(err, -ENOMEM, "out of memory");
}

static int lab_student_load(const char *path, json_t **student, struct error *err)
{
	const int code = lab_read_json(path, student, err);
	const char *schema = json_string_value(json_object_get(*student, "schema"));
	if (!code && schema && strcmp(schema, LAB_STUDENT_OLDER) == 0)
		return error_set(err, -EINVAL,
			"'%s' is of an earlier version of mlbench, which kept its key there for anybody: begin anew in another folder (--dir)",
			path);
	if (!code && (!schema || strcmp(schema, LAB_STUDENT_SCHEMA) != 0 ||
			     !json_is_string(json_object_get(*student, "student")) ||
			     !json_is_object(json_object_get(*student, "files"))))
		return error_set(err, -EINVAL, "'%s' is damaged", path);
	return code;
}

static int lab_read_student(struct lab_book *book, const char *path, struct error *err)
{
	json_int_t written;
	const int code = lab_student_load(path, &book->student, err);
	if (code)
		return code;
	book->secret = lab_secret_find(book->student, &written);
	if (!book->secret)
		return error_set(err, -EINVAL,
			"the key of '%s' is not on this account: go on where the labs were begun, or begin anew in another folder (--dir)",
			path);
	if (!lab_code_fits(book->student, book->secret))
		return error_set(err, -EBADMSG,
			"'%s' was changed by hand and counts as nothing: put it back as it was, or begin anew in another folder (--dir)",
			path);
	if (json_integer_value(json_object_get(book->student, "count")) < written)
		return error_set(err, -EBADMSG,
			"'%s' was put back from a copy and counts as nothing: put back the newest, or begin anew in another folder (--dir)",
			path);
	return 0;
}

int lab_book_save_student(const struct lab_book *book, struct error *err)
{
	char *path = files_join(book->folder, LAB_STUDENT_FILE);
	const json_int_t count = json_integer_value(json_object_get(book->student, "count"));
	(void)json_object_set_new(book->student, "count", json_integer(count + 1));
	int code = path ? lab_put_code(book->student, book->secret, err)
			: error_set(err, -ENOMEM, "out of memory");
	/* The secret first: without it the file is nothing.  Its count last: a kill between leaves the file ahead. */
	if (!code && count == 0)
		code = lab_secret_save(book, err);
	if (!code)
		code = lab_write_json(path, book->student, err);
	if (!code)
		code = lab_secret_save(book, err);
	free(path);
	return code;
}

int lab_student_read(
	const char *folder, const char *key, struct lab_student *student, struct error *err)
{
	char *path = files_join(folder, LAB_STUDENT_FILE);
	json_int_t written;
	*student = (struct lab_student){0};
	int code = path ? lab_student_load(path, &student->json, err)
			: error_set(err, -ENOMEM, "out of memory");
	free(path);
	if (code) {
		lab_student_release(student);
		return code;
	}
	const char *sealed = json_string_value(json_object_get(student->json, "sealed"));
	student->secret = lab_secret_find(student->json, &written);
	if (!student->secret && key && sealed)
		(void)seal_open_box(key, sealed, &student->secret, NULL);
	student->authentic = student->secret && lab_code_fits(student->json, student->secret);
	return 0;
}

void lab_student_release(struct lab_student *student)
{
	json_decref(student->json);
	free(student->secret);
	*student = (struct lab_student){0};
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
	const int there = code ? 0 : files_is_there(path, err);
	code = there < 0 ? there : code;
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
	return code;
}

void lab_book_close(struct lab_book *book)
{
	if (book->lock >= 0)
		(void)close(book->lock);
	json_decref(book->student);
	free(book->secret);
	free(book->folder);
	*book = (struct lab_book){.lock = -1};
}

/* --- states ----------------------------------------------------------------------------------- */

/* NULL: it is what the program wrote last. */
static const char *lab_state_wrong(const json_t *state, const json_t *student, const char *secret)
{
	return !lab_code_fits(state, secret)        ? "changed by hand"
	       : !lab_student_knows(student, state) ? "put back from a copy"
						    : NULL;
}

int lab_book_is_authentic(
	const json_t *state, unsigned number, const struct lab_student *student, const char **why)
{
	const char *wrong = !student->secret                    ? "not checked: its key is not here"
			    : lab_state_number(state) != number ? "copied from another lab"
			    : !student->authentic
				    ? "of a student.json that was changed by hand"
				    : lab_state_wrong(state, student->json, student->secret);
	if (!wrong && json_is_true(json_object_get(state, "edited")))
		wrong = "of a lab that was changed by hand in an earlier attempt";
	if (why)
		*why = wrong;
	return !student->secret ? -1 : !wrong;
}

int lab_book_load(const struct lab_book *book, unsigned number, bool forgive, json_t **state,
	struct error *err)
{
	char *path = lab_book_path(book, number, ".json");
	int code = path ? 0 : error_set(err, -ENOMEM, "out of memory");
	*state = NULL;
	const int there = code ? 0 : files_is_there(path, err);
	code = there < 0 ? there : code;
	if (there > 0) {
		code = lab_read_json(path, state, err);
		if (!code && lab_state_check(*state, err))
			code = error_prefix(err, -EINVAL, "%s", path);
		if (!code && lab_state_number(*state) != number)
			code = error_set(err, -EINVAL, "%s: it is of lab %u", path,
				lab_state_number(*state));
		const char *wrong =
			code ? NULL : lab_state_wrong(*state, book->student, book->secret);
		if (wrong && forgive)
			(void)json_object_set_new(*state, "edited", json_true());
		else if (wrong)
			code = error_set(err, -EBADMSG,
				"%s was %s and counts as nothing: put it back as the program wrote it last, or begin anew with 'mlbench lab reset %u'",
				path, wrong, number);
	}
	if (code) {
		json_decref(*state);
		*state = NULL;
	}
	free(path);
	return code;
}

/* Lists that code for a state beside those that are listed, or alone. */
static int lab_list_code(
	const struct lab_book *book, const json_t *state, bool alone, struct error *err)
{
	char name[16];
	json_t *files = json_object_get(book->student, "files");
	(void)snprintf(name, sizeof name, "%02u", lab_state_number(state));
	json_t *codes = json_object_get(files, name);
	if (alone || !json_is_array(codes)) {
		codes = json_array();
		(void)json_object_set_new(files, name, codes);
	}
	(void)json_array_append(codes, json_object_get(state, "mac"));
	return lab_book_save_student(book, err);
}

int lab_book_save(const struct lab_book *book, json_t *state, struct error *err)
{
	char *path = lab_book_path(book, lab_state_number(state), ".json");
	int code = path ? lab_put_code(state, book->secret, err)
			: error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = lab_list_code(book, state, false, err);
	if (!code)
		code = lab_write_json(path, state, err);
	if (!code)
		code = lab_list_code(book, state, true, err);
	free(path);
	return code;
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
	const unsigned number = up ? (unsigned)strtoul(up + 1, NULL, 10) : 0;
	if (up)
		*up = '\0';
	struct lab_student student = {0};
	const bool over = up && seal_begin(NULL) == 0 &&
			  lab_student_read(path, NULL, &student, NULL) == 0 &&
			  lab_book_is_authentic(state, number, &student, NULL) > 0 &&
			  lab_state_stage(state) >= LAB_PASSED;
	json_decref(state);
	lab_student_release(&student);
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

int lab_book_take_teacher(const struct lab_book *book, const char *key, struct error *err)
{
	char *sealed = NULL;
	const int code = seal_close_for(key, book->secret, &sealed, err);
	if (!code) {
		(void)json_object_set_new(book->student, "teacher", json_string(key));
		(void)json_object_set_new(book->student, "sealed", json_string(sealed));
	}
	free(sealed);
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
