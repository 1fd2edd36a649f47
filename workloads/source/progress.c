/* What the answers to opens and reads of one file mean. */
#include "workloads/source/progress.h"

#include <errno.h>

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One byte more than expected, to whole blocks: what O_DIRECT needs, and the end of file shows. */
static size_t first_want(uint64_t expected, size_t room)
{
	if (expected >= room)
		return room;
	return smaller(room, ((size_t)expected / READ_ALIGN_BYTES + 1) * READ_ALIGN_BYTES);
}

void read_progress_start(
	struct read_progress *progress, uint64_t expected, size_t room, bool direct)
{
	*progress = (struct read_progress){
		.expected = expected,
		.room = room,
		.want = first_want(expected, room),
		.direct = direct,
	};
}

static enum read_step failed(struct read_progress *progress, int status)
{
	progress->status = status;
	return READ_STEP_FAILED;
}

static enum read_step retry(struct read_progress *progress, int code, enum read_step step,
	struct source_counter *counter)
{
	if (progress->retries >= READ_RETRIES_MAX)
		return failed(progress, code);
	progress->retries++;
	source_count(&counter->retries, 1);
	return step;
}

/* File systems refuse O_DIRECT with EINVAL, some at open, some at the read. */
static enum read_step error_answer(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	if (code == -EINVAL && progress->direct) {
		progress->direct = false;
		return retry(progress, code, READ_STEP_BUFFERED, counter);
	}
	if (code == -EINTR || code == -EAGAIN || code == -ECANCELED)
		return retry(progress, code, READ_STEP_MORE, counter);
	return failed(progress, code);
}

enum read_step read_progress_open_failed(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	return error_answer(progress, code, counter);
}

/* All that was asked for came: the file is larger than expected, or fills the room exactly. */
static enum read_step filled(struct read_progress *progress)
{
	if (progress->got == progress->room)
		return READ_STEP_SIZE;
	progress->want = progress->room;
	return READ_STEP_MORE;
}

enum read_step read_progress_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter)
{
	if (answer < 0)
		return error_answer(progress, (int)answer, counter);
	if (answer == 0)
		return progress->want == progress->got ? READ_STEP_SIZE : READ_STEP_DONE;
	progress->got += (size_t)answer;
	if (progress->got >= progress->want)
		return filled(progress);
	if (progress->got == progress->expected)
		return READ_STEP_DONE;
	/* Short.  A direct read cannot go on inside a block, and stops there only at the end of the
	 * file. */
	source_count(&counter->short_reads, 1);
	return progress->direct && progress->got % READ_ALIGN_BYTES ? READ_STEP_SIZE
								    : READ_STEP_MORE;
}

enum read_step read_progress_size(struct read_progress *progress, uint64_t file_bytes)
{
	if (file_bytes <= progress->got)
		return READ_STEP_DONE;
	if (progress->got == progress->room)
		return failed(progress, -EFBIG);
	progress->direct = false;
	return READ_STEP_BUFFERED;
}
