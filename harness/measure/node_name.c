/* Where a node's name comes from, and how long it holds. */
#include "harness/measure/node_name.h"

#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define HOST_NAME "host name"

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
		{HOST_NAME, uname(&host) == 0 ? host.nodename : ""}};
	out[0] = '\0';
	for (size_t i = 0; i < sizeof sources / sizeof *sources && !out[0]; i++) {
		(void)snprintf(out, NODE_NAME_BYTES, "%s", sources[i].name ? sources[i].name : "");
		if (from)
			*from = sources[i].from;
	}
	return out;
}

void environment_node(struct fact_list *list)
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

static const char *text_of(const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

const char *node_name_of(const struct fact_list *facts)
{
	const char *name = text_of(facts, "node", "name");
	return name ? name : text_of(facts, "kernel", "nodename");
}

static bool consists_of(const char *text, size_t count, const char *accepted)
{
	return strlen(text) == count && strspn(text, accepted) == count;
}

/* docker and podman: 12 hexadecimal digits.  A pod of a Job or a Deployment: "name-x7k2p". */
static bool is_made_up(const char *name, const char *container)
{
	enum { ID_DIGITS = 12, POD_DIGITS = 5 };
	const char *dash = strrchr(name, '-');
	if (strcmp(container, "kubernetes") == 0)
		return dash &&
		       consists_of(dash + 1, POD_DIGITS, "abcdefghijklmnopqrstuvwxyz0123456789");
	return (strcmp(container, "docker") == 0 || strcmp(container, "podman") == 0) &&
	       consists_of(name, ID_DIGITS, "0123456789abcdef");
}

bool node_name_lasts(const struct fact_list *facts)
{
	const char *name = node_name_of(facts);
	const char *from = text_of(facts, "node", "name_from");
	const char *container = text_of(facts, "cgroup", "container");
	if (!name)
		return false;
	return (from && strcmp(from, HOST_NAME) != 0) || !container || !is_made_up(name, container);
}
