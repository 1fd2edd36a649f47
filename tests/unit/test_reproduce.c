/* The command that a report prints: a shell reads it back to the same configuration, whatever its texts hold. */
#include "harness/report/html/sections.h"

#include "harness/base/buffer.h"
#include "harness/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENT_BYTES = 1 << 16, WORDS = 60, WORD_BYTES = 24 };

/* What bash makes of `words`: each argument with a zero behind it.  Returns how many bytes. */
static size_t ask_shell(const char *words, char *out)
{
	char path[] = "/tmp/mlbench-shell-XXXXXX";
	char command[64];
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *script = fdopen(fd, "w");
	assert_non_null(script);
	assert_true(fprintf(script, "printf '%%s\\0' %s\n", words) > 0);
	assert_int_equal(fclose(script), 0);
	(void)snprintf(command, sizeof command, "LC_ALL=C bash %s", path);
	FILE *shell =
		popen(command, "r"); // NOLINT(cert-env33-c): what a shell reads is what is tested
	assert_non_null(shell);
	const size_t size = fread(out, 1, ARGUMENT_BYTES, shell);
	assert_int_equal(pclose(shell), 0);
	(void)unlink(path);
	return size;
}

static void words(void **state)
{
	static char out[ARGUMENT_BYTES];
	char texts[WORDS][WORD_BYTES];
	struct buffer all = {0};
	struct rng rng;
	(void)state;
	rng_init(&rng, 11, 0);
	for (size_t i = 0; i < WORDS; i++) {
		size_t used = 0;
		while (used + 1 < WORD_BYTES && rng_below(&rng, 12) > 0) {
			static const char nasty[] =
				"'\"\\$`!*?[]{}()<>|&;#~ \t\nab09\x1b\x7f\xc3\xff\x80";
			texts[i][used++] = nasty[rng_below(&rng, sizeof nasty - 1)];
		}
		texts[i][used] = '\0';
		buffer_text(&all, " ");
		shell_word(texts[i], &all);
	}
	for (size_t i = 0; i < all.size; i++) /* plain text, whatever the words hold */
		assert_in_range((unsigned char)all.data[i], 0x20, 0x7e);
	const size_t size = ask_shell(all.data, out);
	const char *at = out;
	for (size_t i = 0; i < WORDS; i++) {
		assert_true(at < out + size);
		assert_string_equal(at, texts[i]);
		at += strlen(at) + 1;
	}
	assert_ptr_equal(at, out + size);
	buffer_release(&all);
}

static void plain_words_stay_plain(void **state)
{
	struct buffer out = {0};
	(void)state;
	shell_word("sweep.decode.workers=1,2,4", &out);
	buffer_text(&out, " ");
	shell_word("", &out);
	buffer_text(&out, " ");
	shell_word("it's", &out);
	assert_string_equal(out.data, "sweep.decode.workers=1,2,4 '' 'it'\\''s'");
	buffer_release(&out);
}

/* Through a shell and back; the hash of both must be one. */
static void expect_reproduced(const char *const *sets, size_t count, const char *command)
{
	static char out[ARGUMENT_BYTES];
	struct config config = {0};
	struct config again = {0};
	struct buffer text = {0};
	struct error err = {0};
	char mine[17];
	char theirs[17];
	config_init(&config);
	config_init(&again);
	for (size_t i = 0; i < count; i++)
		if (config_set(&config, sets[i], &err))
			fail_msg("%s", err.text);
	assert_true(reproduce_command(&config, "a name", false, &text));
	assert_int_equal(strncmp(text.data, command, strlen(command)), 0);
	const size_t size = ask_shell(text.data, out);
	bool is_set = false;
	for (const char *at = out; at < out + size; at += strlen(at) + 1) {
		if (is_set && config_set(&again, at, &err))
			fail_msg("%s", err.text);
		is_set = strcmp(at, "--set") == 0;
	}
	config_hash(&config, mine);
	config_hash(&again, theirs);
	assert_string_equal(mine, theirs);
	assert_string_equal(config_text(&again, KEY_RUN_NAME), "a name");
	buffer_release(&text);
	config_release(&config);
	config_release(&again);
}

static void commands(void **state)
{
	static const char *const one[] = {"decode.workers=3", "run.seed=12", "step.time=1500us"};
	static const char *const swept[] = {"dataset.path=it's a \"path\" & <more>",
		"sweep.decode.workers=1,2,4", "sweep.batch.size=8,16,32",
		"sweep.prefetch.depth=1,2", "sweep.zip=decode.workers, batch.size",
		"sweep.exclude=decode.workers=4 prefetch.depth=1", "augment.flip=25%",
		"read.engine=pread"};
	static const char *const dollars[] = {"dataset.path=a$$b \\ `c` \xc3\xa9 # d"};
	static const char *const ranks[] = {"run.ranks=4"};
	static const char *const more_ranks[] = {"sweep.run.ranks=1,8,2"};
	(void)state;
	expect_reproduced(ranks, 1, "mpirun -n 4 mlbench run /dev/null ");
	expect_reproduced(more_ranks, 1, "mpirun -n 8 mlbench sweep /dev/null ");
	expect_reproduced(NULL, 0, "mlbench run /dev/null --set 'run.name=a name'");
	expect_reproduced(one, 3, "mlbench run /dev/null ");
	expect_reproduced(swept, 8, "mlbench sweep /dev/null ");
	expect_reproduced(dollars, 1, "mlbench run /dev/null ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(plain_words_stay_plain),
		cmocka_unit_test(commands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
