/* The grammar of criteria. */
#include "harness/accept/criterion.h"

#include "harness/base/array.h"
#include "harness/base/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words ------------------------------------------------------------------------------------ */

/* Takes `word` off the front of *text, with the blanks behind it; false, and *text as it is, where it does not begin so. */
static bool take_word(const char **text, const char *word)
{
	const size_t length = strlen(word);
	if (strncmp(*text, word, length) != 0 ||
		((*text)[length] && (*text)[length] != ' ' && (*text)[length] != '\t'))
		return false;
	*text += length;
	*text += strspn(*text, " \t");
	return true;
}

static bool take_operator(const char **text, enum clause_op *op)
{
	static const struct {
		const char *sign;
		enum clause_op op;
	} signs[] = {{">=", CLAUSE_MORE_EQUAL}, {"<=", CLAUSE_LESS_EQUAL}, {">", CLAUSE_MORE},
		{"<", CLAUSE_LESS}, {"==", CLAUSE_SAME}, {"=", CLAUSE_SAME}};
	for (size_t i = 0; i < COUNT(signs); i++) {
		const size_t length = strlen(signs[i].sign);
		if (strncmp(*text, signs[i].sign, length) != 0)
			continue;
		*op = signs[i].op;
		*text += length;
		*text += strspn(*text, " \t");
		return true;
	}
	return false;
}

/* Cuts such an end off text, where it has it. */
static bool cut_end(char *text, const char *end)
{
	const size_t length = strlen(text);
	const size_t its = strlen(end);
	if (length < its || strcmp(text + length - its, end) != 0)
		return false;
	text[length - its] = '\0';
	return true;
}

/* Cuts " of REFERENCE" off text. */
static bool cut_reference(char *text, enum clause_of *of)
{
	static const char *const names[] = {" of peak", " of baseline", " of median", " of best"};
	for (size_t i = 0; i < COUNT(names); i++)
		if (cut_end(text, names[i])) {
			*of = (enum clause_of)(OF_PEAK + i);
			return true;
		}
	return false;
}

/* --- clauses ---------------------------------------------------------------------------------- */

static int refuse_reference(
	const struct figure *figure, const struct clause *clause, struct error *err)
{
	if (clause->of == OF_NOTHING)
		return 0;
	if (figure->unit == FIGURE_CELSIUS)
		return error_set(
			err, -EINVAL, "a share of a temperature means nothing; name a limit in C");
	if ((clause->of == OF_MEDIAN || clause->of == OF_BEST) && !*figure->place)
		return error_set(err, -EINVAL,
			"'%s' is measured once for the node: there are no others whose %s it could be compared with",
			figure->name, clause->of == OF_MEDIAN ? "median" : "best");
	return 0;
}

/* A limit that nothing can be beyond holds whatever is measured. */
static int refuse_limit(const struct figure *figure, const struct clause *clause, const char *text,
	struct error *err)
{
	const bool at_least = clause->op == CLAUSE_MORE_EQUAL && clause->value <= 0;
	const bool above = clause->op == CLAUSE_MORE && clause->value < 0;
	const bool share = figure->unit == FIGURE_SHARE && clause->of == OF_NOTHING;
	if (figure->sense == FIGURE_LESS_IS_BETTER && share &&
		((clause->op == CLAUSE_LESS_EQUAL && clause->value >= 1) ||
			(clause->op == CLAUSE_LESS && clause->value > 1)))
		return error_set(err, -EINVAL,
			"an upper limit of %.32s holds for every share; write a smaller one, or 'known'",
			text);
	if (figure->sense != FIGURE_MORE_IS_BETTER || figure->unit == FIGURE_CELSIUS ||
		(!at_least && !above))
		return 0;
	return error_set(err, -EINVAL,
		"a lower limit of %.32s holds for every value; write a larger one, or 'known'",
		text);
}

static int parse_limit(
	const struct figure *figure, const char *text, struct clause *clause, struct error *err)
{
	char value[128];
	(void)snprintf(value, sizeof value, "%s", text);
	clause->kind = CLAUSE_LIMIT;
	const bool shared = cut_reference(value, &clause->of);
	int code = figure_value_parse(
		shared ? FIGURE_SHARE : figure->unit, value, &clause->value, err);
	if (!code)
		code = refuse_limit(figure, clause, text, err);
	return code ? code : refuse_reference(figure, clause, err);
}

/* "5 % of baseline", "5 % either side of 2,000 samples/s", "baseline". */
static int parse_within(
	const struct figure *figure, const char *text, struct clause *clause, struct error *err)
{
	char value[128];
	(void)snprintf(value, sizeof value, "%s", text);
	clause->kind = CLAUSE_WITHIN;
	if (strcmp(value, "baseline") == 0) {
		clause->of = OF_BASELINE;
		clause->value = (double)NAN;
		return 0;
	}
	char *side = strstr(value, " either side of ");
	clause->either_side = side != NULL;
	if (side)
		memmove(side, side + strlen(" either side"),
			strlen(side + strlen(" either side")) + 1);
	if (!cut_reference(value, &clause->of)) {
		char *of = strstr(value, " of ");
		if (!of)
			return error_set(err, -EINVAL,
				"'within %.64s' does not say of what; write it as 'within 5 %% of baseline'",
				text);
		*of = '\0';
		const int code = figure_value_parse(
			figure->unit, of + strlen(" of "), &clause->absolute, err);
		if (code)
			return code;
	}
	if (figure->sense == FIGURE_NEITHER && !clause->either_side)
		return error_set(err, -EINVAL,
			"'%s' is neither better when it is more nor when it is less; write 'either side of'",
			figure->name);
	const int code = figure_value_parse(FIGURE_SHARE, value, &clause->value, err);
	if (!code && (clause->value < 0 || clause->value >= 1))
		return error_set(
			err, -EINVAL, "'within %.32s' is not between 0 %% and 100 %%", value);
	return code ? code : refuse_reference(figure, clause, err);
}

static int parse_statistic(
	enum clause_kind kind, const char *text, struct clause *clause, struct error *err)
{
	clause->kind = kind;
	const bool similar = kind == CLAUSE_SIMILARITY;
	const enum clause_op right = similar ? CLAUSE_MORE_EQUAL : CLAUSE_LESS_EQUAL;
	if (!take_operator(&text, &clause->op) || clause->op != right)
		return error_set(err, -EINVAL, "write it as '%s'",
			similar ? "similarity >= 0.95" : "spread <= 3 %");
	int code = figure_value_parse(FIGURE_SHARE, text, &clause->value, err);
	if (!code && (clause->value <= 0 || clause->value > 1))
		return error_set(err, -EINVAL, "'%.32s' is not between 0 and 1", text);
	return code;
}

static int add_word(struct clause *clause, const char *word, size_t length, struct error *err)
{
	while (length > 0 && (*word == ' ' || *word == '\t'))
		word++, length--;
	while (length > 0 && (word[length - 1] == ' ' || word[length - 1] == '\t'))
		length--;
	if (length == 0)
		return error_set(err, -EINVAL, "the list has an empty place");
	if (word[length - 1] == '\\' && (length < 2 || word[length - 2] != '\\'))
		return error_set(err, -EINVAL,
			"'%.64s' ends in a single '\\', which no text matches; write '\\\\'", word);
	if (clause->word_count == CRITERION_WORDS_MAX)
		return error_set(
			err, -EINVAL, "the list has more than %d values", CRITERION_WORDS_MAX);
	clause->words[clause->word_count] = strndup(word, length);
	return clause->words[clause->word_count++] ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int parse_words(enum clause_kind kind, bool list, const char *text, struct clause *clause,
	struct error *err)
{
	clause->kind = kind;
	if (!list)
		return *text ? add_word(clause, text, strlen(text), err)
			     : error_set(err, -EINVAL,
				       "the text is missing; write it as 'is *H100*'");
	int code = 0;
	for (;;) {
		const size_t length = strcspn(text, ",");
		code = add_word(clause, text, length, err);
		if (code || !text[length])
			return code;
		text += length + 1;
	}
}

static int parse_text(const char *text, struct clause *clause, struct error *err)
{
	const char *rest = text;
	if (take_word(&rest, "has"))
		return parse_words(CLAUSE_HAS, true, rest, clause, err);
	enum clause_kind kind = CLAUSE_IS;
	if (take_word(&rest, "is") && take_word(&rest, "not"))
		kind = CLAUSE_IS_NOT;
	const bool list = take_word(&rest, "one of");
	return parse_words(kind, list, rest, clause, err);
}

static int parse_clause(
	const struct figure *figure, const char *text, struct clause *clause, struct error *err)
{
	const char *rest = text;
	*clause = (struct clause){.absolute = (double)NAN};
	if (take_word(&rest, "known") && !*rest) {
		clause->kind = CLAUSE_KNOWN;
		return 0;
	}
	rest = text;
	if (take_word(&rest, "equal") && !*rest) {
		clause->kind = CLAUSE_EQUAL;
		return 0;
	}
	rest = text;
	if (figure->unit == FIGURE_TEXT)
		return parse_text(text, clause, err);
	if (take_word(&rest, "is") || take_word(&rest, "has"))
		return error_set(
			err, -EINVAL, "'%s' is a number; compare it as '>= ...'", figure->name);
	if (take_word(&rest, "within"))
		return parse_within(figure, rest, clause, err);
	if (take_word(&rest, "spread"))
		return parse_statistic(CLAUSE_SPREAD, rest, clause, err);
	if (take_word(&rest, "similarity"))
		return parse_statistic(CLAUSE_SIMILARITY, rest, clause, err);
	clause->op = CLAUSE_SAME;
	(void)take_operator(&rest, &clause->op);
	return parse_limit(figure, rest, clause, err);
}

/* --- all clauses together --------------------------------------------------------------------- */

/* The bounds that the clauses of one reference set together; a share is of 1. */
static void criterion_bounds(const struct criterion *criterion, const struct figure *figure,
	enum clause_of of, double *low, double *high, bool *open)
{
	*low = -(double)INFINITY;
	*high = (double)INFINITY;
	*open = false;
	for (size_t i = 0; i < criterion->clause_count; i++) {
		const struct clause *clause = &criterion->clauses[i];
		double its_low;
		double its_high;
		bool its_open;
		if ((clause->kind != CLAUSE_LIMIT && clause->kind != CLAUSE_WITHIN) ||
			clause->of != of || isnan(clause->value))
			continue;
		clause_bounds(clause, figure, 1, &its_low, &its_high, &its_open);
		*low = fmax(*low, its_low);
		*high = fmin(*high, its_high);
		*open = *open || its_open;
	}
}

/* The statistic that a clause of this kind limits; NAN: there is none. */
static double criterion_statistic(const struct criterion *criterion, enum clause_kind kind)
{
	for (size_t i = 0; i < criterion->clause_count; i++)
		if (criterion->clauses[i].kind == kind)
			return criterion->clauses[i].value;
	return (double)NAN;
}

/* Whether every word of one list is in the other, letter by letter. */
static bool words_are_among(const struct clause *words, const struct clause *all)
{
	size_t found = 0;
	for (size_t i = 0; i < words->word_count; i++)
		for (size_t k = 0; k < all->word_count; k++)
			if (strcmp(words->words[i], all->words[k]) == 0) {
				found++;
				break;
			}
	return found == words->word_count;
}

/* "is one of a, b" warns of less than "is a" fails. */
static bool texts_are_laxer(const struct criterion *warns, const struct criterion *fails)
{
	const struct clause *w = &warns->clauses[0];
	const struct clause *f = &fails->clauses[0];
	return warns->clause_count == 1 && fails->clause_count == 1 && w->kind == CLAUSE_IS &&
	       f->kind == CLAUSE_IS && w->word_count > f->word_count && words_are_among(f, w);
}

bool criterion_is_laxer(
	const struct criterion *warns, const struct criterion *fails, const struct figure *figure)
{
	for (int of = OF_NOTHING; of <= OF_BEST; of++) {
		double low[2];
		double high[2];
		bool open;
		criterion_bounds(warns, figure, (enum clause_of)of, &low[0], &high[0], &open);
		criterion_bounds(fails, figure, (enum clause_of)of, &low[1], &high[1], &open);
		if ((isfinite(low[0]) && low[0] < low[1]) ||
			(isfinite(high[0]) && high[0] > high[1]))
			return true;
	}
	return texts_are_laxer(warns, fails) ||
	       criterion_statistic(warns, CLAUSE_SPREAD) >
		       criterion_statistic(fails, CLAUSE_SPREAD) ||
	       criterion_statistic(warns, CLAUSE_SIMILARITY) <
		       criterion_statistic(fails, CLAUSE_SIMILARITY);
}

/* "<= 50 MB/s" of what is better when it is more fails the good nodes and passes the bad ones. */
static int refuse_direction(
	const struct figure *figure, const struct criterion *criterion, struct error *err)
{
	const bool more = figure->sense == FIGURE_MORE_IS_BETTER;
	bool bad_side = false;
	bool good_side = false;
	if (figure->sense == FIGURE_NEITHER)
		return 0;
	for (size_t i = 0; i < criterion->clause_count; i++) {
		const struct clause *clause = &criterion->clauses[i];
		const bool lower = clause->op == CLAUSE_MORE || clause->op == CLAUSE_MORE_EQUAL;
		const bool limit = clause->kind == CLAUSE_LIMIT;
		if (clause->kind == CLAUSE_WITHIN ||
			(limit && (clause->op == CLAUSE_SAME || lower == more)))
			bad_side = true;
		else if (limit)
			good_side = true;
	}
	if (!good_side || bad_side)
		return 0;
	return error_set(err, -EINVAL,
		"'%s' is better when it is %s, so '%.64s' fails good values and passes bad ones; "
		"write '%s ...', or both limits joined by 'and'",
		figure->name, more ? "more" : "less", criterion->text, more ? ">=" : "<=");
}

static bool words_meet(const struct clause *a, const struct clause *b)
{
	for (size_t i = 0; i < a->word_count; i++)
		for (size_t k = 0; k < b->word_count; k++)
			if (strpbrk(a->words[i], "*?[\\") || strpbrk(b->words[k], "*?[\\") ||
				strcmp(a->words[i], b->words[k]) == 0)
				return true;
	return false;
}

static bool clauses_contradict(const struct clause *a, const struct clause *b)
{
	if (a->kind == CLAUSE_IS && b->kind == CLAUSE_IS)
		return !words_meet(a, b);
	return (a->kind == CLAUSE_IS && b->kind == CLAUSE_IS_NOT && words_are_among(a, b)) ||
	       (a->kind == CLAUSE_IS_NOT && b->kind == CLAUSE_IS && words_are_among(b, a));
}

/* ">= 50 ms and <= 1 ms" */
static int refuse_empty(
	const struct figure *figure, const struct criterion *criterion, struct error *err)
{
	bool empty = false;
	for (int of = OF_NOTHING; of <= OF_BEST; of++) {
		double low;
		double high;
		bool open;
		criterion_bounds(criterion, figure, (enum clause_of)of, &low, &high, &open);
		empty = empty || low > high || (open && low >= high);
	}
	for (size_t i = 0; i < criterion->clause_count; i++)
		for (size_t k = 0; k < i; k++)
			empty = empty ||
				clauses_contradict(&criterion->clauses[i], &criterion->clauses[k]);
	return empty ? error_set(err, -EINVAL,
			       "no value is '%.100s': its limits exclude each other",
			       criterion->text)
		     : 0;
}

/* One of the few texts that the figure can be, or a glob of one. */
static int refuse_text(const struct figure *figure, const char *word, struct error *err)
{
	const char *names[CRITERION_WORDS_MAX];
	char copy[512];
	size_t count = 0;
	bool known = false;
	const char *texts = figure_texts(figure);
	if (!texts)
		return 0;
	(void)snprintf(copy, sizeof copy, "%s", texts);
	char *rest = copy;
	for (char *name; (name = strtok_r(rest, "|", &rest)) && count < COUNT(names);) {
		names[count++] = name;
		known = known || fnmatch(word, name, 0) == 0;
	}
	const char *near = suggest_nearest(word, names, count);
	return known ? 0
		     : error_set(err, -EINVAL, "'%s' is never '%.64s'%s%s%s (%s)", figure->name,
			       word, near ? "; did you mean '" : "", near ? near : "",
			       near ? "'?" : "", texts);
}

static int refuse_texts(
	const struct figure *figure, const struct criterion *criterion, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < criterion->clause_count; i++)
		for (size_t k = 0; k < criterion->clauses[i].word_count && !code; k++)
			code = refuse_text(figure, criterion->clauses[i].words[k], err);
	return code;
}

int criterion_parse(const struct figure *figure, const char *text, struct criterion *criterion,
	struct error *err)
{
	static const char joint[] = " and ";
	*criterion = (struct criterion){.text = strdup(text)};
	char *copy = strdup(text);
	int code = criterion->text && copy ? 0 : error_set(err, -ENOMEM, "out of memory");
	criterion->may_miss = copy && cut_end(copy, " or missing");
	for (char *at = copy, *next; !code && at; at = next) {
		next = strstr(at, joint);
		if (next) {
			*next = '\0';
			next += strlen(joint);
		}
		at += strspn(at, " \t");
		if (!*at)
			code = error_set(err, -EINVAL, "there is no criterion");
		else if (criterion->clause_count == CRITERION_CLAUSES_MAX)
			code = error_set(err, -EINVAL, "more than %d criteria are joined by 'and'",
				CRITERION_CLAUSES_MAX);
		else
			code = parse_clause(
				figure, at, &criterion->clauses[criterion->clause_count++], err);
	}
	free(copy);
	code = code ? code : refuse_texts(figure, criterion, err);
	code = code ? code : refuse_direction(figure, criterion, err);
	code = code ? code : refuse_empty(figure, criterion, err);
	if (code)
		criterion_release(criterion);
	return code;
}

void criterion_release(struct criterion *criterion)
{
	for (size_t i = 0; i < criterion->clause_count; i++)
		for (size_t word = 0; word < criterion->clauses[i].word_count; word++)
			free(criterion->clauses[i].words[word]);
	free(criterion->text);
	*criterion = (struct criterion){0};
}

bool criterion_needs(const struct criterion *criterion, enum clause_of of)
{
	for (size_t i = 0; i < criterion->clause_count; i++)
		if (criterion->clauses[i].of == of ||
			(of == OF_BASELINE && criterion->clauses[i].kind == CLAUSE_SIMILARITY))
			return true;
	return false;
}

void clause_bounds(const struct clause *clause, const struct figure *figure, double reference,
	double *low, double *high, bool *open)
{
	*low = -(double)INFINITY;
	*high = (double)INFINITY;
	*open = false;
	if (clause->kind == CLAUSE_WITHIN) {
		const double of = clause->of == OF_NOTHING ? clause->absolute : reference;
		const double room = clause->value * fabs(of);
		if (clause->either_side || figure->sense == FIGURE_MORE_IS_BETTER)
			*low = of - room;
		if (clause->either_side || figure->sense == FIGURE_LESS_IS_BETTER)
			*high = of + room;
		return;
	}
	const double limit = clause->of == OF_NOTHING ? clause->value : clause->value * reference;
	*open = clause->op == CLAUSE_LESS || clause->op == CLAUSE_MORE;
	if (clause->op == CLAUSE_MORE || clause->op == CLAUSE_MORE_EQUAL ||
		clause->op == CLAUSE_SAME)
		*low = limit;
	if (clause->op == CLAUSE_LESS || clause->op == CLAUSE_LESS_EQUAL ||
		clause->op == CLAUSE_SAME)
		*high = limit;
}
