/* libFuzzer target: any index of token files is refused with a reason, or says of rising places within its
 * tokens where documents begin.  The first byte chooses the size of ids. */
#include "workloads/sample/token_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_token_index: %s\n", what);
	abort();
}

static void check_places(const struct token_index *index)
{
	for (size_t i = 0; i < index->count; i++) {
		const uint64_t begin = index->begins[i];
		require(begin <= index->tokens, "a document begins behind the tokens");
		require(i == 0 || index->begins[i - 1] < begin, "places do not rise");
		require(token_index_find(index, begin) == i, "a place is not found");
		require(token_index_find(index, begin + 1) == i + 1, "another place is found");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct token_index index;
	struct error err = {""};
	if (size == 0)
		return 0;
	/* Of its own size exactly: a read behind it is seen. */
	uint8_t *const own = malloc(size > 1 ? size - 1 : 1);
	require(own != NULL, "out of memory");
	memcpy(own, data + 1, size - 1);
	const int code = token_index_parse(own, size - 1, data[0] % 2 ? 4 : 2, &index, &err);
	require(code == 0 || (code == -EINVAL && err.text[0]), "refused without a reason");
	require(code == 0 || !index.begins, "something is left of a bad index");
	if (code == 0)
		check_places(&index);
	token_index_release(&index);
	/* And as the beginning of a token file. */
	struct token_header header;
	err.text[0] = '\0';
	const int read = token_header_read(own, size - 1, size - 1, &header, &err);
	require(read == 0 || read == -EAGAIN || (read == -EINVAL && err.text[0]),
		"a header refused without a reason");
	require(read || header.bytes <= size - 1, "a header behind the file");
	free(own);
	return 0;
}
