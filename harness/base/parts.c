/* The Makefile defines MLBENCH_WITH_<package> for each optional library that pkg-config finds. */
#include "harness/base/parts.h"

#include <errno.h>
#include <stddef.h>

#define WITHOUT(library, packages) "built without " library "; install " packages " and rebuild"

static const struct {
	const char *name, *summary, *missing;
} parts[PARTS] = {
	[PART_LIVE_VIEW] = {"live view", "the full-screen view of a run: --watch, status --watch",
#if !defined(MLBENCH_WITH_ncursesw)
		WITHOUT("ncurses", "libncurses-dev")
#endif
	},
	[PART_METRICS_SERVER] = {"metrics server", "a run's metrics over HTTP: --listen",
#if !defined(MLBENCH_WITH_libmicrohttpd)
		WITHOUT("libmicrohttpd", "libmicrohttpd-dev")
#endif
	},
	[PART_FLAME] = {"flame graphs", "where CPU time goes: run --flame",
#if !defined(MLBENCH_WITH_libdw)
		WITHOUT("libdw", "libdw-dev")
#endif
	},
	[PART_TENSORBOARD] = {"TensorBoard", "event files: export --format tensorboard",
#if !defined(MLBENCH_WITH_libprotobuf_c)
		WITHOUT("protobuf-c", "libprotobuf-c-dev and protobuf-c-compiler")
#endif
	},
};

const char *part_name(enum part part)
{
	return parts[part].name;
}

const char *part_summary(enum part part)
{
	return parts[part].summary;
}

const char *part_missing(enum part part)
{
	return parts[part].missing;
}

int part_require(enum part part, struct error *err)
{
	const char *missing = part_missing(part);
	return missing ? error_set(err, -ENOTSUP, "%s", missing) : 0;
}
