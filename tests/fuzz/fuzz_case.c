/* libFuzzer target: any text is refused with a reason, or is a case that is written and read back as the same bytes; and as a
 * complaint it becomes text that a case holds, and that changes no key of it. */
#include "harness/fit/case.h"

#include "harness/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_case: %s\n", what);
	abort();
}

static void check_plain(const char *text)
{
	for (size_t bytes; *text; text += bytes) {
		bytes = utf8_character(text);
		require(bytes > 0 && (*text == '\n' || !utf8_is_control(text)),
			"a complaint that is no plain text");
	}
}

/* What was written is read back, and written the same. */
static void check_written(const struct case_file *file)
{
	struct buffer first = {0};
	struct buffer second = {0};
	struct case_file again;
	struct error err = {0};
	case_print(file, &first);
	require(!first.failed, "no memory");
	if (case_read_text(&again, "case", first.data, first.size, &err)) {
		(void)fprintf(stderr, "%s\n%s\n", err.text, first.data);
		require(0, "a case that is not read back");
	}
	case_print(&again, &second);
	require(first.size == second.size && memcmp(first.data, second.data, first.size) == 0,
		"a case that is written otherwise");
	case_release(&again);
	buffer_release(&first);
	buffer_release(&second);
}

static void check_complaint(const char *data, size_t size)
{
	struct case_file file;
	struct case_file again;
	struct error err = {0};
	struct buffer text = {0};
	case_open(&file);
	require(case_complain(&file, data, size, &err) == 0, "a complaint that was refused");
	if (file.complaint) {
		check_plain(file.complaint);
		require(strlen(file.complaint) <= CASE_COMPLAINT_BYTES_MAX,
			"a complaint that is too long");
	}
	case_print(&file, &text);
	require(case_read_text(&again, "case", text.data, text.size, &err) == 0,
		"a complaint that breaks its case");
	require(strcmp(again.complaint ? again.complaint : "",
			file.complaint ? file.complaint : "") == 0,
		"a complaint that is another one");
	require(again.keys.count == 0 && again.assumed.count == 0, "a complaint that sets keys");
	case_release(&again);
	case_release(&file);
	buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct section_owner *const owners[] = {&case_owner, NULL};
	section_owners_register(owners);
	struct case_file file;
	struct error err = {0};
	check_complaint((const char *)data, size);
	if (case_read_text(&file, "case", (const char *)data, size, &err)) {
		require(*err.text != '\0', "refused without a reason");
		return 0;
	}
	check_written(&file);
	case_release(&file);
	return 0;
}
