/* The page of a class: what it counts, which lab it calls hard, and that names of students stay text. */
#include "harness/report/class_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Three students, two of one name; lab 1 is easy, lab 2 is not; one file was changed. */
static const char class_three[] =
	"{'schema': 'mlbench.lab_scores/1', 'students': ["
	"{'student': 'anna', 'folder': 'a', 'labs': ["
	"{'lab': 1, 'title': 'The story', 'state': 'passed', 'points': 95, 'minutes': 10, 'measurements': 3, 'hints': 1,"
	" 'checks': 1, 'attempt': 1, 'predictions': 5, 'scored': 4, 'hits': 1, 'factor': 4, 'brier': 0.4, 'confidence': 0.9, 'authentic': true},"
	"{'lab': 2, 'title': 'Measuring', 'state': 'passed', 'points': 100, 'minutes': 12, 'measurements': 2, 'hints': 0,"
	" 'checks': 1, 'attempt': 1, 'predictions': 5, 'scored': 4, 'hits': 3, 'factor': 1.5, 'brier': 0.1, 'confidence': 0.7, 'authentic': true}]},"
	"{'student': 'anna', 'folder': 'b', 'labs': ["
	"{'lab': 1, 'title': 'The story', 'state': 'passed', 'points': 60, 'minutes': 20, 'measurements': 5, 'hints': 3,"
	" 'checks': 2, 'attempt': 2, 'predictions': 5, 'scored': 4, 'hits': 2, 'factor': 1, 'brier': 0.2, 'confidence': 0.5, 'authentic': null},"
	"{'lab': 2, 'title': 'Measuring', 'state': 'given-up', 'points': 0, 'minutes': 30, 'measurements': 9, 'hints': 3,"
	" 'checks': 5, 'attempt': 1, 'predictions': 4, 'scored': 0, 'hits': 0, 'factor': null, 'brier': null, 'confidence': null, 'authentic': false}]},"
	"{'student': '</script><b>x', 'folder': 'c', 'labs': ["
	"{'lab': 1, 'title': 'The story', 'state': 'passed', 'points': 80, 'minutes': 15, 'measurements': 3, 'hints': 2,"
	" 'checks': 1, 'attempt': 1, 'predictions': 4, 'scored': 2, 'hits': 0, 'factor': 2, 'brier': null, 'confidence': null, 'authentic': true},"
	"{'lab': 2, 'title': 'Measuring', 'state': 'predicted', 'points': null, 'minutes': null, 'measurements': 0, 'hints': 0,"
	" 'checks': 0, 'attempt': 1, 'predictions': 4, 'scored': 0, 'hits': 0, 'factor': null, 'brier': null, 'confidence': null, 'authentic': true}]}],"
	"'labs': ["
	"{'lab': 1, 'title': 'The story', 'started': 3, 'passed': 3, 'given_up': 0, 'minutes': 15, 'hints': 2, 'checks': 1.33, 'factor': 2, 'brier': 0.3},"
	"{'lab': 2, 'title': 'Measuring', 'started': 3, 'passed': 1, 'given_up': 1, 'minutes': 21, 'hints': 1, 'checks': 2, 'factor': 1.5, 'brier': 0.1}],"
	"'skipped': [{'folder': 'd', 'why': 'it has no student.json'}]}";

static char *class_page_of(const char *text)
{
	struct error err = {0};
	struct buffer out = {0};
	char *json = strdup(text);
	assert_non_null(json);
	for (char *at = json; *at; at++)
		if (*at == '\'')
			*at = '"';
	json_t *document = json_loads(json, 0, NULL);
	assert_non_null(document);
	assert_int_equal(class_page(document, &out, &err), 0);
	assert_false(out.failed);
	json_decref(document);
	free(json);
	return out.data;
}

static void class_has(const char *page, const char *text)
{
	if (!strstr(page, text))
		fail_msg("the page lacks '%s'", text);
}

static void a_class_is_counted(void **state)
{
	(void)state;
	char *page = class_page_of(class_three);
	class_has(page, "3 students passed 4 of the 6 labs that they started.");
	class_has(page, "Hardest: lab 2, Measuring: 1 of 3 passed, 21 minutes");
	class_has(page, "1 file is not what the program wrote");
	class_has(page, "it has no student.json");
	class_has(page, "anna (2)");
	class_has(page, "\"title\":\"minutes to pass\"");
	class_has(page, "<b>42.9"); /* 6 of 14 that were scored */
	/* Geometric means: lab 1 of 4, 1 and 2, lab 2 of 1.5 alone. */
	class_has(page,
		"off by a factor of 2.00 in the first half of the labs, of 1.50 in the second");
	free(page);
}

static void names_stay_text(void **state)
{
	(void)state;
	char *page = class_page_of(class_three);
	assert_null(strstr(page, "</script><b>"));
	assert_null(strstr(page, "<b>x"));
	class_has(page, "&lt;/script&gt;&lt;b&gt;x");
	free(page);
}

static void nobody_is_a_page_too(void **state)
{
	(void)state;
	char *page = class_page_of("{'students': [], 'labs': [], 'skipped': []}");
	class_has(page, "0 students passed 0 of the 0 labs");
	assert_null(strstr(page, "Hardest"));
	free(page);
}

static void without_predictions_none_is_drawn(void **state)
{
	(void)state;
	char *page = class_page_of(
		"{'students': [{'student': 'a', 'labs': [{'lab': 1, 'title': 'T', 'state': 'started', 'points': null}]}],"
		"'labs': [{'lab': 1, 'title': 'T', 'started': 1, 'passed': 0, 'given_up': 0, 'minutes': null}]}");
	class_has(page, "No prediction was measured yet.");
	class_has(page, "No lab is called hard that fewer than 3 students started");
	class_has(page, "\"drop\":[\"minutes\"]"); /* a panel without a bar */
	class_has(page, "1 student passed 0 of the 1 lab that they started.");
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_is_counted),
		cmocka_unit_test(names_stay_text),
		cmocka_unit_test(nobody_is_a_page_too),
		cmocka_unit_test(without_predictions_none_is_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
