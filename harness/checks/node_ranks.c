/* The process that speaks with the other ranks, and the one that judges. */
#include "harness/checks/node_ranks.h"

#include "harness/accept/result.h"
#include "harness/base/bounded.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/checks/network.h"
#include "harness/checks/other_work.h"
#include "harness/checks/sink.h"
#include "harness/measure/environment.h"
#include "harness/measure/node_probes.h"
#include "workloads/ranks/links.h"
#include "workloads/ranks/pulse.h"
#include "workloads/ranks/ranks.h"
#include "workloads/ranks/ranks_look.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct node_ranks {
	const struct runner *runner;
	struct launcher launcher;
	bool judges;
	struct bounded_process process; /* that speaks with the others */
	int control[2];                 /* what it is told: CONTROL_... */
	bool lost;                      /* it does not answer */
};

enum { CONTROL_CHECK = 'c', CONTROL_DONE = 'd', SLICE_MS = 50, END_S = 5, FAILED_LAST_MS = 500 };

bool node_ranks_here(struct launcher *launcher)
{
	return launcher_find(launcher) && launcher->count > 1;
}

/* --- what ranks tell each other --------------------------------------------------------------- */

/* The leader learns who the others are. */
struct rank_hello {
	char version[16], plan[17], node[NODE_NAME_BYTES];
	uint32_t tier, local_rank;
};

/* Each learns what it is. */
struct rank_role {
	char word[8];
	uint32_t party, one_machine, crowded;
	char refused[ERROR_TEXT_BYTES]; /* why nothing can be measured; "" */
};
static const char role_word[8] = "\1role", fail_word[8] = "\1fail";

/* Why the leader has nothing for a check. */
struct rank_failure {
	char word[8];
	int64_t code;
	char why[ERROR_TEXT_BYTES];
};

static bool told_is(const struct buffer *told, const char word[8])
{
	return told->size >= 8 && memcmp(told->data, word, 8) == 0;
}

static void hello_fill(
	const struct node_ranks *r, const struct ranks *ranks, struct rank_hello *hello)
{
	const char *from = NULL;
	memset(hello, 0, sizeof *hello);
	(void)snprintf(hello->version, sizeof hello->version, "%s", MLBENCH_VERSION);
	plan_hash(r->runner->plan, hello->plan);
	(void)node_name_here(hello->node, &from);
	hello->tier = (uint32_t)r->runner->tier;
	hello->local_rank = ranks->world.local_rank;
}

/* --- the process ------------------------------------------------------------------------------ */

struct speaking {
	const struct node_ranks *r;
	struct ranks *ranks;
	struct check_sink sink; /* to the rank that judges */
	struct rank_role role;
	struct network_party *parties; /* of the leader; owned */
	size_t count;
	struct error why; /* of what can no longer be measured; "" */
	int code;
	bool over; /* the rank that judges waits for nothing more */
};

/* Waits until the process that judges comes to a check, or to its end. */
static void speaking_wait(struct speaking *s)
{
	char told = CONTROL_DONE;
	ssize_t got;
	if (!s->r->judges || s->over)
		return;
	do
		got = read(s->r->control[0], &told, 1);
	while (got < 0 && errno == EINTR && !atomic_load(s->r->runner->stop));
	s->over = got != 1 || told == CONTROL_DONE;
}

static int speaking_fail(struct speaking *s, int code, const struct error *err)
{
	if (code && !s->code) {
		s->code = code;
		s->why = *err;
	}
	return s->code;
}

/* Of nodes of one name both say which rank they are. */
static void parties_name(struct speaking *s, bool one_node, const struct rank_hello *hellos)
{
	for (size_t i = 0; i < s->count; i++) {
		struct network_party *const party = &s->parties[i];
		bool twin = false;
		for (size_t j = 0; j < s->count; j++)
			twin |= i != j && strcmp(hellos[party->rank].node,
						  hellos[s->parties[j].rank].node) == 0;
		if (one_node)
			(void)snprintf(party->name, sizeof party->name, "rank %u", party->rank);
		else if (twin)
			(void)snprintf(party->name, sizeof party->name, "%.60s (rank %u)",
				hellos[party->rank].node, party->rank);
		else
			(void)snprintf(
				party->name, sizeof party->name, "%s", hellos[party->rank].node);
	}
}

/* The first rank of each node; of one node, all. */
static void parties_choose(struct speaking *s, const struct rank_hello *hellos)
{
	const unsigned ranks = s->ranks->world.count;
	size_t nodes = 0;
	for (unsigned rank = 0; rank < ranks; rank++)
		nodes += hellos[rank].local_rank == 0;
	const bool one_node = nodes < 2;
	for (unsigned rank = 0; rank < ranks; rank++)
		if (one_node || hellos[rank].local_rank == 0) {
			s->parties[s->count] = (struct network_party){
				.rank = rank, .judge = one_node ? 0 : s->count, .sink = {.fd = -1}};
			s->count++;
		}
	parties_name(s, one_node, hellos);
}

/* Whether a rank is another program, or was given another task, than the leader. */
static int hello_check(const struct speaking *s, const struct rank_hello *own, unsigned rank,
	const struct rank_hello *its, struct error *err)
{
	char name[MPI_HOST_BYTES + 32];
	(void)ranks_name(s->ranks, rank, name, sizeof name);
	if (strcmp(own->version, its->version) != 0)
		return error_set(err, -ENOTSUP,
			"%s has version %.15s of mlbench, and rank 0 has %s", name, its->version,
			own->version);
	if (strcmp(own->plan, its->plan) != 0 || own->tier != its->tier)
		return error_set(err, -EINVAL,
			"%s has another plan, --check or --tier than rank 0: give all nodes the same",
			name);
	return 0;
}

static int leader_hears_hellos(
	struct speaking *s, struct rank_hello *hellos, struct error *refused, struct error *err)
{
	struct buffer text = {0};
	int code = 0;
	hello_fill(s->r, s->ranks, &hellos[0]);
	for (unsigned rank = 1; rank < s->ranks->world.count && !code; rank++) {
		code = ranks_take(s->ranks, rank, &text, err);
		if (!code && text.size != sizeof hellos[rank])
			code = error_set(err, -EPROTO, "rank %u does not say what it is", rank);
		if (code)
			break;
		memcpy(&hellos[rank], text.data, sizeof hellos[rank]);
		if (!refused->text[0])
			(void)hello_check(s, &hellos[0], rank, &hellos[rank], refused);
	}
	buffer_release(&text);
	return code;
}

static bool leader_is_one_machine(const struct ranks *ranks)
{
	bool one = ranks->places[0].clock[0] != '\0';
	for (unsigned rank = 1; rank < ranks->world.count; rank++)
		one &= strcmp(ranks->places[rank].clock, ranks->places[0].clock) == 0;
	return one;
}

static unsigned leader_cores(void)
{
	unsigned *cores;
	const unsigned count = probe_core_list(&cores);
	free(cores);
	return count;
}

static bool leader_has_party(const struct speaking *s, unsigned rank)
{
	bool has = false;
	for (size_t i = 0; i < s->count; i++)
		has |= s->parties[i].rank == rank;
	return has;
}

static int leader_gives_roles(struct speaking *s, struct error *err)
{
	const unsigned count = s->ranks->world.count;
	struct rank_hello *const hellos = calloc(count, sizeof *hellos);
	struct error refused = {""};
	s->parties = calloc(count, sizeof *s->parties);
	int code = hellos && s->parties
			   ? leader_hears_hellos(s, hellos, &refused, err)
			   : error_set(err, -ENOMEM, "out of memory for %u ranks", count);
	if (!code)
		parties_choose(s, hellos);
	s->role = (struct rank_role){.party = 1, .one_machine = leader_is_one_machine(s->ranks)};
	s->role.crowded = s->role.one_machine && count > leader_cores();
	for (unsigned rank = 1; rank < count && !code; rank++) {
		struct rank_role role = s->role;
		role.party = leader_has_party(s, rank);
		memcpy(role.word, role_word, sizeof role.word);
		(void)snprintf(role.refused, sizeof role.refused, "%s", refused.text);
		code = ranks_tell_one(s->ranks, rank, &role, sizeof role, err);
	}
	free(hellos);
	if (!code && refused.text[0])
		code = error_set(err, -EINVAL, "%s", refused.text);
	return code;
}

static int other_takes_role(struct speaking *s, struct error *err)
{
	struct rank_hello hello;
	struct buffer text = {0};
	hello_fill(s->r, s->ranks, &hello);
	int code = ranks_answer(s->ranks, &hello, sizeof hello, err);
	if (!code)
		code = ranks_hear(s->ranks, 0, &text, err);
	if (!code && (text.size != sizeof s->role || !told_is(&text, role_word)))
		code = error_set(err, -EPROTO, "rank 0 does not say what this rank is");
	if (!code)
		memcpy(&s->role, text.data, sizeof s->role);
	if (!code && s->role.refused[0])
		code = error_set(err, -EINVAL, "%s", s->role.refused);
	buffer_release(&text);
	return code;
}

static void speaking_open(struct speaking *s)
{
	struct error err = {""};
	sink_activity(&s->sink, "waiting for the %u ranks that %s started%s", s->r->launcher.count,
		s->r->launcher.name,
		s->r->launcher.without_pmix ? " without PMIx; srun --mpi=pmix helps" : "");
	int code = ranks_open(&s->ranks, s->r->runner->stop, &err);
	if (!code && !s->ranks)
		code = error_set(&err, -ENOTSUP, "there are no other ranks");
	/* What a lost rank ends is the check, and not what other nodes do beside it. */
	if (!code)
		pulse_spare(s->ranks->pulse);
	if (!code)
		code = ranks_leads(s->ranks) ? leader_gives_roles(s, &err)
					     : other_takes_role(s, &err);
	(void)speaking_fail(s, code, &err);
}

/* --- a check ---------------------------------------------------------------------------------- */

/* What a judge's sink has been given, as text.  False without memory. */
static bool sink_read(int fd, struct buffer *out)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return false;
	char *const text = malloc((size_t)status.st_size + 1);
	const ssize_t got = text ? pread(fd, text, (size_t)status.st_size, 0) : -1;
	if (got > 0)
		buffer_add(out, text, (size_t)got);
	free(text);
	return got == status.st_size && !out->failed;
}

/* To each judge what its sink has been given. */
static int leader_delivers(struct speaking *s, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < s->count && !code; i++) {
		const struct network_party *const party = &s->parties[i];
		struct buffer text = {0};
		if (party->judge == i && !sink_read(party->sink.fd, &text))
			code = error_set(err, -ENOMEM, "out of memory for what was measured");
		else if (party->rank == s->ranks->world.rank)
			(void)files_write_all(s->sink.fd, text.data, text.size);
		else
			code = ranks_tell_one(s->ranks, party->rank, text.data ? text.data : "\n",
				text.size + !text.data, err);
		buffer_release(&text);
	}
	return code;
}

/* Tells those that still hear that nothing comes. */
static void leader_excuses(struct speaking *s, int code, const struct error *why)
{
	struct rank_failure failure = {.code = code};
	memcpy(failure.word, fail_word, sizeof failure.word);
	(void)snprintf(failure.why, sizeof failure.why, "%s", why->text);
	s->ranks->patience_ns = END_S * NS_PER_S;
	s->ranks->spares = true;
	for (size_t i = 0; i < s->count; i++) {
		struct error ignored = {""};
		if (s->parties[i].rank != s->ranks->world.rank)
			(void)ranks_tell_one(
				s->ranks, s->parties[i].rank, &failure, sizeof failure, &ignored);
	}
}

static int leader_measures(struct speaking *s, const struct accept_check *check, struct error *err)
{
	const struct runner *const runner = s->r->runner;
	const struct network_request request = {.ranks = s->ranks,
		.parties = s->parties,
		.count = s->count,
		.plan = runner->plan,
		.check = check,
		.tier = runner->tier,
		.one_node = s->count > 1 && s->parties[1].judge == 0,
		.crowded = s->role.crowded};
	int code = 0;
	for (size_t i = 0; i < s->count && !code; i++) {
		s->parties[i].sink.fd = memfd_create("mlbench-network", MFD_CLOEXEC);
		if (s->parties[i].sink.fd < 0)
			code = error_set_errno(err, errno, "no memory for what is measured");
	}
	if (!code)
		code = network_measure(&request, err);
	if (!code)
		code = leader_delivers(s, err);
	if (code)
		leader_excuses(s, code, err);
	for (size_t i = 0; i < s->count; i++) {
		if (s->parties[i].sink.fd >= 0)
			(void)close(s->parties[i].sink.fd);
		s->parties[i].sink.fd = -1;
	}
	return code;
}

/* Takes part until the leader has what this node's result takes. */
static int other_measures(struct speaking *s, struct error *err)
{
	const struct network_times times = network_times(s->r->runner->tier);
	struct rank_failure failure;
	struct links *links;
	struct buffer text = {0};
	int code = links_open(&links,
		&(struct links_options){.ranks = s->ranks,
			.stream_ns = times.stream_ns,
			.pings_ns = times.pings_ns,
			.crowded = s->role.crowded},
		err);
	if (!code)
		code = links_hear(links, 0, &text, err);
	if (!code && told_is(&text, fail_word) && text.size == sizeof failure) {
		memcpy(&failure, text.data, sizeof failure);
		code = error_set(err, (int)failure.code, "%s", failure.why);
	} else if (!code) {
		(void)files_write_all(s->sink.fd, text.data, text.size);
	}
	links_close(links);
	buffer_release(&text);
	return code;
}

/* Other work on this node counts as it does for other checks; where all nodes are one machine, their own streams would be such. */
static void speaking_measure(struct speaking *s, const struct accept_check *check)
{
	static const double BUSY_SHARE = 0.2;
	char words[OTHER_WORK_WORDS_BYTES];
	struct error err = {""};
	struct other_work others = {0};
	unsigned *cores;
	const char *const root = s->r->runner->root;
	const unsigned core_count = probe_core_list(&cores);
	other_work_begin(&others, cores_used_seconds(root, cores, core_count), own_user_seconds());
	sink_activity(&s->sink, "measuring the links between the ranks");
	int code = s->code;
	if (!code)
		code = ranks_leads(s->ranks) ? leader_measures(s, check, &err)
					     : other_measures(s, &err);
	other_work_end(&others, cores_used_seconds(root, cores, core_count), own_user_seconds(),
		core_count);
	free(cores);
	if (!s->role.one_machine && other_work_is_busy(&others, BUSY_SHARE, core_count, words))
		sink_condition(&s->sink, "", "", CONDITION_BUSY, "%s", words);
	sink_end(&s->sink, speaking_fail(s, code, &err), &s->why);
}

static void speaking_measure_all(struct speaking *s)
{
	const struct accept_plan *const plan = s->r->runner->plan;
	for (size_t i = 0; i < plan->check_count; i++) {
		const struct accept_check *const check = &plan->checks[i];
		if (check->kind != ACCEPT_NETWORK || !check_in_tier(check, s->r->runner->tier))
			continue;
		/* Also if the process that judges has ended: the others measure with this rank. */
		speaking_wait(s);
		if (s->code || s->role.party)
			speaking_measure(s, check);
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Nobody ends before all are done: see the head of node_ranks.h.  A word from each of the others, then one to each, by MPI's own
 * requests: those of ranks.h give up for all as soon as one is lost. */
enum { TAG_DONE = 21, TAG_END = 22, WORD_DONE = 1, WORD_END = 2, WORD_LOST = 3, END_LOOK_MS = 20 };

struct ending {
	struct mpi_request *request;
	uint64_t word; /* MPI may write to it when all is over */
};

/* Whether it is over, or will never be: this process is told to end, or the rank is lost. */
static bool ending_is_over(const struct speaking *s, struct ending *ending, unsigned rank)
{
	struct error err;
	return !ending->request || s->ranks->plugin->test(&ending->request, &err) != 0 ||
	       atomic_load(s->r->runner->stop) || pulse_lost_rank(s->ranks->pulse, rank);
}

static void ending_wait(const struct speaking *s, struct ending *ending, unsigned rank)
{
	while (!ending_is_over(s, ending, rank))
		clock_sleep_until_ns(clock_now_ns() + END_LOOK_MS * NS_PER_MS);
}

static void leader_ends(struct speaking *s, struct ending *endings)
{
	struct error err;
	const struct mpi_plugin *const mpi = s->ranks->plugin;
	const unsigned count = s->ranks->world.count;
	for (unsigned rank = 1; rank < count; rank++)
		(void)mpi->receive(&endings[rank].request, rank, TAG_DONE, &endings[rank].word,
			sizeof endings[rank].word, &err);
	for (unsigned rank = 1; rank < count; rank++)
		ending_wait(s, &endings[rank], rank);
	(void)ranks_missing(s->ranks, &err);
	for (unsigned rank = 1; rank < count; rank++) {
		struct ending *const ending = &endings[count + rank];
		ending->word = s->ranks->lost ? WORD_LOST : WORD_END;
		(void)mpi->send(
			&ending->request, rank, TAG_END, &ending->word, sizeof ending->word, &err);
		(void)ending_is_over(s, ending, rank);
	}
	for (unsigned rank = 1; rank < count; rank++)
		ending_wait(s, &endings[count + rank], rank);
}

static void other_ends(struct speaking *s, struct ending *endings)
{
	struct error err;
	const struct mpi_plugin *const mpi = s->ranks->plugin;
	endings[0].word = WORD_DONE;
	endings[1].word = WORD_LOST;
	(void)mpi->receive(
		&endings[1].request, 0, TAG_END, &endings[1].word, sizeof endings[1].word, &err);
	(void)mpi->send(
		&endings[0].request, 0, TAG_DONE, &endings[0].word, sizeof endings[0].word, &err);
	ending_wait(s, &endings[0], 0);
	ending_wait(s, &endings[1], 0);
	s->ranks->lost = s->ranks->lost || endings[1].word != WORD_END;
}

static void speaking_end(struct speaking *s)
{
	/* Of this process, which ends: MPI may still write to it. */
	static struct ending *endings;
	endings = calloc(2 * s->ranks->world.count, sizeof *endings);
	if (!endings)
		s->ranks->lost = true;
	else if (ranks_leads(s->ranks))
		leader_ends(s, endings);
	else
		other_ends(s, endings);
	if (atomic_load(s->r->runner->stop))
		s->ranks->lost = true;
	ranks_close(s->ranks, EXIT_STATUS_CANNOT);
}

static void speak(void *context, int fd)
{
	struct speaking s = {.r = context, .sink = {.fd = fd}};
	(void)close(s.r->control[1]);
	speaking_open(&s);
	speaking_measure_all(&s);
	(void)close(fd);
	while (s.r->judges && !s.over)
		speaking_wait(&s);
	if (s.ranks)
		speaking_end(&s);
	free(s.parties);
}

/* --- the rank --------------------------------------------------------------------------------- */

static bool ranks_are_asked(const struct runner *runner)
{
	bool asked = false;
	for (size_t i = 0; i < runner->plan->check_count; i++)
		asked |= runner->plan->checks[i].kind == ACCEPT_NETWORK &&
			 check_in_tier(&runner->plan->checks[i], runner->tier);
	return asked;
}

/* Open MPI binds a rank to a core or a socket; a node is judged by all that it may use. */
static void ranks_unbind(void)
{
	cpu_set_t all;
	memset(&all, 0xff, sizeof all);
	(void)sched_setaffinity(0, sizeof all, &all);
}

int node_ranks_open(struct node_ranks **out, const struct runner *runner,
	const struct launcher *launcher, struct error *err)
{
	struct ranks_found found;
	*out = NULL;
	const bool judges = launcher->local_rank == 0;
	if (judges)
		ranks_unbind();
	if (!ranks_are_asked(runner)) {
		/* Where one that fails ends nobody, nobody waits for the others. */
		ranks_look(&found);
		if (found.why[0] || !launcher->ends_all)
			return 0;
	}
	struct node_ranks *const r = calloc(1, sizeof *r);
	if (!r)
		return error_set(err, -ENOMEM, "out of memory for ranks");
	*r = (struct node_ranks){.runner = runner, .launcher = *launcher, .judges = judges};
	if (pipe2(r->control, O_CLOEXEC) != 0) {
		const int code = error_set_errno(err, errno, "no pipe for the process of MPI");
		free(r);
		return code;
	}
	const int code = bounded_start(&r->process, speak, r);
	(void)close(r->control[0]);
	if (code) {
		(void)close(r->control[1]);
		free(r);
		return error_set_errno(err, -code, "the process of MPI cannot be started");
	}
	*out = r;
	return 0;
}

static void ranks_take_into_gather(void *context, const char *bytes, size_t size)
{
	gather_bytes(context, bytes, size);
}

static void node_ranks_tell(struct node_ranks *r, char what)
{
	if (write(r->control[1], &what, 1) != 1)
		r->lost = true;
}

static int node_ranks_listen(struct node_ranks *r, uint64_t until_ns, struct gather *gather)
{
	for (;;) {
		const uint64_t slice_ns = clock_now_ns() + SLICE_MS * NS_PER_MS;
		const int code =
			bounded_listen(&r->process, slice_ns < until_ns ? slice_ns : until_ns,
				r->runner->stop, ranks_take_into_gather, gather);
		if (gather->ended || code == -EINTR)
			return gather->ended ? 0 : code;
		if (code != -ETIMEDOUT)
			return -EIO;
		if (clock_now_ns() >= until_ns)
			return -ETIMEDOUT;
	}
}

json_t *node_ranks_check(struct node_ranks *r, const struct accept_check *check)
{
	char time[UNITS_BYTES];
	struct gather gather;
	if (gather_open(&gather, check->name, accept_kind_name(check->kind)))
		return NULL;
	const uint64_t began_ns = clock_now_ns();
	uint64_t until_ns = began_ns + runner_budget(r->runner, check);
	if (r->runner->until_ns && until_ns > r->runner->until_ns)
		until_ns = r->runner->until_ns;
	int code = r->lost ? -EIO : 0;
	if (!code)
		node_ranks_tell(r, CONTROL_CHECK);
	if (!code && until_ns > began_ns)
		code = node_ranks_listen(r, until_ns, &gather);
	if (code == -ETIMEDOUT || until_ns <= began_ns) {
		r->lost = true;
		gather_state(&gather, "timed out", "it did not end within %s",
			units_format_duration((double)(clock_now_ns() - began_ns), time));
	} else if (code == -EINTR) {
		gather_state(&gather, "interrupted", "by the user");
	} else if (code) {
		r->lost = true;
		gather_state(
			&gather, "died", "the process that speaks with the other ranks has ended");
	}
	gather_time(&gather, r->runner->started_ns, began_ns, 1);
	json_t *const line = gather.failed ? NULL : json_incref(gather.check);
	gather_close(&gather);
	return line;
}

void node_ranks_close(struct node_ranks *r, bool failed)
{
	int status;
	if (!r)
		return;
	node_ranks_tell(r, CONTROL_DONE);
	(void)close(r->control[1]);
	const bool alone = r->lost;
	while (!alone && !atomic_load(r->runner->stop) && !bounded_wait(&r->process, 100, &status))
		;
	(void)kill(-r->process.pid, SIGTERM);
	(void)bounded_wait(&r->process, END_S * 1000, &status);
	(void)close(r->process.fd);
	(void)bounded_end(&r->process, &status);
	if (failed && r->launcher.ends_all)
		clock_sleep_until_ns(clock_now_ns() + FAILED_LAST_MS * NS_PER_MS);
	free(r);
}
