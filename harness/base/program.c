/* The program itself: where it lies, and which of its optional parts it was built with. */
#include "harness/base/program.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- its place -------------------------------------------------------------------------------- */

void program_folder(char *out, size_t room)
{
	const ssize_t length = readlink("/proc/self/exe", out, room - 1);
	if (length <= 0) {
		(void)snprintf(out, room, ".");
		return;
	}
	out[length] = '\0';
	char *slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
}

bool program_beside(const char *relative, char *out, size_t room)
{
	char folder[PATH_MAX];
	program_folder(folder, sizeof folder);
	const int length = snprintf(out, room, "%s/%s", folder, relative);
	if (length > 0 && (size_t)length < room && access(out, F_OK) == 0)
		return true;
	out[0] = '\0';
	return false;
}

/* --- its limits ------------------------------------------------------------------------------- */

static struct rlimit program_files; /* as they were; {0}: not raised */

void program_raise_limits(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	program_files = files;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

void program_restore_limits(void)
{
	if (program_files.rlim_max > 0)
		(void)setrlimit(RLIMIT_NOFILE, &program_files);
}

/* --- which one it is -------------------------------------------------------------------------- */

static unsigned program_rank;

void program_be_rank(unsigned rank)
{
	program_rank = rank;
}

unsigned program_rank_of(int64_t ranks)
{
	return program_rank < ranks ? program_rank : 0;
}

/* --- its optional parts ----------------------------------------------------------------------- */

/* The Makefile defines MLBENCH_WITH_<package> for each optional library that pkg-config finds. */

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
	[PART_TRACES] = {"traces", "of torch.profiler: fit",
#if !defined(MLBENCH_WITH_yajl)
		WITHOUT("yajl", "libyajl-dev")
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
