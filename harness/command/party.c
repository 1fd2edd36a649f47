/* Messages between a leader and its followers, as JSON; measurements and headers are lines of points.jsonl as they are. */
#include "harness/command/party.h"

#include "harness/analyze/summary.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/command/limits.h"
#include "harness/command/resume.h"
#include "harness/command/verify_ranks.h"
#include "harness/config/conditions.h"
#include "harness/record/fields.h"
#include "workloads/backend/backend.h"
#include "workloads/ranks/gradients.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { HASH_TEXT_BYTES = 17, NAME_ROOM = 128, FOLDER_NAME_BYTES = 32, DATA_TURNS = 2 };
/* What all ranks may have to say is said by one: launchers end the others when it ends, or a second later. */
static const uint64_t FOLLOWER_APART_NS = 300 * NS_PER_MS, FOLLOWER_APART_MOST_NS = 10 * NS_PER_S,
		      FOLLOWER_BEHIND_NS = 2 * NS_PER_S;

static const char DO_JOB[] = "job", DO_HEADER[] = "header", DO_RUN[] = "run",
		  DO_TIMELINE[] = "timeline", DO_END[] = "end";

/* --- messages --------------------------------------------------------------------------------- */

/* Takes object. */
static char *party_text(json_t *object, size_t *size, struct error *err)
{
	char *const text =
		object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(object);
	if (!text)
		(void)error_set(err, -ENOMEM, "out of memory for a message");
	*size = text ? strlen(text) : 0;
	return text;
}

static int party_tell(struct party *party, unsigned count, json_t *object, struct error *err)
{
	size_t size;
	char *const text = party_text(object, &size, err);
	const int code = text ? ranks_tell(party->ranks, count, text, size, err) : -ENOMEM;
	free(text);
	return code;
}

static int party_answer(struct party *party, json_t *object, struct error *err)
{
	size_t size;
	char *const text = party_text(object, &size, err);
	const int code = text ? ranks_answer(party->ranks, text, size, err) : -ENOMEM;
	free(text);
	return code;
}

static json_t *party_parse(const struct buffer *text, struct error *err)
{
	json_error_t wrong;
	json_t *const object =
		text->size > 0 ? json_loadb(text->data, text->size, 0, &wrong) : NULL;
	if (!object)
		(void)error_set(err, -EPROTO, "a message of another rank is not JSON");
	return object;
}

static json_t *party_take(struct party *party, unsigned rank, struct error *err)
{
	struct buffer text = {0};
	json_t *object = NULL;
	if (ranks_take(party->ranks, rank, &text, err) == 0)
		object = party_parse(&text, err);
	buffer_release(&text);
	return object;
}

/* --- what must be the same everywhere --------------------------------------------------------- */

static void party_put_hash(uint64_t hash, char out[HASH_TEXT_BYTES])
{
	(void)snprintf(out, HASH_TEXT_BYTES, "%016" PRIx64, hash);
}

/* Of the program's file: two builds of a version are two programs. */
static void party_hash_program(char out[HASH_TEXT_BYTES])
{
	static char block[1 << 16];
	struct hash_pieces *const pieces = hash_begin(0);
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t got = pieces && fd >= 0 ? read(fd, block, sizeof block) : 0;
	for (; got > 0; got = read(fd, block, sizeof block))
		hash_add(pieces, block, (size_t)got);
	if (fd >= 0)
		(void)close(fd);
	party_put_hash(pieces ? hash_end(pieces) : 0, out);
}

static void party_add_data(struct hash_pieces *pieces, const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset->count; i++) {
		const struct sample *const s = &dataset->samples[i];
		hash_add(pieces, s->path, strlen(s->path) + 1);
		hash_add(pieces, &s->bytes, sizeof s->bytes);
		hash_add(pieces, &s->label, sizeof s->label);
		if (dataset->offsets)
			hash_add(pieces, &dataset->offsets[i], sizeof dataset->offsets[i]);
	}
}

/* Names, sizes and labels: what decides on who reads what. */
static void party_hash_data(const struct plan *plan, char out[HASH_TEXT_BYTES])
{
	struct hash_pieces *const pieces = hash_begin(0);
	if (pieces)
		party_add_data(pieces, &plan->dataset);
	for (size_t i = 0; pieces && i < plan->form_count; i++)
		party_add_data(pieces, &plan->forms[i]);
	party_put_hash(pieces ? hash_end(pieces) : 0, out);
}

static json_t *party_identity(const struct party *party, const struct plan *plan)
{
	char program[HASH_TEXT_BYTES];
	char data[HASH_TEXT_BYTES];
	char device[BINDING_DEVICE_BYTES] = "";
	const struct backend_ops *const ops = backend_choose(&plan->config, NULL, 0, NULL);
	party_hash_program(program);
	party_hash_data(plan, data);
	if (ops && ops->ranks_device && conditions_most_ranks(&plan->config) > 1)
		(void)ops->ranks_device(party->ranks->world.local_rank, device, sizeof device);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:i}", "version",
		MLBENCH_VERSION, "program", program, "config", plan->hash, "data", data, "backend",
		ops ? ops->name : "", "device", device, "samples", (json_int_t)plan->dataset.count,
		"bytes", (double)plan->dataset.total_bytes, "cores", (int)plan->cores);
}

static void party_keep_device(struct party *party, unsigned rank, const json_t *identity)
{
	struct ranks_binding *const binding = &party->binding;
	if (rank < binding->rank_count)
		(void)snprintf(binding->ranks[rank].device, BINDING_DEVICE_BYTES, "%s",
			fields_text_of(identity, "device"));
}

static int party_compare(struct party *party, unsigned rank, const json_t *own,
	const json_t *theirs, struct error *err)
{
	static const char *const what[][2] = {{"version", "another version of mlbench"},
		{"program", "another build of mlbench"},
		{"config", "another configuration, by its defaults"},
		{"data", "other files in dataset.path"},
		{"backend", "another step.backend, by the devices that it sees,"}};
	char name[NAME_ROOM];
	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		const char *const a = fields_text_of(own, what[i][0]);
		const char *const b = fields_text_of(theirs, what[i][0]);
		if (strcmp(a, b) != 0)
			return error_set(err, -EDOM,
				"%s has %s than rank 0 (%s, not %s): every rank needs the same",
				ranks_name(party->ranks, rank, name, sizeof name), what[i][1], b,
				a);
	}
	return 0;
}

/* --- leading ---------------------------------------------------------------------------------- */

static int leader_settle(struct config *config, struct error *err)
{
	struct launcher launcher = {.count = 1};
	char text[UNITS_BYTES];
	(void)launcher_find(&launcher);
	const int64_t most = conditions_most_ranks(config);
	if (most > launcher.count)
		return error_set(err, -EINVAL,
			"run.ranks = %" PRId64 ", but %s started %u: start as many", most,
			launcher.name, launcher.count);
	if (most > 0 || config_find_axis(config, KEY_RUN_RANKS))
		return 0;
	(void)snprintf(text, sizeof text, "%u", launcher.count);
	return config_set_key(config, KEY_RUN_RANKS, text, err);
}

/* Unless another one has said it, and this one is ended. */
static void follower_wait_to_say(
	unsigned rank, uint64_t behind_ns, const atomic_bool *stop, struct error *err)
{
	const uint64_t apart_ns = rank * FOLLOWER_APART_NS;
	const uint64_t until_ns =
		clock_now_ns() + behind_ns +
		(apart_ns < FOLLOWER_APART_MOST_NS ? apart_ns : FOLLOWER_APART_MOST_NS);
	for (uint64_t now_ns = clock_now_ns(); now_ns < until_ns && !atomic_load(stop);
		now_ns = clock_now_ns())
		clock_sleep_until_ns(now_ns + FOLLOWER_APART_NS / 10);
	if (atomic_load(stop))
		err->text[0] = '\0';
}

static void follower_be_quiet(unsigned rank)
{
	char name[NAME_ROOM];
	struct utsname node = {.nodename = ""};
	(void)uname(&node);
	(void)snprintf(name, sizeof name, "rank %u on %.64s", rank, node.nodename);
	log_set_speaker(name);
	log_set_level(LOG_LEVEL_ERRORS);
}

static int leader_open(struct party *party, const atomic_bool *stop, struct error *err)
{
	struct launcher launcher;
	const bool follows = launcher_find(&launcher) && launcher.rank > 0;
	if (follows)
		follower_be_quiet(launcher.rank);
	int code = ranks_open(&party->ranks, stop, err);
	if (!code && party->ranks) {
		party->ranks->open_gradients = gradients_open;
		code = binding_settle(&party->binding, party->ranks, err);
	}
	if (code && follows && err->text[0])
		follower_wait_to_say(launcher.rank, FOLLOWER_BEHIND_NS, stop, err);
	return code;
}

static void leader_describe(const struct party *party, struct buffer *out)
{
	buffer_text(out, "  ranks    ");
	binding_describe(&party->binding, out);
	buffer_text(out, "\n");
}

/* Of this rank's cores, so that the result explains itself. */
static void party_note_cores(const struct party *party, struct measurement *m)
{
	if (party->binding.note[0])
		measurement_note(m, "%s", party->binding.note);
	if (party->warning[0])
		measurement_note(m, "cores: %s", party->warning);
}

static void leader_close(struct party *party, int status)
{
	struct error why;
	if (ranks_leads(party->ranks) && !party->ranks->lost)
		(void)party_tell(
			party, party->ranks->world.count, json_pack("{s:s}", "do", DO_END), &why);
	json_decref(party->timelines.parts);
	party->timelines.parts = NULL;
	ranks_close(party->ranks, status);
	binding_release(&party->binding);
	party->ranks = NULL;
}

/* All are heard, since they would wait to be. */
static int leader_compare_all(struct party *party, const struct plan *plan, struct error *err)
{
	json_t *const own = party_identity(party, plan);
	int code = 0;
	party_keep_device(party, 0, own);
	for (unsigned rank = 1; rank < party->ranks->world.count && !party->ranks->lost; rank++) {
		struct error why;
		json_t *const theirs = party_take(party, rank, &why);
		const int one = theirs ? party_compare(party, rank, own, theirs, &why) : -EIO;
		party_keep_device(party, rank, theirs);
		json_decref(theirs);
		if (one && !code) {
			code = one;
			*err = why;
		}
	}
	json_decref(own);
	return code ? code
		    : binding_check_devices(
			      &party->binding, (unsigned)conditions_most_ranks(&plan->config), err);
}

static int leader_begin(struct party *party, const struct plan *plan, struct error *err)
{
	const unsigned count = party->ranks->world.count;
	char *const config = config_dump(&plan->config);
	party->plan = plan;
	party->folder = NULL;
	int code = config ? party_tell(party, count,
				    json_pack("{s:s, s:s, s:s}", "do", DO_JOB, "name", plan->name,
					    "config", config),
				    err)
			  : error_set(err, -ENOMEM, "out of memory for the configuration");
	free(config);
	for (int turn = 0; turn < DATA_TURNS && !code; turn++)
		code = ranks_agree(party->ranks, count, 0, err);
	if (!code)
		code = leader_compare_all(party, plan, err);
	if (!code && !binding_judge(&party->binding, plan->threads, &party->ranks->launcher,
			     party->warning))
		log_warn("%s", party->warning);
	return code;
}

/* ranks/0003 of the leader's result, or a file in it; free it. */
static char *party_place(const struct party *party, unsigned rank, const char *file)
{
	char name[FOLDER_NAME_BYTES + 32];
	(void)snprintf(
		name, sizeof name, RECORD_RANKS_FOLDER "/%04u%s%s", rank, *file ? "/" : "", file);
	return files_join(party->folder, name);
}

/* Of another rank: not synced one by one, which 64 of them would take seconds for.  A line comes after what it tells of, so that a
 * kill leaves nothing that is half. */
static int party_write(const char *path, int flags, const struct buffer *text, struct error *err)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	int code = files_write_all(fd, text->data, text->size);
	if (close(fd) != 0 && !code)
		code = -errno;
	return code ? error_set_errno(err, -code, "cannot write '%s'", path) : 0;
}

/* A line of a rank's points.jsonl, behind the last whole one. */
static int party_append(
	const struct party *party, unsigned rank, const char *line, size_t size, struct error *err)
{
	char *const path = party_place(party, rank, "points.jsonl");
	struct buffer text = {0};
	buffer_add(&text, line, size);
	buffer_text(&text, "\n");
	const int code = !path || text.failed
				 ? error_set(err, -ENOMEM, "out of memory for a rank's results")
				 : party_write(path, O_APPEND, &text, err);
	buffer_release(&text);
	free(path);
	return code;
}

/* A line that a kill cut off is taken away.  *whole: a header is there. */
static int party_cut(const char *path, bool *whole, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	*whole = false;
	if (access(path, F_OK) != 0)
		return 0;
	int code = files_read(path, (size_t)1 << 30, &text, &size, err);
	const char *const last = !code && size > 0 ? memrchr(text, '\n', size) : NULL;
	const size_t kept = last ? (size_t)(last - text) + 1 : 0;
	*whole = kept > 0;
	if (!code && kept < size && truncate(path, (off_t)kept) != 0)
		code = error_set_errno(err, errno, "cannot cut '%s'", path);
	free(text);
	return code;
}

static int party_begin_record(struct party *party, unsigned rank, struct error *err)
{
	char *const folder = party_place(party, rank, "");
	char *const path = party_place(party, rank, "points.jsonl");
	struct buffer header = {0};
	bool whole = false;
	int code = ranks_take(party->ranks, rank, &header, err);
	if (!code)
		code = folder && path ? files_make_folder(folder, err)
				      : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = party_cut(path, &whole, err);
	if (!code && !whole)
		code = party_append(party, rank, header.data, header.size, err);
	buffer_release(&header);
	free(path);
	free(folder);
	return code;
}

static int leader_begin_records(struct party *party, const struct record *record, struct error *err)
{
	const unsigned count = party->ranks->world.count;
	party->folder = record->folder;
	int code = party_tell(party, count, json_pack("{s:s}", "do", DO_HEADER), err);
	const bool told = !code;
	for (unsigned rank = 1; rank < count && told && !party->ranks->lost; rank++) {
		struct error why;
		const int one = party_begin_record(party, rank, &why);
		if (one && !code) {
			code = one;
			*err = why;
		}
	}
	return code;
}

static int leader_end_records(struct party *party, const struct record *record, struct error *err)
{
	char *const line = record_end_line(record);
	int code = line ? 0 : error_set(err, -ENOMEM, "out of memory for the ranks' results");
	for (unsigned rank = 1; rank < party->ranks->world.count && !code; rank++)
		code = party_append(party, rank, line, strlen(line), err);
	free(line);
	return code;
}

/* --- a pipeline on all ranks ------------------------------------------------------------------ */

static unsigned party_count(const struct party_job *job)
{
	const int64_t count = config_integer(job->config, KEY_RUN_RANKS);
	return count > 1 ? (unsigned)count : 1;
}

/* Ranks meet after a step; without one each reads and decodes for itself. */
static bool party_meets(const struct config *config)
{
	return !pipeline_facts(config).step_null;
}

static int party_by_path(const void *a, const void *b)
{
	const struct sample *const *const left = a;
	const struct sample *const *const right = b;
	return ((*left)->path > (*right)->path) - ((*left)->path < (*right)->path);
}

/* Which of the plan's samples a job reads, by their numbers: names are the memory of the data set.  NULL: all, or out of memory. */
static json_t *party_files(const struct party *party, const struct party_job *job)
{
	const struct dataset *const all = plan_dataset(party->plan, job->config);
	if (job->dataset->samples == all->samples && job->dataset->count == all->count)
		return NULL;
	const struct sample **const sorted = calloc(all->count, sizeof(const struct sample *));
	json_t *const files = json_array();
	for (size_t i = 0; sorted && i < all->count; i++)
		sorted[i] = &all->samples[i];
	if (sorted)
		qsort(sorted, all->count, sizeof(const struct sample *), party_by_path);
	for (size_t i = 0; sorted && i < job->dataset->count; i++) {
		const struct sample *const wanted = &job->dataset->samples[i];
		const struct sample *const *const found = bsearch(
			&wanted, sorted, all->count, sizeof(const struct sample *), party_by_path);
		if (found)
			(void)json_array_append_new(
				files, json_integer((json_int_t)(*found - all->samples)));
	}
	free(sorted);
	return files;
}

static int party_tell_run(struct party *party, const struct party_job *job, struct error *err)
{
	char *const config = config_dump(job->config);
	json_t *const files = party_files(party, job);
	int code = config ? 0 : error_set(err, -ENOMEM, "out of memory for the configuration");
	for (unsigned i = 1; i < party_count(job) && !code; i++) {
		const unsigned rank = ranks_nth(party->ranks, i);
		const struct rank_place *const place = &party->ranks->places[rank];
		size_t size;
		char *const text = party_text(
			json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:s, s:O*}",
				"do", DO_RUN, "config", config, "point", (json_int_t)job->point,
				"repeat", (json_int_t)job->repeat, "kept", (int)job->kept, "whole",
				(int)job->whole, "without", (json_int_t)job->without, "offset_ns",
				(json_int_t)place->offset_ns, "error_ns",
				(json_int_t)place->error_ns, "origin_ns",
				(json_int_t)party->timelines.leader.origin_ns, "host", place->host,
				"files", files),
			&size, err);
		code = text ? ranks_tell_one(party->ranks, rank, text, size, err) : -ENOMEM;
		free(text);
	}
	json_decref(files);
	free(config);
	return code;
}

/* Events, whose pieces begin with a comma, until an empty message; another one says why there are no more.  What the sink does not
 * take is heard out all the same. */
static int leader_take_events(
	void *context, unsigned rank, timeline_sink *sink, void *to, struct error *err)
{
	struct party *const party = context;
	char name[NAME_ROOM];
	size_t size;
	char *const text = party_text(json_pack("{s:s}", "do", DO_TIMELINE), &size, err);
	int code = text ? ranks_tell_one(party->ranks, rank, text, size, err) : -ENOMEM;
	bool taken = true;
	struct buffer piece = {0};
	free(text);
	while (!code && !(code = ranks_take(party->ranks, rank, &piece, err)) && piece.size > 0) {
		if (piece.data[0] == ',')
			taken = taken && sink(to, piece.data, piece.size);
		else
			code = error_set(err, -EIO, "%s: %.*s",
				ranks_name(party->ranks, rank, name, sizeof name), (int)piece.size,
				piece.data);
	}
	buffer_release(&piece);
	return code ? code : taken ? 0 : -EIO;
}

/* Of the first repetition of a point, where others record it, too. */
static bool party_records(const struct party_job *job)
{
	return job->kept && job->repeat == 0 && *config_text(job->config, KEY_TRACE_SCHEDULE);
}

static void party_begin_timelines(struct party *party, const struct party_job *job)
{
	struct timeline_others *const others = &party->timelines;
	json_decref(others->parts);
	*others = (struct timeline_others){.events = leader_take_events, .context = party};
	others->leader = (struct timeline_rank){
		.host = party->ranks->places[0].host, .origin_ns = clock_now_ns()};
	if (party_records(job) && party_count(job) > 1)
		others->parts = json_array();
}

/* By which their devices find one another.  Where the leader cannot make it, its pipeline says why when all begin. */
static int party_share_id(struct ranks *ranks, const struct party_job *job, struct error *err)
{
	const struct backend_ops *const ops = backend_choose(job->config, NULL, 0, NULL);
	struct error why;
	if (!ops || !ops->ranks_id)
		return 0;
	memset(ranks->id, 0, sizeof ranks->id);
	if (ranks_leads(ranks) && ops->ranks_id(ranks->id, &why))
		memset(ranks->id, 0, sizeof ranks->id);
	return ranks_share(ranks, party_count(job), ranks->id, sizeof ranks->id, err);
}

static int leader_start(
	struct party *party, const struct party_job *job, struct ranks **ranks, struct error *err)
{
	*ranks = NULL;
	const unsigned count = party_count(job);
	party->ranks->without = job->without;
	int code = ranks_map_clocks(party->ranks, count, err);
	party_begin_timelines(party, job);
	if (!code)
		code = party_tell_run(party, job, err);
	if (code || count == 1 || !party_meets(job->config))
		return code;
	*ranks = party->ranks;
	code = party_share_id(party->ranks, job, err);
	return code ? code : ranks_train(party->ranks, count, err);
}

/* A repetition without its traces is still one. */
static void party_keep_traces(
	struct party *party, unsigned rank, const struct party_job *job, const struct buffer *text)
{
	struct error err = {""};
	struct record view = {.folder = party_place(party, rank, "")};
	char *const folder = party_place(party, rank, RECORD_TRACES_FOLDER);
	char *const path = view.folder ? record_traces_path(&view, job->point, job->repeat) : NULL;
	int code = folder && path ? 0 : error_set(&err, -ENOMEM, "out of memory for traces");
	if (!code && text->size > 0)
		code = files_make_folder(folder, &err);
	if (!code && text->size > 0)
		code = party_write(path, O_TRUNC, text, &err);
	if (code && !party->traces_lost)
		log_warn("%s; repetitions of ranks are kept without their traces", err.text);
	party->traces_lost = party->traces_lost || code;
	free(path);
	free(folder);
	free(view.folder);
}

/* What a rank's measurement says of the job: 0, or why it failed. */
static int party_judge(
	struct party *party, unsigned rank, const struct measurement *theirs, struct error *err)
{
	char name[NAME_ROOM];
	if (theirs->status == MEASUREMENT_FAILED)
		return error_set(err, -ECANCELED, "%s: %s",
			ranks_name(party->ranks, rank, name, sizeof name), theirs->error);
	if (theirs->status == MEASUREMENT_INTERRUPTED)
		return error_set(err, -EINTR, "%s was stopped",
			ranks_name(party->ranks, rank, name, sizeof name));
	return 0;
}

/* What a rank's timeline holds. */
static int party_take_part(struct party *party, unsigned rank, struct error *err)
{
	struct timeline_others *const others = &party->timelines;
	struct buffer text = {0};
	int code = others->parts ? ranks_take(party->ranks, rank, &text, err) : 0;
	json_t *const part = !code && others->parts ? party_parse(&text, err) : NULL;
	if (part && json_array_append_new(others->parts, part))
		code = error_set(err, -ENOMEM, "out of memory for a timeline");
	else if (!code && others->parts && !part)
		code = -EPROTO;
	buffer_release(&text);
	return code;
}

/* --- what ranks of a node take from each other ------------------------------------------------ */

/* NAN: it did not run. */
static double party_cores(const struct measurement *m)
{
	const double seconds = measurement_counted_seconds(m);
	return seconds > 0 ? m->cpu_seconds / seconds : (double)NAN;
}

struct party_siblings {
	double cores; /* that the other ranks of its node used */
	double crowd; /* ranks that may run on its cores, itself among them */
};

static void party_keep_siblings(struct measurement *m, const struct party_siblings *siblings)
{
	if (m->ranks_count == 0)
		return;
	m->ranks[0].siblings_cores = siblings->cores;
	m->ranks[0].crowd = (uint32_t)siblings->crowd;
}

static int party_take_cores(struct party *party, unsigned count, double *cores, struct error *err)
{
	struct buffer text = {0};
	int code = 0;
	for (unsigned i = 1; i < count && !code; i++) {
		code = ranks_take(party->ranks, ranks_nth(party->ranks, i), &text, err);
		cores[i] = NAN;
		if (!code && text.size == sizeof *cores)
			memcpy(&cores[i], text.data, sizeof *cores);
	}
	buffer_release(&text);
	return code;
}

/* cores: of each that takes part. */
static struct party_siblings party_siblings_of(
	const struct party *party, unsigned count, const double *cores, unsigned one)
{
	const struct ranks *const ranks = party->ranks;
	const char *const host = ranks->places[ranks_nth(ranks, one)].host;
	struct party_siblings out = {0};
	for (unsigned i = 0; i < count; i++) {
		if (i != one && strcmp(ranks->places[ranks_nth(ranks, i)].host, host) == 0)
			out.cores += cores[i];
		out.crowd +=
			binding_meet(&party->binding, ranks_nth(ranks, one), ranks_nth(ranks, i));
	}
	return out;
}

/* Each tells what it used, and hears what the others of its node did. */
static int party_share_cores(
	struct party *party, unsigned count, struct measurement *m, struct error *err)
{
	double *const cores = calloc(count, sizeof *cores);
	int code = cores ? 0 : error_set(err, -ENOMEM, "out of memory for %u ranks", count);
	if (!code) {
		cores[0] = party_cores(m);
		code = party_take_cores(party, count, cores, err);
	}
	for (unsigned i = 1; i < count && !code; i++) {
		const struct party_siblings theirs = party_siblings_of(party, count, cores, i);
		code = ranks_tell_one(
			party->ranks, ranks_nth(party->ranks, i), &theirs, sizeof theirs, err);
	}
	const struct party_siblings own =
		code ? (struct party_siblings){0} : party_siblings_of(party, count, cores, 0);
	if (!code)
		party_keep_siblings(m, &own);
	free(cores);
	return code;
}

/* *gone: nothing came. */
static int party_take_one(struct party *party, unsigned rank, const struct party_job *job,
	struct measurement *theirs, bool *gone, struct error *err)
{
	struct buffer line = {0};
	struct buffer traces = {0};
	int code = ranks_take(party->ranks, rank, &line, err);
	if (!code)
		code = ranks_take(party->ranks, rank, &traces, err);
	if (!code)
		code = party_take_part(party, rank, err);
	*gone = code;
	json_t *const object = code ? NULL : party_parse(&line, err);
	if (!code)
		code = object ? measurement_from_json(theirs, object, err) : -EPROTO;
	if (!code && job->kept && theirs->status != MEASUREMENT_INTERRUPTED) {
		party_keep_traces(party, rank, job, &traces);
		code = party_append(party, rank, line.data, line.size, err);
		party->cannot_save = code ? code : party->cannot_save;
	}
	if (!code)
		code = party_judge(party, rank, theirs, err);
	json_decref(object);
	buffer_release(&line);
	buffer_release(&traces);
	return code;
}

/* Of what is not kept, the judged rank's. */
static void party_hand_over(
	const struct party *party, unsigned rank, struct measurement *theirs, struct measurement *m)
{
	if (rank != party->judged)
		return;
	measurement_release(m);
	*m = *theirs;
	*theirs = (struct measurement){0};
}

/* The job's checksum is the sum over its ranks, as one process has it. */
static void party_sum_checksums(struct measurement *m, const struct measurement *theirs)
{
	if (!m->has_checksum || !theirs->has_checksum)
		return;
	m->checksum += theirs->checksum;
	m->checksum_samples += theirs->checksum_samples;
	m->checksum_ranks += theirs->checksum_ranks;
}

/* All measurements of a run.  *gone: a rank does not answer, which is why the others gave up. */
static int party_take_all(struct party *party, const struct party_job *job, int code,
	struct measurement *m, bool *gone, struct error *err)
{
	int failed = party_share_cores(party, party_count(job), m, err);
	*gone = failed;
	party->least = m->throughput;
	for (unsigned i = 1; i < party_count(job) && !*gone; i++) {
		const unsigned rank = ranks_nth(party->ranks, i);
		struct measurement *const theirs = calloc(1, sizeof *theirs);
		struct error one = {""};
		const int got = theirs ? party_take_one(party, rank, job, theirs, gone, &one)
				       : error_set(&one, -ENOMEM, "out of memory");
		if (!got)
			party->least = fmin(party->least, theirs->throughput);
		if (!got && !code && !job->kept)
			party_hand_over(party, rank, theirs, m);
		else if (!got)
			party_sum_checksums(m, theirs);
		if (got && (!failed || *gone)) {
			failed = got;
			*err = one;
		}
		if (theirs)
			measurement_release(theirs);
		free(theirs);
	}
	return failed;
}

/* How large the ranks' results are, into sizes or, where a repetition was not finished, back to that. */
static void party_sizes(const struct party *party, unsigned count, off_t *sizes, bool back)
{
	for (unsigned rank = 1; rank < count && party->folder; rank++) {
		struct stat now;
		char *const path = party_place(party, rank, "points.jsonl");
		if (!path || stat(path, &now) != 0)
			now.st_size = 0;
		if (!back)
			sizes[rank] = now.st_size;
		else if (path && now.st_size > sizes[rank] && truncate(path, sizes[rank]) != 0)
			log_warn("cannot cut '%s': %s", path, strerror(errno));
		free(path);
	}
}

static int leader_finish(struct party *party, const struct party_job *job, int code,
	struct measurement *m, struct error *err)
{
	struct error why = {""};
	const unsigned count = party_count(job);
	party_note_cores(party, m);
	off_t *const sizes = calloc(count, sizeof *sizes);
	int failed = sizes ? ranks_missing(party->ranks, &why)
			   : error_set(&why, -ENOMEM, "out of memory for %u ranks", count);
	const bool stop = party->ranks->stop && atomic_load(party->ranks->stop);
	/* It has not waited for the others, and does not here. */
	if (!failed && stop && party->ranks->lost)
		failed = error_set(&why, -EINTR, "stopped");
	bool gone = failed;
	if (sizes)
		party_sizes(party, count, sizes, false);
	if (!gone)
		failed = party_take_all(party, job, code, m, &gone, &why);
	if (failed && (gone || !code || code == -ECANCELED)) {
		*err = why;
		m->status = failed == -EINTR ? MEASUREMENT_INTERRUPTED : MEASUREMENT_FAILED;
		(void)snprintf(
			m->error, sizeof m->error, "%.*s", (int)sizeof m->error - 1, why.text);
		code = failed;
	}
	const bool stopped =
		m->status == MEASUREMENT_INTERRUPTED || code == -EINTR || (code && stop);
	if (sizes && stopped && job->kept)
		party_sizes(party, count, sizes, true);
	free(sizes);
	party->ranks->without = 0;
	return code;
}

/* --- following -------------------------------------------------------------------------------- */

struct follower {
	struct party *party;
	struct invocation invocation; /* without --set, which the configuration has in it */
	struct plan plan;
	struct pipeline_pools pools;
	/* Of the last job, until the next one. */
	struct timeline *timeline;
	struct measurement *m;
	struct timeline_rank place;
	char host[MPI_HOST_BYTES];
};

enum { FOLLOWER_PIECE_BYTES = 1 << 20 };

static int follower_read_config(struct config *config, const json_t *message, struct error *err)
{
	const char *const text = fields_text_of(message, "config");
	config_init(config);
	return config_read_text(config, "rank 0", text, strlen(text), err);
}

/* In turns: one rank of each node, which may have to make the data there, then the others.  `code` is of what came before.  What fails
 * is agreed on, and so known to the leader. */
static int follower_open_data(struct follower *f, int code, struct error *err)
{
	struct ranks *const ranks = f->party->ranks;
	const int own = ranks->world.local_rank > 0;
	for (int turn = 0; turn < DATA_TURNS; turn++) {
		if (turn == own && !code)
			code = plan_data(&f->plan, &f->invocation, turn == 0, err);
		if (turn == own && !code && !f->plan.has_data)
			code = error_set(err, -ENOENT, "no data: %s", f->plan.data_why);
		const int agreed =
			ranks_agree(ranks, ranks->world.count, turn == own ? code : 0, err);
		if (agreed)
			return agreed;
	}
	return 0;
}

static int follower_job(struct follower *f, const json_t *message, struct error *err)
{
	plan_close(&f->plan);
	f->plan = (struct plan){0};
	int code = follower_read_config(&f->plan.config, message, err);
	if (!code)
		code = plan_open(&f->plan, &f->invocation, NULL, err);
	(void)snprintf(f->plan.name, sizeof f->plan.name, "%s", fields_text_of(message, "name"));
	code = follower_open_data(f, code, err);
	if (!code)
		return party_answer(f->party, party_identity(f->party, &f->plan), err);
	if (f->party->ranks->lost)
		return code;
	err->text[0] = '\0'; /* the leader says it */
	return 0;
}

static int follower_header(struct follower *f, struct error *err)
{
	struct record record = {0};
	int code = resume_fill_record(&record, &f->plan, &f->invocation, err);
	char *const header = code ? NULL : record_header_text(&record);
	if (!code)
		code = header ? ranks_answer(f->party->ranks, header, strlen(header), err)
			      : error_set(err, -ENOMEM, "out of memory for a header");
	free(header);
	record_release(&record);
	return code;
}

static int follower_share_cores(struct follower *f, struct measurement *m, struct error *err)
{
	struct buffer text = {0};
	struct party_siblings siblings;
	const double cores = party_cores(m);
	int code = ranks_answer(f->party->ranks, &cores, sizeof cores, err);
	if (!code)
		code = ranks_hear(f->party->ranks, 0, &text, err);
	if (!code && text.size == sizeof siblings) {
		memcpy(&siblings, text.data, sizeof siblings);
		party_keep_siblings(m, &siblings);
	}
	buffer_release(&text);
	return code;
}

static struct timeline_story follower_story(const struct follower *f)
{
	return (struct timeline_story){.timeline = f->timeline,
		.m = f->m,
		.name = f->plan.name,
		.config_hash = f->plan.hash,
		.schedule = "",
		.rank = &f->place};
}

/* What the timeline of the job holds, or why it holds nothing. */
static int follower_send_part(struct follower *f, struct error *err)
{
	const struct timeline_story story = follower_story(f);
	char why[ERROR_TEXT_BYTES] = "it recorded nothing";
	if (f->timeline)
		(void)snprintf(why, sizeof why,
			"the repetition ended after %" PRIu64 " steps, before one was recorded",
			f->timeline->steps);
	return party_answer(f->party,
		f->timeline && f->timeline->window_count > 0 ? timeline_part(&story)
							     : timeline_no_part(&f->place, why),
		err);
}

static int follower_send(struct follower *f, struct traces *traces, bool records, struct error *err)
{
	const struct measurement *const m = f->m;
	struct buffer text = {0};
	char *const line = record_repetition_text(m);
	int code = line ? ranks_answer(f->party->ranks, line, strlen(line), err)
			: error_set(err, -ENOMEM, "out of memory for a measurement");
	if (traces->stage_count > 0) {
		traces->point = m->point;
		traces->repeat = m->repeat;
		traces_to_json(traces, m->started + m->wall_seconds, &text);
	}
	if (!code)
		code = ranks_answer(f->party->ranks, text.data, text.failed ? 0 : text.size, err);
	if (!code && records)
		code = follower_send_part(f, err);
	buffer_release(&text);
	free(line);
	return code;
}

/* Events gather until they are worth a message. */
struct follower_pieces {
	struct ranks *ranks;
	struct buffer text;
	struct error *err;
	int code;
};

static bool follower_flush(struct follower_pieces *pieces)
{
	if (!pieces->code && pieces->text.failed)
		pieces->code = error_set(pieces->err, -ENOMEM, "out of memory for a timeline");
	if (!pieces->code && pieces->text.size > 0)
		pieces->code = ranks_answer(
			pieces->ranks, pieces->text.data, pieces->text.size, pieces->err);
	pieces->text.size = 0;
	return pieces->code == 0;
}

static bool follower_add_piece(void *context, const char *text, size_t size)
{
	struct follower_pieces *const pieces = context;
	buffer_add(&pieces->text, text, size);
	return pieces->text.size < FOLLOWER_PIECE_BYTES || follower_flush(pieces);
}

static int follower_timeline(struct follower *f, struct error *err)
{
	const struct timeline_story story = follower_story(f);
	struct follower_pieces pieces = {.ranks = f->party->ranks, .err = err};
	const int code =
		f->timeline ? timeline_write_part(&story, follower_add_piece, &pieces) : -ENOENT;
	if (!code)
		(void)follower_flush(&pieces);
	buffer_release(&pieces.text);
	if (f->party->ranks->lost)
		return pieces.code;
	const char *const why = code || pieces.code ? "it cannot write its timeline" : "";
	return ranks_answer(f->party->ranks, why, strlen(why), err);
}

static void follower_forget(struct follower *f)
{
	timeline_close(f->timeline);
	if (f->m)
		measurement_release(f->m);
	free(f->m);
	f->timeline = NULL;
	f->m = NULL;
}

/* What fails in it is in its measurement, which the leader gets. */
static int follower_measure(
	struct follower *f, const struct party_job *job, struct traces *traces, struct error *err)
{
	const struct config *const config = job->config;
	struct ranks *const ranks = f->party->ranks;
	const bool meets = party_meets(config);
	struct pipeline_control control = {.stop = f->invocation.stop,
		.traces = job->kept ? traces : NULL,
		.timeline = party_records(job) ? &f->timeline : NULL,
		.enough = job->kept || job->whole ? NULL : limits_enough,
		.pools = &f->pools,
		.ranks = meets ? ranks : NULL};
	const double started = clock_utc_seconds();
	int code = meets ? party_share_id(ranks, job, err) : 0;
	if (meets && !code)
		code = ranks_train(ranks, party_count(job), err);
	if (code)
		return code;
	struct error why = {""};
	if (pipeline_run(config, job->dataset, &control, f->m, &why) &&
		atomic_load(f->invocation.stop))
		f->m->status = MEASUREMENT_INTERRUPTED;
	party_note_cores(f->party, f->m);
	peaks_fill(f->m);
	f->m->started = started;
	f->m->point = job->point;
	f->m->repeat = job->repeat;
	return 0;
}

static json_int_t follower_number(const json_t *message, const char *name)
{
	return json_integer_value(json_object_get(message, name));
}

static void follower_take_place(struct follower *f, const json_t *message)
{
	struct ranks *const ranks = f->party->ranks;
	ranks->offset_ns = follower_number(message, "offset_ns");
	ranks->error_ns = (uint64_t)follower_number(message, "error_ns");
	(void)snprintf(f->host, sizeof f->host, "%s", fields_text_of(message, "host"));
	f->place = (struct timeline_rank){.rank = ranks->world.rank,
		.host = f->host,
		.offset_ns = ranks->offset_ns,
		.error_ns = ranks->error_ns,
		.origin_ns = (uint64_t)follower_number(message, "origin_ns")};
}

/* Some samples of the data set, where the leader reads some; else *out stays {0}. */
static int follower_take_files(const struct follower *f, const struct config *config,
	const json_t *message, struct dataset *out, struct error *err)
{
	const json_t *const files = json_object_get(message, "files");
	const struct dataset *const all = plan_dataset(&f->plan, config);
	const size_t count = json_array_size(files);
	if (count == 0)
		return 0;
	*out = *all;
	out->samples = calloc(count, sizeof *out->samples);
	out->count = count;
	if (!out->samples)
		return error_set(err, -ENOMEM, "out of memory for %zu samples", count);
	for (size_t i = 0; i < count; i++) {
		const json_int_t at = json_integer_value(json_array_get(files, i));
		if (at < 0 || (size_t)at >= all->count)
			return error_set(err, -EPROTO, "a sample that is not there");
		out->samples[i] = all->samples[at];
	}
	return 0;
}

/* Those behind the one that takes no part have a share of the data that is one further in front. */
static void follower_be_one_of(struct ranks *ranks, unsigned without)
{
	ranks->without = without;
	program_be_rank(ranks_index(ranks));
}

static int follower_run(struct follower *f, const json_t *message, struct error *err)
{
	struct config config = {0};
	struct traces traces = {0};
	follower_forget(f);
	follower_take_place(f, message);
	f->m = calloc(1, sizeof *f->m);
	int code = f->m ? follower_read_config(&config, message, err)
			: error_set(err, -ENOMEM, "out of memory for a repetition");
	struct dataset some = {0};
	if (!code)
		code = follower_take_files(f, &config, message, &some, err);
	const struct party_job job = {.config = &config,
		.dataset = some.samples ? &some : plan_dataset(&f->plan, &config),
		.point = (uint32_t)follower_number(message, "point"),
		.repeat = (uint32_t)follower_number(message, "repeat"),
		.kept = json_is_true(json_object_get(message, "kept")),
		.whole = json_is_true(json_object_get(message, "whole")),
		.without = (unsigned)follower_number(message, "without")};
	follower_be_one_of(f->party->ranks, job.without);
	if (!code && f->party->ranks->lost)
		code = error_set(err, -EIO, "cannot train on: an exchange before was not finished");
	if (!code)
		code = follower_measure(f, &job, &traces, err);
	if (!code)
		code = follower_share_cores(f, f->m, err);
	if (!code)
		code = follower_send(f, &traces, party_records(&job), err);
	follower_be_one_of(f->party->ranks, 0);
	traces_release(&traces);
	config_release(&config);
	free(some.samples);
	return code;
}

/* One message; *end: it was the last. */
static int follower_obey(
	struct follower *f, const struct buffer *text, bool *end, struct error *err)
{
	json_t *const message = party_parse(text, err);
	const char *const what = fields_text_of(message, "do");
	int code = message ? 0 : -EPROTO;
	if (!code && strcmp(what, DO_JOB) == 0)
		code = follower_job(f, message, err);
	else if (!code && strcmp(what, DO_HEADER) == 0)
		code = follower_header(f, err);
	else if (!code && strcmp(what, DO_RUN) == 0)
		code = follower_run(f, message, err);
	else if (!code && strcmp(what, DO_TIMELINE) == 0)
		code = follower_timeline(f, err);
	else if (!code)
		*end = true;
	json_decref(message);
	/* The leader waits for an answer that does not come. */
	f->party->ranks->lost = f->party->ranks->lost || code;
	return code;
}

static int follower_follow(
	struct party *party, const struct invocation *invocation, struct error *err)
{
	struct follower f = {.party = party, .invocation = *invocation};
	struct buffer text = {0};
	bool end = false;
	int code = 0;
	f.invocation.options.set_count = 0;
	/* With --json, the leader's document is the only one. */
	if (invocation->document_written)
		atomic_store(invocation->document_written, true);
	while (!end && !code) {
		code = ranks_hear(party->ranks, 0, &text, err);
		if (!code)
			code = follower_obey(&f, &text, &end, err);
	}
	if (code)
		follower_wait_to_say(party->ranks->world.rank, 0, invocation->stop, err);
	buffer_release(&text);
	follower_forget(&f);
	pipeline_pools_release(&f.pools);
	plan_close(&f.plan);
	return code == -EINTR ? EXIT_STATUS_INTERRUPTED : command_status(code);
}

const struct party_calls party_of_ranks = {
	.settle = leader_settle,
	.open = leader_open,
	.close = leader_close,
	.follow = follower_follow,
	.begin = leader_begin,
	.begin_records = leader_begin_records,
	.end_records = leader_end_records,
	.start = leader_start,
	.finish = leader_finish,
	.describe = leader_describe,
	.verify_open = verify_ranks_open,
	.verify_close = verify_ranks_close,
};
