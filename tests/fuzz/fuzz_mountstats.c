/* libFuzzer target: any text of the kernel's NFS client is a look with counts that fit one another,
 * or has a reason.  Before a byte 255, the first look; behind it, the second. */
#include "harness/measure/mountstats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_mountstats: %s\n", what);
	abort();
}

static void look(const uint8_t *data, size_t size, struct mountstats *stats)
{
	char *const text = malloc(size + 1);
	require(text != NULL, "out of memory");
	memcpy(text, data, size);
	text[size] = '\0';
	mountstats_parse(text, "/m", stats);
	free(text);
	require(!stats->why[0] || (stats->kind_count == 0 && !stats->protocol[0]),
		"counts and a reason");
	require(stats->why[0] || (stats->protocol[0] && stats->connections > 0),
		"no counts and no reason");
}

static void check_between(const struct mountstats *from, const struct mountstats *to)
{
	struct network_measurement n;
	mountstats_between(from, to, 10, &n);
	require(n.protocol[0] != '\0', "not known to be NFS");
	require(!n.why[0] || n.call_count == 0, "calls and a reason");
	require(n.why[0] || !(from->why[0] || to->why[0]), "counts without a look");
	require(n.call_count <= NETWORK_CALLS_MAX, "too many kinds");
	for (size_t i = 0; i < n.call_count; i++)
		require(n.calls[i].calls > 0 && n.calls[i].retransmits >= 0 &&
				n.calls[i].round_trip_ns >= 0 && n.calls[i].bytes_received >= 0,
			"a count below 0");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mountstats first;
	static struct mountstats second;
	const uint8_t *const cut = size > 0 ? memchr(data, 255, size) : NULL;
	const size_t length = cut ? (size_t)(cut - data) : size;
	look(data, length, &first);
	if (cut)
		look(cut + 1, size - length - 1, &second);
	else
		second = first;
	check_between(&first, &second);
	return 0;
}
