/* The draw, and settings. */
#include "harness/lab/lab_draw.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAB_SIGNIFICANT = 3, LAB_CHOICES_MAX = 16 };

/* --- values of keys --------------------------------------------------------------------------- */

static bool lab_key_is_node(const char *key)
{
	return strcmp(key, LAB_NODE_CORES) == 0;
}

static bool lab_key_is_number(const char *key)
{
	if (lab_key_is_node(key))
		return true;
	const enum key_type type = config_keys[config_find_key(key)].type;
	return type != KEY_TYPE_BOOLEAN && type != KEY_TYPE_CHOICE && type != KEY_TYPE_TEXT;
}

/* Seconds are ns in the table of keys; anything else has the same unit there. */
static double lab_key_unit(const char *key)
{
	if (lab_key_is_node(key))
		return 1;
	const enum key_type type = config_keys[config_find_key(key)].type;
	return type == KEY_TYPE_DURATION || type == KEY_TYPE_BATCH_TIME ? (double)NS_PER_S : 1;
}

static double lab_round(double value, int digits)
{
	if (value == 0 || !isfinite(value))
		return value;
	const double scale = pow(10, digits - 1 - floor(log10(fabs(value))));
	return round(value * scale) / scale;
}

/* A number, within what the key takes. */
static void lab_print_number(const char *key, double number, char out[LAB_VALUE_BYTES])
{
	if (lab_key_is_node(key)) {
		(void)snprintf(out, LAB_VALUE_BYTES, "%.3g", number);
		return;
	}
	const enum key_id id = config_find_key(key);
	const double raw =
		fmin(fmax(number * lab_key_unit(key), config_keys[id].min), config_keys[id].max);
	/* Whole us: a shorter time is not kept. */
	const double step = lab_key_unit(key) > 1 && raw >= 1000 ? 1000 : 1;
	const struct config_value value = {
		.integer = (int64_t)(round(raw / step) * step), .real = raw};
	(void)config_format_value(id, &value, out, LAB_VALUE_BYTES);
}

static double lab_number_of(const char *key, const struct config_value *value)
{
	const enum key_type type = config_keys[config_find_key(key)].type;
	if (type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE)
		return value->real;
	return (double)value->integer / lab_key_unit(key);
}

/* The text as the key's own value: what config_set takes, in one spelling; number: NAN of words. */
static int lab_read_value(const char *key, const char *text, char out[LAB_VALUE_BYTES],
	double *number, struct error *err)
{
	if (lab_key_is_node(key)) {
		char *end;
		*number = strtod(text, &end);
		if (*end || !(*number > 0) || *number > 1024)
			return error_set(err, -EINVAL, "%s = %.40s: no number of cores", key, text);
		lab_print_number(key, *number, out);
		return 0;
	}
	const enum key_id id = config_find_key(key);
	struct config_value value = {0};
	const int code = value_parse(id, text, &value, err);
	if (code)
		return error_prefix(err, code, "%s = %.60s", key, text);
	*number = lab_key_is_number(key) ? lab_number_of(key, &value) : (double)NAN;
	(void)config_format_value(id, &value, out, LAB_VALUE_BYTES);
	value_release(&value);
	return 0;
}

/* An expression of the file, or a word. */
static int lab_compute_value(const char *key, const char *text,
	const struct expression_scope *scope, char out[LAB_VALUE_BYTES], struct error *err)
{
	double number;
	if (!lab_key_is_number(key))
		return lab_read_value(key, text, out, &number, err);
	const int code = expression_evaluate(text, scope, &number, err);
	if (code)
		return error_prefix(err, code, "%s", key);
	lab_print_number(key, number, out);
	return 0;
}

/* "a..b" in its halves; false: it is no range. */
static bool lab_split_range(const char *text, char from[LAB_VALUE_BYTES], char to[LAB_VALUE_BYTES])
{
	const char *dots = strstr(text, "..");
	if (!dots)
		return false;
	(void)snprintf(from, LAB_VALUE_BYTES, "%.*s", (int)(dots - text), text);
	(void)snprintf(to, LAB_VALUE_BYTES, "%s", dots + 2);
	return true;
}

/* The nth of "a | b | c"; false: it has fewer. */
static bool lab_nth_choice(const char *text, size_t n, char out[LAB_VALUE_BYTES])
{
	for (; n > 0 && text; n--) {
		text = strchr(text, '|');
		text = text ? text + 1 : NULL;
	}
	if (!text)
		return false;
	(void)snprintf(out, LAB_VALUE_BYTES, "%.*s", (int)strcspn(text, "|"), text);
	char *const trimmed = text_trim(out);
	memmove(out, trimmed, strlen(trimmed) + 1);
	return true;
}

/* --- settings --------------------------------------------------------------------------------- */

static int lab_setting_put(
	struct lab_setting *setting, const char *key, const char *value, struct error *err)
{
	size_t i = 0;
	while (i < setting->count && strcmp(setting->of[i].key, key) != 0)
		i++;
	if (i == LAB_SETTING_MAX)
		return error_set(err, -E2BIG, "more than %d settings", LAB_SETTING_MAX);
	if (i == setting->count)
		setting->count++;
	(void)snprintf(setting->of[i].key, sizeof setting->of[i].key, "%s", key);
	(void)snprintf(setting->of[i].value, sizeof setting->of[i].value, "%s", value);
	return 0;
}

int lab_setting_of_line(const struct lab_drawn *drawn, const struct lab_line *line,
	struct lab_setting *setting, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < line->pair_count && !code; i++) {
		char value[LAB_VALUE_BYTES];
		code = lab_compute_value(
			line->pairs[i].key, line->pairs[i].value, &drawn->scope, value, err);
		if (!code)
			code = lab_setting_put(setting, line->pairs[i].key, value, err);
	}
	return code;
}

int lab_setting_best(const struct lab *lab, const struct lab_drawn *drawn,
	struct lab_setting *setting, struct error *err)
{
	const struct lab_line *line;
	size_t at = 0;
	int code = 0;
	*setting = (struct lab_setting){0};
	while (!code && (line = lab_next(lab, drawn->variant, LAB_BEST, &at)))
		code = lab_setting_of_line(drawn, line, setting, err);
	return code;
}

static const struct lab_pair *lab_find_knob(const struct lab *lab, size_t variant, const char *key)
{
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, variant, LAB_KNOB, &at)))
		if (strcmp(line->pairs[0].key, key) == 0)
			return &line->pairs[0];
	return NULL;
}

static int lab_refuse_knob(
	const struct lab *lab, const struct lab_drawn *drawn, const char *key, struct error *err)
{
	struct buffer names = {0};
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, drawn->variant, LAB_KNOB, &at)))
		buffer_format(&names, "%s%s", names.size ? ", " : "", line->pairs[0].key);
	const int code =
		error_set(err, -EINVAL, "'%.48s' cannot be changed in this lab; these can: %s", key,
			names.data ? names.data : "none");
	buffer_release(&names);
	return code;
}

static int lab_within_knob(const struct lab_drawn *drawn, const struct lab_pair *knob,
	const char *value, double number, struct error *err)
{
	char from[LAB_VALUE_BYTES];
	char to[LAB_VALUE_BYTES];
	bool fits = false;
	if (lab_split_range(knob->value, from, to)) {
		double low = 0;
		double high = 0;
		int code = expression_evaluate(from, &drawn->scope, &low, err);
		if (!code)
			code = expression_evaluate(to, &drawn->scope, &high, err);
		if (code)
			return code;
		fits = number >= low && number <= high;
	}
	for (size_t i = 0; !fits && lab_nth_choice(knob->value, i, from); i++) {
		char choice[LAB_VALUE_BYTES];
		fits = !strstr(from, "..") &&
		       lab_compute_value(knob->key, from, &drawn->scope, choice, NULL) == 0 &&
		       strcmp(choice, value) == 0;
	}
	if (fits)
		return 0;
	struct buffer words = {0};
	lab_knob_words(drawn, knob, &words);
	const int code = error_set(err, -EINVAL, "%s = %.40s is outside of this lab's bounds: %s",
		knob->key, value, words.data ? words.data : "");
	buffer_release(&words);
	return code;
}

int lab_setting_take(const struct lab *lab, const struct lab_drawn *drawn, const char *word,
	struct lab_setting *setting, struct error *err)
{
	char key[LAB_KEY_BYTES];
	char value[LAB_VALUE_BYTES];
	double number;
	const char *equals = strchr(word, '=');
	if (!equals || (size_t)(equals - word) >= sizeof key)
		return error_set(err, -EINVAL, "expected KEY=VALUE, not '%.60s'", word);
	(void)snprintf(key, sizeof key, "%.*s", (int)(equals - word), word);
	const struct lab_pair *knob = lab_find_knob(lab, drawn->variant, key);
	if (!knob)
		return config_find_key(key) == KEY_COUNT ? keys_refuse_key(key, err)
							 : lab_refuse_knob(lab, drawn, key, err);
	int code = lab_read_value(key, equals + 1, value, &number, err);
	if (!code)
		code = lab_within_knob(drawn, knob, value, number, err);
	return code ? code : lab_setting_put(setting, key, value, err);
}

static int lab_order_pairs(const void *a, const void *b)
{
	return strcmp(((const struct lab_pair *)a)->key, ((const struct lab_pair *)b)->key);
}

int lab_setting_normalise(const struct lab *lab, const struct lab_drawn *drawn,
	struct lab_setting *setting, struct error *err)
{
	struct lab_run plain;
	const int code = lab_configure(lab, drawn, &(struct lab_setting){0}, false, &plain, err);
	if (code)
		return code;
	size_t kept = 0;
	for (size_t i = 0; i < setting->count; i++) {
		const enum key_id id = config_find_key(setting->of[i].key);
		char own[LAB_VALUE_BYTES] = "";
		if (id != KEY_COUNT)
			(void)config_format_value(id, &plain.config.values[id], own, sizeof own);
		if (strcmp(own, setting->of[i].value) != 0)
			setting->of[kept++] = setting->of[i];
	}
	setting->count = kept;
	qsort(setting->of, kept, sizeof *setting->of, lab_order_pairs);
	config_release(&plain.config);
	return 0;
}

/* --- the draw --------------------------------------------------------------------------------- */

static bool lab_mentions(const char *text, const char *name)
{
	const size_t length = strlen(name);
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		const char before = at > text ? at[-1] : ' ';
		const char after = at[length];
		if (!isalnum((unsigned char)before) && !strchr("._", before) &&
			!isalnum((unsigned char)after) && (!after || !strchr("._", after)))
			return true;
	}
	return false;
}

bool lab_needs_decode(const struct lab *lab)
{
	for (size_t i = 0; i < lab->line_count; i++) {
		const struct lab_line *line = &lab->lines[i];
		if (line->word == LAB_ANSWER && lab_mentions(line->second, "decode"))
			return true;
		for (size_t j = 0; j < line->pair_count; j++)
			if (lab_mentions(line->pairs[j].value, "decode"))
				return true;
	}
	return false;
}

/* A value out of "a..b", "x | y", or the one that there is. */
static int lab_draw_value(const struct lab_pair *pair, struct rng *rng,
	const struct expression_scope *scope, char out[LAB_VALUE_BYTES], struct error *err)
{
	char from[LAB_VALUE_BYTES];
	char to[LAB_VALUE_BYTES];
	const double chance = rng_uniform(rng);
	if (lab_key_is_number(pair->key) && lab_split_range(pair->value, from, to)) {
		double low;
		double high;
		int code = expression_evaluate(from, scope, &low, err);
		if (!code)
			code = expression_evaluate(to, scope, &high, err);
		if (!code && !(low > 0 && high >= low))
			code = error_set(err, -EINVAL, "'%s' is no range above 0", pair->value);
		if (!code)
			lab_print_number(pair->key,
				lab_round(low * pow(high / low, chance), LAB_SIGNIFICANT), out);
		return code;
	}
	size_t count = 0;
	while (count < LAB_CHOICES_MAX && lab_nth_choice(pair->value, count, from))
		count++;
	(void)lab_nth_choice(pair->value, (size_t)(chance * (double)count), from);
	return lab_compute_value(pair->key, from, scope, out, err);
}

static int lab_draw_pair(const struct lab_pair *pair, struct rng *rng, struct lab_setting *setting,
	struct lab_drawn *drawn, struct error *err)
{
	char value[LAB_VALUE_BYTES];
	double number = NAN;
	int code = lab_draw_value(pair, rng, &drawn->scope, value, err);
	if (!code)
		code = lab_read_value(pair->key, value, value, &number, err);
	if (!code)
		code = lab_setting_put(setting, pair->key, value, err);
	if (!code && expression_define(&drawn->scope, pair->key, number))
		code = error_set(err, -E2BIG, "too many planted keys");
	return code;
}

static void lab_scope_begin(struct expression_scope *scope, const struct lab_laptop *laptop)
{
	*scope = (struct expression_scope){0};
	(void)expression_define(scope, "cores", laptop->cores);
	(void)expression_define(scope, "decode", laptop->decode_s);
	(void)expression_define(scope, "sleep", laptop->sleep_s);
}

int lab_draw(const struct lab *lab, const struct lab_laptop *laptop, uint64_t seed,
	struct lab_drawn *drawn, struct error *err)
{
	static const enum lab_word words[] = {LAB_SCALE, LAB_PLANT};
	struct rng rng;
	int code = 0;
	*drawn = (struct lab_drawn){0};
	lab_scope_begin(&drawn->scope, laptop);
	rng_init(&rng, seed, lab->number);
	if (lab->variant_count > 1)
		drawn->variant = 1 + (size_t)rng_below(&rng, lab->variant_count - 1);
	for (size_t i = 0; i < 2; i++) {
		const struct lab_line *line;
		size_t at = 0;
		while (!code && (line = lab_next(lab, drawn->variant, words[i], &at))) {
			code = lab_draw_pair(&line->pairs[0], &rng,
				words[i] == LAB_PLANT ? &drawn->plants : &drawn->scales, drawn,
				err);
			if (code)
				(void)error_prefix(err, code, "%s:%d", lab->path, line->number);
		}
	}
	return code;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

json_t *lab_setting_to_json(const struct lab_setting *setting)
{
	json_t *json = json_object();
	for (size_t i = 0; i < setting->count; i++)
		(void)json_object_set_new(
			json, setting->of[i].key, json_string(setting->of[i].value));
	return json;
}

static int lab_setting_from_json(const json_t *json, struct lab_setting *setting, struct error *err)
{
	const char *key;
	json_t *value;
	int code = 0;
	*setting = (struct lab_setting){0};
	/* json_object_foreach takes no constant object. */
	json_object_foreach((json_t *)json, key, value)
	{
		double number;
		char text[LAB_VALUE_BYTES];
		if (code)
			break;
		if (!json_is_string(value) ||
			(config_find_key(key) == KEY_COUNT && !lab_key_is_node(key)))
			code = error_set(err, -EINVAL, "'%.48s' is no setting", key);
		else
			code = lab_read_value(key, json_string_value(value), text, &number, err);
		if (!code)
			code = lab_setting_put(setting, key, text, err);
	}
	return code;
}

void lab_setting_words(const json_t *setting, struct buffer *out)
{
	const char *key;
	json_t *value;
	size_t count = 0;
	json_object_foreach((json_t *)setting, key, value)
		buffer_format(out, "%s%s=%s", count++ ? " " : "", key, json_string_value(value));
	if (count == 0)
		buffer_text(out, "as it stands");
}

json_t *lab_drawn_to_json(const struct lab *lab, const struct lab_drawn *drawn)
{
	json_t *scope = json_object();
	for (size_t i = 0; i < drawn->scope.count; i++)
		if (isfinite(drawn->scope.of[i].value))
			(void)json_object_set_new(scope, drawn->scope.of[i].name,
				json_real(drawn->scope.of[i].value));
	return json_pack("{s:i, s:s, s:o, s:o, s:o}", "lab", (int)lab->number, "variant",
		lab->variants[drawn->variant], "scales", lab_setting_to_json(&drawn->scales),
		"plants", lab_setting_to_json(&drawn->plants), "scope", scope);
}

int lab_drawn_from_json(
	const struct lab *lab, const json_t *json, struct lab_drawn *drawn, struct error *err)
{
	const char *variant = json_string_value(json_object_get(json, "variant"));
	const char *name;
	json_t *value;
	*drawn = (struct lab_drawn){0};
	if (!variant || json_integer_value(json_object_get(json, "lab")) != (json_int_t)lab->number)
		return error_set(err, -EINVAL, "what was drawn is of another lab");
	while (drawn->variant < lab->variant_count &&
		strcmp(lab->variants[drawn->variant], variant) != 0)
		drawn->variant++;
	if (drawn->variant == lab->variant_count)
		return error_set(err, -EINVAL,
			"'%s' has been changed: it has no variant '%.40s' any more", lab->path,
			variant);
	json_object_foreach(json_object_get(json, "scope"), name,
		value) if (expression_define(&drawn->scope, name,
				   json_number_value(value))) return error_set(err, -EINVAL,
		"what was drawn has too many names");
	const int code =
		lab_setting_from_json(json_object_get(json, "scales"), &drawn->scales, err);
	return code ? code
		    : lab_setting_from_json(json_object_get(json, "plants"), &drawn->plants, err);
}

/* --- configurations --------------------------------------------------------------------------- */

static int lab_apply(const struct lab_setting *setting, struct lab_run *run, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < setting->count && !code; i++) {
		const struct lab_pair *pair = &setting->of[i];
		if (strcmp(pair->key, LAB_NODE_CORES) == 0)
			run->node_cores = (unsigned)strtod(pair->value, NULL);
		else
			code = config_set_key(
				&run->config, config_find_key(pair->key), pair->value, err);
	}
	return code;
}

int lab_settle_storage(const struct lab *lab, struct config *config, struct error *err)
{
	struct config_grid grid;
	struct config point = {0};
	const struct lab_line *line;
	size_t at = 0;
	int code = 0;
	/* Knobs are those of all variants, lest two of them share a folder. */
	for (size_t i = 0; i < lab->variant_count && !code; i++)
		for (at = 0; !code && (line = lab_next(lab, i, LAB_KNOB, &at));) {
			const enum key_id key = config_find_key(line->pairs[0].key);
			char value[LAB_VALUE_BYTES];
			char axis[LAB_KEY_BYTES + LAB_VALUE_BYTES + 8];
			if (key == KEY_COUNT || !config_is_storage(key) ||
				config_find_axis(config, key))
				continue;
			(void)snprintf(axis, sizeof axis, "sweep.%s=%s", line->pairs[0].key,
				config_format_value(
					key, &config->values[key], value, sizeof value));
			code = config_set(config, axis, err);
		}
	if (code || config->axis_count == 0)
		return code;
	code = config_grid_open(config, &grid, err);
	if (code)
		return code;
	code = config_grid_point(config, &grid, 0, &point, err);
	config_grid_close(&grid);
	if (code)
		return code;
	config_release(config);
	*config = point;
	return 0;
}

int lab_configure(const struct lab *lab, const struct lab_drawn *drawn,
	const struct lab_setting *setting, bool planted, struct lab_run *run, struct error *err)
{
	*run = (struct lab_run){0};
	config_init(&run->config);
	int code = config_read_file(&run->config, lab->path, err);
	if (!code && run->config.axis_count > 0)
		code = error_set(
			err, -EINVAL, "%s: a lab is one setting, without [sweep]", lab->path);
	if (!code)
		code = lab_apply(&drawn->scales, run, err);
	if (!code)
		code = lab_apply(setting, run, err);
	if (!code && planted)
		code = lab_apply(&drawn->plants, run, err);
	if (!code)
		code = lab_settle_storage(lab, &run->config, err);
	if (!code && planted)
		code = config_validate(&run->config, err);
	if (code)
		config_release(&run->config);
	return code;
}

/* --- words ------------------------------------------------------------------------------------ */

void lab_knob_words(const struct lab_drawn *drawn, const struct lab_pair *knob, struct buffer *out)
{
	char from[LAB_VALUE_BYTES];
	char to[LAB_VALUE_BYTES];
	if (lab_split_range(knob->value, from, to) &&
		lab_compute_value(knob->key, from, &drawn->scope, from, NULL) == 0 &&
		lab_compute_value(knob->key, to, &drawn->scope, to, NULL) == 0)
		buffer_format(out, "%s..%s", from, to);
	else
		buffer_text(out, knob->value);
}

/* As people write it: "4.79 ms", "2.27 MiB/s"; what has no unit stays as it is. */
static void lab_value_words(const struct lab_pair *plant, struct buffer *out)
{
	char value[LAB_VALUE_BYTES];
	char words[UNITS_BYTES];
	double number = NAN;
	const enum key_id id = config_find_key(plant->key);
	const enum key_type type = id == KEY_COUNT ? KEY_TYPE_TEXT : config_keys[id].type;
	const bool read = lab_read_value(plant->key, plant->value, value, &number, NULL) == 0;
	if (read && type == KEY_TYPE_DURATION)
		buffer_text(out, units_format_duration(number * NS_PER_S, words));
	else if (read && type == KEY_TYPE_RATE)
		buffer_text(out, units_format_rate(number, words));
	else
		buffer_text(out, plant->value);
}

void lab_fill_in(const struct lab_drawn *drawn, const char *text, struct buffer *out)
{
	while (*text) {
		const size_t plain = strcspn(text, "{");
		buffer_add(out, text, plain);
		text += plain;
		const char *close = *text ? strchr(text, '}') : NULL;
		char name[LAB_VALUE_BYTES];
		char words[UNITS_BYTES];
		double number;
		if (!*text)
			return;
		if (!close || (size_t)(close - text) >= sizeof name) {
			buffer_text(out, text);
			return;
		}
		(void)snprintf(name, sizeof name, "%.*s", (int)(close - text - 1), text + 1);
		size_t i = 0;
		while (i < drawn->plants.count && strcmp(drawn->plants.of[i].key, name) != 0)
			i++;
		if (i < drawn->plants.count)
			lab_value_words(&drawn->plants.of[i], out);
		else if (expression_evaluate(name, &drawn->scope, &number, NULL) == 0)
			buffer_text(out, units_format_count(number, words));
		else
			buffer_format(out, "{%s}", name);
		text = close + 1;
	}
}
