/* Help and the manual page: every key is in them, and no line is too wide. */
#include "harness/config/config.h"
#include "harness/config/document.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Columns: bytes that do not continue a UTF-8 letter. */
static void assert_width(const char *text, size_t width)
{
	size_t columns = 0;
	for (const char *at = text; *at; at++) {
		columns = *at == '\n' ? 0 : columns + ((*at & 0xc0) != 0x80);
		if (columns > width)
			fail_msg("wider than %zu at: %.60s", width, at - (columns < 40 ? 0 : 40));
		if (*at == '\n' && at > text && at[-1] == ' ')
			fail_msg("blank at the end of a line");
	}
}

static void help_shows_every_key(void **state)
{
	(void)state;
	for (size_t width = 60; width <= 200; width += 35) {
		struct buffer out = {0};
		document_keys(&out, width);
		assert_false(out.failed);
		assert_width(out.data, width);
		for (int key = 0; key < KEY_COUNT; key++) {
			char dotted[80];
			(void)snprintf(dotted, sizeof dotted, "\n  %s.%s ",
				config_keys[key].section, config_keys[key].name);
			if (!strstr(out.data, dotted))
				fail_msg("no '%s' in help", dotted);
		}
		buffer_release(&out);
	}
}

static void help_on_one_key(void **state)
{
	(void)state;
	struct buffer out = {0};
	struct error err;
	assert_int_equal(document_key(&out, "upload.depth", 78, &err), 0);
	assert_string_equal(out.data,
		"upload.depth\n"
		"  Uploaded batches that may wait in front of the step (mode = copy).\n"
		"\n"
		"  default   2\n"
		"  values    1 to 64 (written like 8)\n"
		"  sweep     yes: 'upload.depth = A,B,C' in [sweep], or --set\n"
		"            sweep.upload.depth=A,B,C\n"
		"  kind      knob: a sweep looks for its best value\n");
	out.size = 0;
	assert_int_equal(document_key(&out, "dataset.bytes", 78, &err), 0);
	assert_non_null(strstr(out.data, "  values    0 to 1GB (written like 64KiB)\n"));
	assert_non_null(strstr(out.data, "  sweep     no: one value for the whole run\n"));
	out.size = 0;
	assert_int_equal(document_key(&out, "read.engine", 78, &err), 0);
	assert_non_null(strstr(out.data, "  values    auto, memory, pread, io_uring, nfs, mmap\n"));
	out.size = 0;
	assert_int_equal(document_key(&out, "batch", 78, &err), 0);
	assert_non_null(strstr(out.data, "[batch] how samples are grouped\n"));
	assert_non_null(strstr(out.data, "  batch.drop_last "));
	out.size = 0;
	assert_int_equal(document_key(&out, "decode.worker", 78, &err), -EINVAL);
	assert_string_equal(
		err.text, "unknown key 'decode.worker'; did you mean 'decode.workers'?");
	assert_int_equal(out.size, 0);
	buffer_release(&out);
}

static void manual_shows_every_key(void **state)
{
	(void)state;
	struct buffer out = {0};
	document_manual(&out, "May 4, 2025");
	assert_false(out.failed);
	assert_non_null(strstr(out.data, ".Dd May 4, 2025\n"));
	for (int key = 0; key < KEY_COUNT; key++) {
		char item[160];
		(void)snprintf(item, sizeof item, ".It Cm %s No = Ar %s\n", config_keys[key].name,
			*config_keys[key].fallback ? config_keys[key].fallback : "\\&");
		if (!strstr(out.data, item))
			fail_msg("no '%s' in the manual", item);
	}
	for (size_t i = 0; i < config_section_count; i++) {
		char heading[80];
		(void)snprintf(heading, sizeof heading, ".Ss [%s]\n", config_sections[i].name);
		assert_non_null(strstr(out.data, heading));
	}
	buffer_release(&out);
}

/* mandoc finds nothing worth a warning. */
static void manual_is_clean(void **state)
{
	(void)state;
	if (system("command -v mandoc >/dev/null 2>&1") != 0) {
		print_message("no mandoc here\n");
		skip();
	}
	char path[] = "/tmp/mlbench-test-manual-XXXXXX";
	char command[96];
	struct buffer out = {0};
	document_manual(&out, "May 4, 2025");
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, out.data, out.size), (ssize_t)out.size);
	assert_int_equal(close(fd), 0);
	(void)snprintf(command, sizeof command, "mandoc -Tlint -Wwarning %s", path);
	const int status = system(command);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(status, 0);
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_shows_every_key),
		cmocka_unit_test(help_on_one_key),
		cmocka_unit_test(manual_shows_every_key),
		cmocka_unit_test(manual_is_clean),
	};
	return cmocka_run_group_tests_name("config_document", tests, NULL, NULL);
}
