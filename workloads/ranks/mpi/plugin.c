/* The plug-in: MPI's non-blocking calls behind one lock, so that a library without
 * MPI_THREAD_MULTIPLE serves as well.  Sums have a communicator of their own: no message of the
 * program's control can be mistaken for one of theirs. */
#include "workloads/ranks/mpi/plugin.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mpi_request {
	MPI_Request request;
};

static pthread_mutex_t mpi_lock = PTHREAD_MUTEX_INITIALIZER;
static bool mpi_serves_threads; /* without the lock, too */
static MPI_Comm mpi_control = MPI_COMM_NULL, mpi_gradients = MPI_COMM_NULL;
/* Those that trained: made once, by all of them together, and kept, since a rank that is not among them knows nothing of what the
 * others do in between. */
static struct mpi_group {
	unsigned count, without;
	MPI_Comm ranks;
} * mpi_groups;
static size_t mpi_group_count;
static MPI_Datatype mpi_round_type = MPI_DATATYPE_NULL;
static MPI_Op mpi_round_later = MPI_OP_NULL;

static int mpi_told(int code, const char *what, struct error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	if (code == MPI_SUCCESS)
		return 0;
	(void)MPI_Error_string(code, text, &length);
	return error_set(err, -EIO, "%s: %.200s", what, text);
}

static void plugin_library(char out[MPI_LIBRARY_BYTES])
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0;
	(void)MPI_Get_library_version(text, &length);
	/* "Open MPI v4.1.4, package: ..."; MPICH has "MPICH Version:\t4.0.2\n...". */
	text[strcspn(text, ",\n")] = '\0';
	(void)snprintf(out, MPI_LIBRARY_BYTES, "%.*s", MPI_LIBRARY_BYTES - 1, text);
}

static void mpi_describe(struct mpi_world *out)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "";
	int length = 0;
	plugin_library(out->library);
	(void)MPI_Get_processor_name(name, &length);
	(void)snprintf(out->host, sizeof out->host, "%.*s", MPI_HOST_BYTES - 1, name);
}

static int mpi_find_neighbours(struct mpi_world *out)
{
	MPI_Comm node = MPI_COMM_NULL;
	int rank = 0;
	int count = 1;
	int code =
		MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(node, &rank);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(node, &count);
	if (node != MPI_COMM_NULL)
		(void)MPI_Comm_free(&node);
	out->local_rank = (unsigned)rank;
	out->local_count = (unsigned)count;
	return code;
}

/* An MPI_User_function. */
// NOLINTNEXTLINE(readability-non-const-parameter)
static void mpi_merge_rounds(void *in, void *inout, int *count, MPI_Datatype *type)
{
	const struct mpi_round *const from = in;
	struct mpi_round *const to = inout;
	(void)type;
	for (int i = 0; i < *count; i++) {
		const struct mpi_round a = from[i];
		const struct mpi_round b = to[i];
		/* At the same moment: the lower rank, whichever way they are paired. */
		const bool first = a.latest_ns > b.latest_ns ||
				   (a.latest_ns == b.latest_ns && a.last < b.last);
		const struct mpi_round *const late = first ? &a : &b;
		const struct mpi_round *const early = first ? &b : &a;
		to[i] = (struct mpi_round){.latest_ns = late->latest_ns,
			.second_ns = late->second_ns > early->latest_ns ? late->second_ns
									: early->latest_ns,
			.last = late->last,
			.leaves = a.leaves > b.leaves ? a.leaves : b.leaves};
	}
}

static int mpi_make_types(void)
{
	int code = MPI_Type_contiguous((int)sizeof(struct mpi_round), MPI_BYTE, &mpi_round_type);
	if (code == MPI_SUCCESS)
		code = MPI_Type_commit(&mpi_round_type);
	return code == MPI_SUCCESS ? MPI_Op_create(mpi_merge_rounds, 1, &mpi_round_later) : code;
}

static int mpi_join(struct mpi_world *out)
{
	int rank = 0;
	int count = 1;
	int code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(MPI_COMM_WORLD, &count);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi_control);
	if (code == MPI_SUCCESS)
		code = mpi_make_types();
	out->rank = (unsigned)rank;
	out->count = (unsigned)count;
	return code == MPI_SUCCESS ? mpi_find_neighbours(out) : code;
}

static int plugin_open(struct mpi_world *out, struct error *err)
{
	int given = MPI_THREAD_SINGLE;
	*out = (struct mpi_world){.count = 1, .local_count = 1};
	int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
	if (code == MPI_SUCCESS && given < MPI_THREAD_SERIALIZED)
		return error_set(err, -ENOTSUP,
			"this MPI library serves one thread only (MPI_THREAD_SERIALIZED is needed)");
	mpi_serves_threads = given == MPI_THREAD_MULTIPLE;
	if (code == MPI_SUCCESS)
		code = mpi_join(out);
	mpi_describe(out);
	return mpi_told(code, "MPI cannot be started", err);
}

static void plugin_close(void)
{
	int over = 0;
	(void)MPI_Finalized(&over);
	if (over)
		return;
	if (mpi_round_later != MPI_OP_NULL)
		(void)MPI_Op_free(&mpi_round_later);
	if (mpi_round_type != MPI_DATATYPE_NULL)
		(void)MPI_Type_free(&mpi_round_type);
	for (size_t i = 0; i < mpi_group_count; i++)
		(void)MPI_Comm_free(&mpi_groups[i].ranks);
	free(mpi_groups);
	if (mpi_control != MPI_COMM_NULL)
		(void)MPI_Comm_free(&mpi_control);
	(void)MPI_Finalize();
}

static void plugin_abort(int status)
{
	(void)MPI_Abort(MPI_COMM_WORLD, status);
}

/* Takes the lock, which mpi_begun gives back; not where it fails. */
static int mpi_begin(struct mpi_request **out, size_t count, struct error *err)
{
	*out = NULL;
	if (count > INT_MAX)
		return error_set(err, -EFBIG, "a message of %zu items is too long", count);
	*out = malloc(sizeof **out);
	if (!*out)
		return error_set(err, -ENOMEM, "out of memory for a message");
	(void)pthread_mutex_lock(&mpi_lock);
	return 0;
}

static int mpi_begun(struct mpi_request **out, int code, const char *what, struct error *err)
{
	if (code != MPI_SUCCESS) {
		free(*out);
		*out = NULL;
	}
	const int told = mpi_told(code, what, err);
	(void)pthread_mutex_unlock(&mpi_lock);
	return told;
}

static int plugin_send(struct mpi_request **out, unsigned rank, int tag, const void *data,
	size_t bytes, struct error *err)
{
	const int code = mpi_begin(out, bytes, err);
	return code ? code
		    : mpi_begun(out,
			      MPI_Isend(data, (int)bytes, MPI_BYTE, (int)rank, tag, mpi_control,
				      &(*out)->request),
			      "a message cannot be sent", err);
}

static int plugin_receive(struct mpi_request **out, unsigned rank, int tag, void *data,
	size_t bytes, struct error *err)
{
	const int code = mpi_begin(out, bytes, err);
	return code ? code
		    : mpi_begun(out,
			      MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)rank, tag, mpi_control,
				      &(*out)->request),
			      "a message cannot be received", err);
}

static int plugin_sum(struct mpi_request **out, float *values, size_t count, struct error *err)
{
	const int code = mpi_begin(out, count, err);
	return code ? code
		    : mpi_begun(out,
			      MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM,
				      mpi_gradients, &(*out)->request),
			      "gradients cannot be summed", err);
}

static int plugin_meet(struct mpi_request **out, struct mpi_round *round, struct error *err)
{
	const int code = mpi_begin(out, 1, err);
	return code ? code
		    : mpi_begun(out,
			      MPI_Iallreduce(MPI_IN_PLACE, round, 1, mpi_round_type,
				      mpi_round_later, mpi_gradients, &(*out)->request),
			      "the ranks cannot meet", err);
}

static int mpi_make_group(unsigned count, unsigned without, MPI_Comm *out)
{
	MPI_Group all = MPI_GROUP_NULL;
	MPI_Group some = MPI_GROUP_NULL;
	const bool splits = without > 0 && without < count;
	const int before = (int)(splits ? without : count);
	int ranges[2][3] = {{0, before - 1, 1}, {before + 1, (int)count, 1}};
	int code = MPI_Comm_group(mpi_control, &all);
	if (code == MPI_SUCCESS)
		code = MPI_Group_range_incl(all, splits ? 2 : 1, ranges, &some);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_create_group(mpi_control, some, 0, out);
	if (some != MPI_GROUP_NULL)
		(void)MPI_Group_free(&some);
	if (all != MPI_GROUP_NULL)
		(void)MPI_Group_free(&all);
	return code;
}

static int mpi_choose(unsigned count, unsigned without)
{
	for (size_t i = 0; i < mpi_group_count; i++)
		if (mpi_groups[i].count == count && mpi_groups[i].without == without) {
			mpi_gradients = mpi_groups[i].ranks;
			return MPI_SUCCESS;
		}
	struct mpi_group *const groups =
		realloc(mpi_groups, (mpi_group_count + 1) * sizeof *groups);
	if (!groups)
		return MPI_ERR_NO_MEM;
	mpi_groups = groups;
	MPI_Comm made = MPI_COMM_NULL;
	const int code = mpi_make_group(count, without, &made);
	if (code == MPI_SUCCESS) {
		groups[mpi_group_count++] = (struct mpi_group){count, without, made};
		mpi_gradients = made;
	}
	return code;
}

static int plugin_train(unsigned count, unsigned without, struct error *err)
{
	/* It waits for the others, which must hear of this rank meanwhile. */
	if (!mpi_serves_threads)
		(void)pthread_mutex_lock(&mpi_lock);
	const int code = mpi_choose(count, without);
	if (!mpi_serves_threads)
		(void)pthread_mutex_unlock(&mpi_lock);
	return mpi_told(code, "the ranks that train cannot be chosen", err);
}

static int plugin_test(struct mpi_request **request, struct error *err)
{
	int over = 0;
	if (!*request)
		return 1;
	(void)pthread_mutex_lock(&mpi_lock);
	const int code = MPI_Test(&(*request)->request, &over, MPI_STATUS_IGNORE);
	(void)pthread_mutex_unlock(&mpi_lock);
	if (code == MPI_SUCCESS && !over)
		return 0;
	free(*request);
	*request = NULL;
	return code == MPI_SUCCESS ? 1 : mpi_told(code, "the other ranks cannot be reached", err);
}

static void plugin_forget(struct mpi_request **request)
{
	*request = NULL; /* MPI may still write to it */
}

static const struct mpi_plugin plugin_table = {
	.abi = MPI_PLUGIN_ABI,
	.version = MLBENCH_VERSION,
	.library = plugin_library,
	.open = plugin_open,
	.close = plugin_close,
	.abort = plugin_abort,
	.send = plugin_send,
	.receive = plugin_receive,
	.train = plugin_train,
	.sum = plugin_sum,
	.meet = plugin_meet,
	.test = plugin_test,
	.forget = plugin_forget,
};

mpi_plugin_entry mlbench_mpi_plugin;
const struct mpi_plugin *mlbench_mpi_plugin(void)
{
	return &plugin_table;
}
