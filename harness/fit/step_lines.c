#include "harness/fit/step_lines.h"

#include "harness/base/array.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	LINE_BYTES_MOST = 8192,
	LINE_NUMBER_BYTES = 64,
	LINE_WORDS_BYTES = 400,
	LINE_MOMENT_BYTES = sizeof "06:53:01.123" - 1
};

#define LINE_S 1e9
#define LINE_MS 1e6
#define LINE_US 1e3

/* All of them time everything from one step to the next: waits for batches are in their times. */
const struct step_shape step_shapes[] = {
	{"Megatron-LM", "elapsed time per iteration (ms):", false, false,
		{{STEP_ROLE_CLOCK, "[", "]", 0}, {STEP_ROLE_NUMBER, "iteration", "/", 0},
			{STEP_ROLE_TIME, "elapsed time per iteration (ms):", "", LINE_MS},
			{STEP_ROLE_JOB_BATCH, "global batch size:", "", 0}}},
	{"NeMo", "train_step_timing in s", false, false,
		{{STEP_ROLE_NUMBER, "global_step:", "", 0},
			{STEP_ROLE_NUMBER, "global_step=", "", 0},
			{STEP_ROLE_TIME, "train_step_timing in s:", "", LINE_S},
			{STEP_ROLE_TIME, "train_step_timing in s=", "", LINE_S},
			{STEP_ROLE_JOB_BATCH, "global_batch_size:", "", 0}}},
	{"DeepSpeed", "iter time (s):", false, false,
		{{STEP_ROLE_NUMBER, "steps:", "", 0}, {STEP_ROLE_NUMBER, "step:", "", 0},
			{STEP_ROLE_TIME, "iter time (s):", "", LINE_S},
			{STEP_ROLE_SAMPLES, "samples/sec:", "", 0}}},
	{"MMEngine or detectron2", "data_time", false, false,
		{{STEP_ROLE_NUMBER, "][", "/", 0}, {STEP_ROLE_NUMBER, "iter:", "", 0},
			{STEP_ROLE_NUMBER, "\"iter\":", "", 0},
			{STEP_ROLE_NUMBER, "\"iteration\":", "", 0},
			{STEP_ROLE_NUMBER, "[", "/", 0}, {STEP_ROLE_TIME, "time:", "", LINE_S},
			{STEP_ROLE_TIME, "\"time\":", "", LINE_S},
			{STEP_ROLE_WAIT, "data_time:", "", LINE_S},
			{STEP_ROLE_WAIT, "\"data_time\":", "", LINE_S}}},
	{"PaddlePaddle", "batch_cost:", false, false,
		{{STEP_ROLE_NUMBER, "iter:", "/", 0}, {STEP_ROLE_NUMBER, "] [", "/", 0},
			{STEP_ROLE_TIME, "batch_cost:", "", LINE_S},
			{STEP_ROLE_WAIT, "reader_cost:", "", LINE_S},
			{STEP_ROLE_WAIT, "data_cost:", "", LINE_S},
			{STEP_ROLE_SAMPLES, "ips:", "", 0}}},
	{"MaxText", "TFLOP/s/device", false, false,
		{{STEP_ROLE_NUMBER, "step:", "", 0}, {STEP_ROLE_TIME, "seconds:", "", LINE_S}}},
	{"LitGPT", "iter time:", false, false,
		{{STEP_ROLE_NUMBER, "iter", "", 0}, {STEP_ROLE_TIME, "iter time:", "ms", LINE_MS}}},
	{"torchvision", "]  [", false, false,
		{{STEP_ROLE_NUMBER, "]  [", "/", 0}, {STEP_ROLE_TIME, "time:", "", LINE_S},
			{STEP_ROLE_WAIT, "data:", "", LINE_S},
			{STEP_ROLE_SAMPLES, "img/s:", "", 0}}},
	{"timm", "/s)", false, false,
		{{STEP_ROLE_NUMBER, "[", "/", 0}, {STEP_ROLE_TIME, "time:", "s,", LINE_S},
			{STEP_ROLE_WAIT, "data:", "(", LINE_S}, {STEP_ROLE_SAMPLES, ",", "/s", 0}}},
	{"pytorch/examples", "][", false, false,
		{{STEP_ROLE_NUMBER, "][", "/", 0}, {STEP_ROLE_TIME, "time", "(", LINE_S},
			{STEP_ROLE_WAIT, "data", "(", LINE_S}}},
	{"nanoGPT", "iter", false, false,
		{{STEP_ROLE_NUMBER, "iter", ":", 0}, {STEP_ROLE_TIME, "time", "ms", LINE_MS},
			{STEP_ROLE_TIME, "time", "s", LINE_S}}},
	{"nanochat", "dt:", false, false,
		{{STEP_ROLE_NUMBER, "step", "", 0}, {STEP_ROLE_NUMBER, "", ",", 0},
			{STEP_ROLE_TIME, "dt:", "ms", LINE_MS},
			{STEP_ROLE_TIME, "dt:", "s", LINE_S}}},
	{"llm.c", "tok/s", false, false,
		{{STEP_ROLE_NUMBER, "step", "/", 0}, {STEP_ROLE_TIME, "|", "ms |", LINE_MS}}},
	{"fairseq", "ups=", false, false,
		{{STEP_ROLE_NUMBER, "num_updates=", "", 0}, {STEP_ROLE_RATE, "ups=", "", 0},
			{STEP_ROLE_JOB_BATCH, "bsz=", "", 0}}},
	{"TensorFlow's Estimator", "global_step/sec:", false, false,
		{{STEP_ROLE_RATE, "global_step/sec:", "", 0}}},
	{"Keras", "/step", false, false,
		{{STEP_ROLE_NUMBER, "", "/", 0}, {STEP_ROLE_TIME, "", "us/step", LINE_US},
			{STEP_ROLE_TIME, "", "ms/step", LINE_MS},
			{STEP_ROLE_TIME, "", "s/step", LINE_S}}},
	{"tqdm", "it", false, false,
		{{STEP_ROLE_NUMBER, "|", "/", 0}, {STEP_ROLE_NUMBER, "%", "/", 0},
			{STEP_ROLE_NUMBER, "", "/", 0}, {STEP_ROLE_NUMBER, "", "it [", 0},
			{STEP_ROLE_CLOCK, "[", "<", 0}, {STEP_ROLE_RATE, "", "it/s", 0},
			{STEP_ROLE_TIME, "", "s/it", LINE_S}}},
	{"tqdm", "ba", false, false,
		{{STEP_ROLE_NUMBER, "|", "/", 0}, {STEP_ROLE_NUMBER, "%", "/", 0},
			{STEP_ROLE_NUMBER, "", "batch [", 0}, {STEP_ROLE_CLOCK, "[", "<", 0},
			{STEP_ROLE_RATE, "", "batch/s", 0}, {STEP_ROLE_RATE, "", "batches/s", 0},
			{STEP_ROLE_RATE, "", "ba/s", 0}, {STEP_ROLE_TIME, "", "s/batch", LINE_S},
			{STEP_ROLE_TIME, "", "s/ba", LINE_S}}},
	{"tqdm", "step", false, false,
		{{STEP_ROLE_NUMBER, "|", "/", 0}, {STEP_ROLE_NUMBER, "%", "/", 0},
			{STEP_ROLE_NUMBER, "", "step [", 0}, {STEP_ROLE_CLOCK, "[", "<", 0},
			{STEP_ROLE_RATE, "", "step/s", 0}, {STEP_ROLE_RATE, "", "steps/s", 0},
			{STEP_ROLE_TIME, "", "s/step", LINE_S}}},
	{"a logger with moments", ":", true, false,
		{{STEP_ROLE_CLOCK, "", "", 0}, {STEP_ROLE_CLOCK, "[", "]", 0},
			{STEP_ROLE_CLOCK, "^", "", 0}, {STEP_ROLE_NUMBER, "step", "", 0},
			{STEP_ROLE_NUMBER, "step:", "", 0}, {STEP_ROLE_NUMBER, "step=", "", 0},
			{STEP_ROLE_NUMBER, "global_step=", "", 0},
			{STEP_ROLE_NUMBER, "iter", "", 0}, {STEP_ROLE_NUMBER, "iter:", "", 0},
			{STEP_ROLE_NUMBER, "iteration", "", 0}}},
	{"the Trainer of transformers", "train_runtime", false, true,
		{{STEP_ROLE_RUN, "'train_runtime':", "", LINE_S},
			{STEP_ROLE_RUN, "\"train_runtime\":", "", LINE_S},
			{STEP_ROLE_RATE, "'train_steps_per_second':", "", 0},
			{STEP_ROLE_RATE, "\"train_steps_per_second\":", "", 0},
			{STEP_ROLE_SAMPLES, "'train_samples_per_second':", "", 0},
			{STEP_ROLE_SAMPLES, "\"train_samples_per_second\":", "", 0}}},
	{.name = NULL},
};

/* Before a line of any shape: torchrun's, srun's and loggers' marks of a rank. */
static const struct step_field line_ranks[] = {
	{STEP_ROLE_RANK, "[rank", "]", 0},
	{STEP_ROLE_RANK, "[default", "]:", 0},
	{STEP_ROLE_RANK, "rank=", "", 0},
	{STEP_ROLE_RANK, "rank:", "", 0},
	{STEP_ROLE_RANK, "\"rank\":", "", 0},
};

static bool line_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A number of few characters, with commas between thousands, and how long it is; 0: none. */
static size_t line_number(const char *text, double *value)
{
	char copy[LINE_NUMBER_BYTES];
	size_t at = 0;
	size_t length = 0;

	while (length < sizeof copy - 1) {
		const char c = text[at];
		const bool exponent =
			length > 0 && (c == 'e' || c == 'E') &&
			isdigit((unsigned char)text[at + 1 + strspn(text + at + 1, "+-")]);
		const bool sign = length > 0 && (c == '+' || c == '-') &&
				  (text[at - 1] == 'e' || text[at - 1] == 'E');
		const bool thousands =
			length > 0 && c == ',' && strspn(text + at + 1, "0123456789") == 3;
		if (thousands) {
			at++;
			continue;
		}
		if (!isdigit((unsigned char)c) && c != '.' && !exponent && !sign)
			break;
		copy[length++] = c;
		at++;
	}
	char *end;
	copy[length] = '\0';
	if (!isdigit((unsigned char)copy[0]) && copy[0] != '.')
		return 0;
	*value = strtod(copy, &end);
	if (end == copy || !isfinite(*value))
		return 0;
	return *end ? (size_t)(end - copy) : at;
}

/* Where the next field may begin, from `from` on; NULL: nowhere. */
static const char *line_next(const char *before, const char *line, const char *from)
{
	if (strcmp(before, "^") == 0)
		return from == line ? line : NULL;
	for (; *from; from++) {
		if (*before) {
			from = strcasestr(from, before);
			if (!from)
				return NULL;
		}
		const bool word = *before ? line_is_word(*before) : true;
		if (!*before && !isdigit((unsigned char)*from))
			continue;
		if (from == line || !word ||
			(!line_is_word(from[-1]) && (*before || from[-1] != '.')))
			return from;
	}
	return NULL;
}

static bool line_ends_word(const char *after, const char *behind)
{
	return !*after || !line_is_word(after[strlen(after) - 1]) || !line_is_word(*behind);
}

/* Finds a field: where it begins, its value, and what follows it; NULL: nowhere. */
static const char *line_find(
	const struct step_field *field, const char *line, double *value, const char **behind)
{
	for (const char *from = line; (from = line_next(field->before, line, from)) != NULL;
		from++) {
		const char *text = from + (*field->before == '^' ? 0 : strlen(field->before));
		text += strspn(text, " \t");
		const size_t used = field->role == STEP_ROLE_CLOCK ? step_clock(text, value)
								   : line_number(text, value);
		if (used == 0 || (field->role == STEP_ROLE_CLOCK && !*field->before &&
					 used < LINE_MOMENT_BYTES)) /* a time may be one to come */
			continue;
		text += used;
		text += strspn(text, " \t");
		const size_t length = strlen(field->after);
		if (strncasecmp(text, field->after, length) != 0 ||
			!line_ends_word(field->after, text + length))
			continue;
		*behind = text + length;
		return from;
	}
	return NULL;
}

/* The words right before a field, back to a slash or the line's beginning. */
static bool line_is_of_validation(const char *line, const char *field)
{
	const char *from = field;

	while (from > line && field - from < LINE_WORDS_BYTES && from[-1] != '/')
		from--;
	return step_is_of_validation(from, (size_t)(field - from));
}

static void line_set(
	struct step_log_row *row, const struct step_field *field, double value, const char *behind)
{
	const bool rate = field->role == STEP_ROLE_RATE;
	double *const out = field->role == STEP_ROLE_NUMBER ? &row->number : &row->of[field->role];

	*out = rate ? (value > 0 ? 1e9 / value : (double)NAN)
		    : value * (field->unit_ns > 0 ? field->unit_ns : 1);
	if (field->role == STEP_ROLE_NUMBER && strcmp(field->after, "/") == 0) {
		behind += strspn(behind, " \t");
		if (line_number(behind, &value) > 0)
			row->of[STEP_ROLE_TOTAL] = value;
	}
}

static void line_find_rank(const char *line, struct step_log_row *row)
{
	const char *behind;
	double value;

	for (size_t i = 0; i < COUNT(line_ranks); i++)
		if (line_find(&line_ranks[i], line, &value, &behind)) {
			row->of[STEP_ROLE_RANK] = value;
			return;
		}
	const size_t used = isdigit((unsigned char)*line) ? line_number(line, &value) : 0;
	if (used > 0 && strncmp(line + used, ": ", 2) == 0) /* srun --label */
		row->of[STEP_ROLE_RANK] = value;
}

bool step_line_read(const struct step_shape *shape, const char *line, struct step_log_row *row)
{
	const char *first = NULL;
	bool numbered = true;

	if (!strcasestr(line, shape->has) || strnlen(line, LINE_BYTES_MOST) == LINE_BYTES_MOST)
		return false;
	step_log_row_clear(row);
	for (size_t i = 0; i < STEP_SHAPE_FIELDS && shape->fields[i].role; i++) {
		const struct step_field *field = &shape->fields[i];
		const char *behind;
		double value;
		const bool number = field->role == STEP_ROLE_NUMBER;
		if (isfinite(number ? row->number : row->of[field->role]))
			continue;
		numbered = numbered && !number;
		const char *at = line_find(field, line, &value, &behind);
		if (!at)
			continue;
		numbered = numbered || number;
		line_set(row, field, value, behind);
		first = !first || at < first ? at : first;
	}
	const bool measured = isfinite(row->of[STEP_ROLE_TIME]) ||
			      isfinite(row->of[STEP_ROLE_RATE]) ||
			      (shape->moments && isfinite(row->of[STEP_ROLE_CLOCK]));
	if (!measured || !numbered || line_is_of_validation(line, first))
		return false;
	line_find_rank(line, row);
	return true;
}

bool step_line_evaluates(const char *line)
{
	static const char *const words[] = {
		"evaluat", "validat", "val loss", "val_loss", "eval_loss", "test: ["};

	for (size_t i = 0; i < COUNT(words); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

void step_line_clean(char *line)
{
	char *out = line;

	for (const char *c = line; *c; c++) {
		if (*c == '\x1b' && c[1] == '[') {
			for (c += 2; *c && !(*c >= '@' && *c <= '~'); c++)
				;
			if (!*c)
				break;
		} else if (*c == '\x1b') {
			if (!*++c)
				break;
		} else {
			*out++ = *c;
		}
	}
	*out = '\0';
}
