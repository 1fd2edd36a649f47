/* Where a node's name comes from, and how long it holds. */
#include "harness/measure/node_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static char given[NODE_NAME_BYTES];

int node_name_give(const char *name, struct error *err)
{
	if (strlen(name) >= sizeof given)
		return error_set(err, -EINVAL, "--node '%.20s...' is longer than %d bytes", name,
			NODE_NAME_BYTES - 1);
	(void)snprintf(given, sizeof given, "%s", name);
	return 0;
}

const char *node_name_here(char out[NODE_NAME_BYTES], const char **from)
{
	struct utsname host;
	const struct {
		const char *from, *name;
	} sources[] = {{"--node", given}, {"SLURMD_NODENAME", getenv("SLURMD_NODENAME")},
		{"NODE_NAME", getenv("NODE_NAME")},
		{FACT_NODE_HOST, uname(&host) == 0 ? host.nodename : ""}};
	out[0] = '\0';
	for (size_t i = 0; i < sizeof sources / sizeof *sources && !out[0]; i++) {
		(void)snprintf(out, NODE_NAME_BYTES, "%s", sources[i].name ? sources[i].name : "");
		if (from)
			*from = sources[i].from;
	}
	return out;
}

void node_name_facts(struct fact_list *list)
{
	char name[NODE_NAME_BYTES];
	const char *from;
	if (*node_name_here(name, &from)) {
		fact_text(list, "node", "name", "%s", name);
		fact_text(list, "node", "name_from", "%s", from);
	} else {
		fact_missing(list, "node", "name", "the host has none");
		fact_missing(list, "node", "name_from", "the host has none");
	}
}
