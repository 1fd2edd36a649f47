/* The leader and its followers, message by message: a length, then the bytes. */
#include "workloads/ranks/ranks.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "workloads/ranks/pulse.h"
#include "workloads/ranks/ranks_look.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TAG_LENGTH = 1,
	TAG_BYTES = 2,
	LEADER = 0,
	LOOK_LEAST_NS = 20 * 1000,
	LOOK_MOST_NS = 2 * 1000 * 1000,
	LOOK_SHARE = 16, /* of the time that passed */
};
/* A rank that is there may have a data set to make or to read. */
static const uint64_t PATIENCE_NS = 1800 * NS_PER_S, STOP_PATIENCE_NS = 2 * NS_PER_S;
static const uint64_t PULSE_NS = NS_PER_S, PULSE_SILENCE_NS = 15 * NS_PER_S,
		      PULSE_END_NS = 120 * NS_PER_S;
/* For MPI to end. */
enum { CLOSE_S = 30, ABORT_S = 5 };

/* What a rank answers by itself. */
static const char ranks_ping[] = "?";
enum { PINGS = 12 };

/* --- waiting ---------------------------------------------------------------------------------- */

/* The others end when the leader does, which may have results to write. */
static bool ranks_stopped(const struct ranks *ranks)
{
	return ranks_leads(ranks) && ranks->stop &&
	       atomic_load_explicit(ranks->stop, memory_order_relaxed);
}

static uint64_t ranks_look_ns(uint64_t passed_ns)
{
	const uint64_t share_ns = passed_ns / LOOK_SHARE;
	return share_ns < LOOK_LEAST_NS  ? LOOK_LEAST_NS
	       : share_ns < LOOK_MOST_NS ? share_ns
					 : LOOK_MOST_NS;
}

int ranks_missing(struct ranks *ranks, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	unsigned rank;
	uint64_t silent_ns;
	if (!pulse_lost(ranks->pulse, &rank, &silent_ns))
		return 0;
	ranks->lost = true;
	return error_set(err, -ETIMEDOUT, "%s has not answered for %.0f s",
		ranks_name(ranks, rank, name, sizeof name), (double)silent_ns / (double)NS_PER_S);
}

static int ranks_give_up(struct ranks *ranks, struct mpi_request **request, unsigned rank,
	uint64_t passed_ns, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	ranks->plugin->forget(request);
	ranks->lost = true;
	if (ranks_stopped(ranks))
		return error_set(err, -EINTR, "stopped");
	const int code = ranks->spares ? 0 : ranks_missing(ranks, err);
	return code ? code
		    : error_set(err, -ETIMEDOUT, "%s has not answered for %.0f s",
			      ranks_name(ranks, rank, name, sizeof name),
			      (double)passed_ns / (double)NS_PER_S);
}

/* Whether waiting for a rank is in vain. */
static bool ranks_are_missing(struct ranks *ranks, unsigned rank)
{
	struct error gone;
	const bool any = ranks_missing(ranks, &gone);
	return ranks->spares ? pulse_lost_rank(ranks->pulse, rank) : any;
}

/* Until the request is over.  What is given up stays open in MPI.  limit_ns 0: however long that takes. */
static int ranks_wait(struct ranks *ranks, struct mpi_request **request, unsigned rank,
	uint64_t limit_ns, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	const uint64_t begin_ns = clock_now_ns();
	uint64_t last_ns = limit_ns > 0 ? begin_ns + limit_ns : UINT64_MAX;
	bool stopped = false;
	for (;;) {
		const int code = ranks->plugin->test(request, err);
		const uint64_t now_ns = clock_now_ns();
		if (code > 0)
			return 0;
		if (code < 0) {
			ranks->lost = true;
			return error_prefix(
				err, code, "%s", ranks_name(ranks, rank, name, sizeof name));
		}
		if (!stopped && ranks_stopped(ranks)) {
			stopped = true;
			last_ns = now_ns + STOP_PATIENCE_NS < last_ns ? now_ns + STOP_PATIENCE_NS
								      : last_ns;
		}
		if (now_ns > last_ns || ranks_are_missing(ranks, rank))
			return ranks_give_up(ranks, request, rank, now_ns - begin_ns, err);
		clock_sleep_until_ns(now_ns + ranks_look_ns(now_ns - begin_ns));
	}
}

static int ranks_send(
	struct ranks *ranks, unsigned rank, const void *data, uint64_t bytes, struct error *err)
{
	struct mpi_request *request;
	if (bytes > RANKS_MESSAGE_MAX) /* before the other one waits for it */
		return error_set(err, -EMSGSIZE,
			"a message of %" PRIu64 " bytes is longer than ranks take", bytes);
	int code = ranks->plugin->send(&request, rank, TAG_LENGTH, &bytes, sizeof bytes, err);
	if (!code)
		code = ranks_wait(ranks, &request, rank, ranks->patience_ns, err);
	if (!code && bytes > 0)
		code = ranks->plugin->send(&request, rank, TAG_BYTES, data, bytes, err);
	if (!code && bytes > 0)
		code = ranks_wait(ranks, &request, rank, ranks->patience_ns, err);
	return code;
}

static int ranks_receive(struct ranks *ranks, unsigned rank, uint64_t limit_ns, struct buffer *out,
	struct error *err)
{
	struct mpi_request *request;
	/* MPI may write to it after it was given up. */
	uint64_t *const bytes = calloc(1, sizeof *bytes);
	out->size = 0;
	if (!bytes)
		return error_set(err, -ENOMEM, "out of memory for a message");
	int code = ranks->plugin->receive(&request, rank, TAG_LENGTH, bytes, sizeof *bytes, err);
	if (!code)
		code = ranks_wait(ranks, &request, rank, limit_ns, err);
	if (code)
		return code;
	const uint64_t size = *bytes;
	free(bytes);
	if (size == 0)
		return 0;
	char *const data = size <= RANKS_MESSAGE_MAX ? malloc(size) : NULL;
	if (!data)
		return error_set(
			err, -ENOMEM, "no memory for a message of %" PRIu64 " bytes", size);
	code = ranks->plugin->receive(&request, rank, TAG_BYTES, data, size, err);
	if (!code)
		code = ranks_wait(ranks, &request, rank, ranks->patience_ns, err);
	if (code)
		return code;
	buffer_add(out, data, size);
	free(data);
	return out->failed ? error_set(err, -ENOMEM, "out of memory for a message") : 0;
}

/* --- leader and followers --------------------------------------------------------------------- */

const char *ranks_name(const struct ranks *ranks, unsigned rank, char *out, size_t room)
{
	const bool known = ranks->places && rank < ranks->world.count;
	const char *const host = known ? ranks->places[rank].host : "";
	(void)snprintf(out, room, "rank %u%s%s", rank, *host ? " on " : "", host);
	return out;
}

int ranks_tell(
	struct ranks *ranks, unsigned count, const void *data, size_t bytes, struct error *err)
{
	int code = 0;
	for (unsigned i = 1; i < count && !code; i++)
		code = ranks_send(ranks, ranks_nth(ranks, i), data, bytes, err);
	return code;
}

int ranks_tell_one(
	struct ranks *ranks, unsigned rank, const void *data, size_t bytes, struct error *err)
{
	return ranks_send(ranks, rank, data, bytes, err);
}

int ranks_hear(struct ranks *ranks, uint64_t limit_ns, struct buffer *out, struct error *err)
{
	for (;;) {
		int code = ranks_receive(ranks, LEADER, limit_ns, out, err);
		if (code || out->size != sizeof ranks_ping ||
			memcmp(out->data, ranks_ping, out->size) != 0)
			return code;
		const uint64_t now_ns = clock_now_ns();
		code = ranks_answer(ranks, &now_ns, sizeof now_ns, err);
		if (code)
			return code;
	}
}

int ranks_answer(struct ranks *ranks, const void *data, size_t bytes, struct error *err)
{
	return ranks_send(ranks, LEADER, data, bytes, err);
}

int ranks_take(struct ranks *ranks, unsigned rank, struct buffer *out, struct error *err)
{
	return ranks_receive(ranks, rank, ranks->patience_ns, out, err);
}

int ranks_share(struct ranks *ranks, unsigned count, void *data, size_t bytes, struct error *err)
{
	struct buffer text = {0};
	if (ranks_leads(ranks))
		return ranks_tell(ranks, count, data, bytes, err);
	int code = ranks_hear(ranks, 0, &text, err);
	if (!code && text.size != bytes)
		code = error_set(err, -EPROTO, "rank 0 sent %zu bytes for %zu", text.size, bytes);
	if (!code)
		memcpy(data, text.data, bytes);
	buffer_release(&text);
	return code;
}

/* --- agreeing --------------------------------------------------------------------------------- */

/* The first reason not to, with its name, into out. */
static int ranks_collect(struct ranks *ranks, unsigned count, struct buffer *out, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	struct buffer answer = {0};
	int code = 0;
	for (unsigned i = 1; i < count && !code; i++) {
		const unsigned rank = ranks_nth(ranks, i);
		code = ranks_take(ranks, rank, &answer, err);
		if (!code && answer.size > 0 && out->size == 0)
			buffer_format(out, "%s: %.*s", ranks_name(ranks, rank, name, sizeof name),
				(int)answer.size, answer.data);
	}
	buffer_release(&answer);
	return code;
}

static int ranks_all_agree(struct ranks *ranks, unsigned count, int code, struct error *err)
{
	struct buffer reason = {0};
	struct error why = {""};
	int failed;
	if (code && !err->text[0])
		(void)snprintf(err->text, sizeof err->text, "it stopped");
	if (ranks_leads(ranks)) {
		if (code)
			buffer_format(&reason, "rank 0 on %s: %s", ranks->world.host, err->text);
		failed = ranks_collect(ranks, count, &reason, &why);
		if (!failed)
			failed = ranks_tell(ranks, count, reason.data, reason.size, &why);
	} else {
		failed = ranks_answer(ranks, err->text, code ? strlen(err->text) : 0, &why);
		if (!failed)
			failed = ranks_hear(ranks, 0, &reason, &why);
	}
	if (!code && failed)
		code = error_set(err, failed, "%s", why.text);
	else if (!code && reason.size > 0)
		code = error_set(err, -ECANCELED, "%.*s", (int)reason.size, reason.data);
	buffer_release(&reason);
	return code;
}

int ranks_train(struct ranks *ranks, unsigned count, struct error *err)
{
	const int code = ranks->plugin->train(count, ranks->without, err);
	ranks->lost = ranks->lost || code;
	return code;
}

/* --- clocks ----------------------------------------------------------------------------------- */

/* Processes of one boot in one time namespace have one monotonic clock. */
static void ranks_name_clock(char *out, size_t room)
{
	char boot[40] = "";
	char namespace[32] = "";
	FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (file) {
		(void)fgets(boot, sizeof boot, file);
		(void)fclose(file);
	}
	(void)!readlink("/proc/self/ns/time", namespace, sizeof namespace - 1);
	boot[strcspn(boot, "\n")] = '\0';
	(void)snprintf(out, room, "%s %s", boot, namespace);
}

static int ranks_ping_once(struct ranks *ranks, unsigned rank, struct buffer *answer,
	struct rank_place *best, struct error *err)
{
	uint64_t there_ns = 0;
	const uint64_t before_ns = clock_now_ns();
	int code = ranks_send(ranks, rank, ranks_ping, sizeof ranks_ping, err);
	if (!code)
		code = ranks_take(ranks, rank, answer, err);
	const uint64_t after_ns = clock_now_ns();
	if (code)
		return code;
	if (answer->size != sizeof there_ns)
		return error_set(err, -EPROTO, "rank %u does not tell its time", rank);
	memcpy(&there_ns, answer->data, sizeof there_ns);
	const uint64_t half_ns = (after_ns - before_ns) / 2;
	if (half_ns < best->error_ns) {
		best->error_ns = half_ns;
		best->offset_ns = (int64_t)(before_ns + half_ns) - (int64_t)there_ns;
	}
	return 0;
}

int ranks_map_clocks(struct ranks *ranks, unsigned count, struct error *err)
{
	struct buffer answer = {0};
	int code = 0;
	for (unsigned i = 1; i < count && !code; i++) {
		const unsigned rank = ranks_nth(ranks, i);
		struct rank_place *const place = &ranks->places[rank];
		place->offset_ns = 0;
		place->error_ns = 0;
		if (place->clock[0] && strcmp(place->clock, ranks->places[LEADER].clock) == 0)
			continue;
		place->error_ns = UINT64_MAX;
		for (int ping = 0; ping < PINGS && !code; ping++)
			code = ranks_ping_once(ranks, rank, &answer, place, err);
	}
	buffer_release(&answer);
	return code;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A host and a clock, each with its end. */
static int ranks_say_place(struct ranks *ranks, struct error *err)
{
	const struct rank_place *const own = &ranks->places[ranks->world.rank];
	char text[sizeof own->host + sizeof own->clock];
	const int length = snprintf(text, sizeof text, "%s\n%s", own->host, own->clock);
	const unsigned count = ranks->world.count;
	return ranks_leads(ranks) ? ranks_tell(ranks, count, text, (size_t)length, err)
				  : ranks_answer(ranks, text, (size_t)length, err);
}

static void ranks_keep_place(struct rank_place *place, const struct buffer *text)
{
	const char *const end = text->size > 0 ? memchr(text->data, '\n', text->size) : NULL;
	if (!end)
		return;
	const size_t host = (size_t)(end - text->data);
	(void)snprintf(place->host, sizeof place->host, "%.*s", (int)host, text->data);
	(void)snprintf(
		place->clock, sizeof place->clock, "%.*s", (int)(text->size - host - 1), end + 1);
}

/* The leader's place goes to all, so that they can name it. */
static int ranks_learn_places(struct ranks *ranks, struct error *err)
{
	struct buffer text = {0};
	int code = 0;
	ranks->places = calloc(ranks->world.count, sizeof *ranks->places);
	if (!ranks->places)
		return error_set(err, -ENOMEM, "out of memory for %u ranks", ranks->world.count);
	struct rank_place *const own = &ranks->places[ranks->world.rank];
	(void)snprintf(own->host, sizeof own->host, "%s", ranks->world.host);
	ranks_name_clock(own->clock, sizeof own->clock);
	if (!ranks_leads(ranks)) {
		code = ranks_say_place(ranks, err);
		if (!code)
			code = ranks_hear(ranks, 0, &text, err);
		if (!code)
			ranks_keep_place(&ranks->places[LEADER], &text);
		buffer_release(&text);
		return code;
	}
	for (unsigned rank = 1; rank < ranks->world.count && !code; rank++) {
		code = ranks_take(ranks, rank, &text, err);
		if (!code)
			ranks_keep_place(&ranks->places[rank], &text);
	}
	buffer_release(&text);
	return code ? code : ranks_say_place(ranks, err);
}

static int ranks_join(struct ranks *ranks, const struct ranks_options *options, struct error *err)
{
	if (ranks->launcher.without_pmix && ranks->launcher.rank == LEADER)
		log_warn(
			"srun started %u ranks without PMIx; if MPI ends them now, start them with "
			"srun --mpi=pmix",
			ranks->launcher.count);
	int code = ranks->plugin->open(&ranks->world, err);
	if (!code && ranks->world.count != ranks->launcher.count && ranks->launcher.rank != LEADER)
		return -ENOTSUP; /* all see the same, and one says it */
	if (!code && ranks->world.count != ranks->launcher.count)
		return error_set(err, -ENOTSUP,
			"%s started %u ranks, but MPI (%s) sees %u: start them with the launcher of this "
			"MPI library%s",
			ranks->launcher.name, ranks->launcher.count, ranks->world.library,
			ranks->world.count, ranks->launcher.hint ? ranks->launcher.hint : "");
	if (!code)
		code = pulse_open(&ranks->pulse,
			&(const struct pulse_options){.plugin = ranks->plugin,
				.world = &ranks->world,
				.look_ns = options->pulse_ns,
				.silence_ns = options->silence_ns,
				.end_ns = PULSE_END_NS,
				.status = EXIT_STATUS_CANNOT},
			err);
	return code ? code : ranks_learn_places(ranks, err);
}

int ranks_open_through(struct ranks **out, const struct ranks_options *options, struct error *err)
{
	struct ranks *const ranks = calloc(1, sizeof *ranks);
	*out = NULL;
	if (!ranks)
		return error_set(
			err, -ENOMEM, "out of memory for %u ranks", options->launcher.count);
	ranks->agree = ranks_all_agree;
	ranks->missing = ranks_missing;
	ranks->plugin = options->plugin;
	ranks->launcher = options->launcher;
	ranks->stop = options->stop;
	ranks->patience_ns = PATIENCE_NS;
	const int code = ranks_join(ranks, options, err);
	ranks->lost = ranks->lost || code; /* the others wait for it */
	if (code)
		ranks_close(ranks, EXIT_STATUS_CANNOT);
	else
		*out = ranks;
	return code;
}

int ranks_open(struct ranks **out, const atomic_bool *stop, struct error *err)
{
	struct ranks_options options = {
		.stop = stop, .pulse_ns = PULSE_NS, .silence_ns = PULSE_SILENCE_NS};
	char path[PATH_MAX];
	void *library;
	*out = NULL;
	if (!launcher_find(&options.launcher) || options.launcher.count < 2)
		return 0;
	const int code = ranks_open_plugin(&options.plugin, path, &library, err);
	return code ? error_prefix(err, code, "%s started %u ranks", options.launcher.name,
			      options.launcher.count)
		    : ranks_open_through(out, &options, err);
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Where MPI waits for one that is gone, or its launcher does not come to end this process. */
struct ranks_end {
	unsigned seconds;
	int status;
};

static void *ranks_end_late(void *context)
{
	const struct ranks_end end = *(const struct ranks_end *)context;
	clock_sleep_until_ns(clock_now_ns() + end.seconds * NS_PER_S);
	_exit(end.status);
}

static _Atomic(const struct mpi_plugin *) ranks_abort_through;
static atomic_int ranks_abort_status;

static void ranks_abort(void)
{
	const struct mpi_plugin *const plugin = ranks_abort_through;
	static struct ranks_end end; /* an abort may return */
	pthread_t thread;
	end = (struct ranks_end){ABORT_S, ranks_abort_status};
	(void)pthread_create(&thread, NULL, ranks_end_late, &end);
	log_hush_interrupted(); /* launchers end it by a signal */
	plugin->abort(end.status);
}

/* It ends this process, too: what it has to say comes first. */
static void ranks_abort_at_exit(const struct mpi_plugin *plugin, int status)
{
	ranks_abort_status = status;
	if (!atomic_exchange(&ranks_abort_through, plugin))
		(void)atexit(ranks_abort);
}

static void ranks_leave(const struct mpi_plugin *plugin, int status)
{
	struct ranks_end end = {CLOSE_S, status};
	pthread_t thread;
	const bool guarded = pthread_create(&thread, NULL, ranks_end_late, &end) == 0;
	plugin->close();
	if (guarded) {
		(void)pthread_cancel(thread);
		(void)pthread_join(thread, NULL);
	}
}

void ranks_close(struct ranks *ranks, int status)
{
	struct error gone;
	if (!ranks)
		return;
	(void)ranks_missing(ranks, &gone);
	pulse_close(ranks->pulse, ranks->lost);
	if (ranks->world.count > 1 && ranks->lost)
		ranks_abort_at_exit(ranks->plugin, status);
	else if (ranks->world.count > 1)
		ranks_leave(ranks->plugin, status);
	free(ranks->places);
	free(ranks);
}
