/* libFuzzer target: any text is refused with a reason, or is a lab whose draw survives its sealed form and whose settings are
 * configured or refused with a reason. */
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_lab: %s\n", what);
	abort();
}

static void check_setting(
	const struct lab *lab, const struct lab_drawn *drawn, struct lab_setting *setting)
{
	struct error err = {0};
	struct lab_run run = {0};
	if (lab_setting_normalise(lab, drawn, setting, &err) ||
		lab_configure(lab, drawn, setting, true, &run, &err))
		require(*err.text != '\0', "a setting refused without a reason");
	else
		config_release(&run.config);
}

static void check_drawn(const struct lab *lab, const struct lab_drawn *drawn)
{
	struct error err = {0};
	struct lab_drawn again;
	struct lab_setting setting = {0};
	struct buffer words = {0};
	const struct lab_line *line;
	size_t at = 0;
	json_t *json = lab_drawn_to_json(lab, drawn);
	require(lab_drawn_from_json(lab, json, &again, &err) == 0, err.text);
	json_t *second = lab_drawn_to_json(lab, &again);
	require(json_equal(json, second), "a draw that is another one");
	json_decref(json);
	json_decref(second);
	if (lab_setting_best(lab, drawn, &setting, &err) == 0)
		check_setting(lab, drawn, &setting);
	while ((line = lab_next(lab, drawn->variant, LAB_WRONG, &at))) {
		setting = (struct lab_setting){0};
		if (lab_setting_of_line(drawn, line, &setting, &err) == 0)
			check_setting(lab, drawn, &setting);
	}
	for (at = 0; (line = lab_next(lab, drawn->variant, LAB_EXPLAIN, &at));)
		lab_fill_in(drawn, line->text, &words);
	buffer_release(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct section_owner *const owners[] = {&lab_owner, NULL};
	section_owners_register(owners);
	static const struct lab_laptop laptop = {.cores = 2, .decode_s = 0.001, .sleep_s = 1e-4};
	struct lab *lab = NULL;
	struct lab_drawn drawn;
	struct error err = {0};
	char *text = strndup((const char *)data, size);
	require(text != NULL, "no memory");
	if (lab_read_text(&lab, "lab", text, &err))
		require(*err.text != '\0', "refused without a reason");
	else if (lab_draw(lab, &laptop, size, &drawn, &err))
		require(*err.text != '\0', "a draw refused without a reason");
	else
		check_drawn(lab, &drawn);
	lab_free(lab);
	free(text);
	return 0;
}
