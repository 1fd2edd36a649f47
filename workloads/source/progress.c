/* What the answers to opens and reads of one sample mean. */
#include "workloads/source/progress.h"

#include <errno.h>

/* One byte more than expected, to whole blocks: what O_DIRECT needs, and the end of file shows. */
static size_t progress_first_want(uint64_t expected, size_t room)
{
	if (expected >= room)
		return room;
	const size_t want = ((size_t)expected / READ_ALIGN_BYTES + 1) * READ_ALIGN_BYTES;
	return want < room ? want : room;
}

void read_progress_start(
	struct read_progress *progress, uint64_t expected, size_t room, bool direct)
{
	*progress = (struct read_progress){
		.expected = expected,
		.room = room,
		.want = progress_first_want(expected, room),
		.direct = direct,
	};
}

void read_progress_start_part(
	struct read_progress *progress, uint64_t offset, uint64_t length, size_t room, bool direct)
{
	const bool blocks = direct && offset % READ_ALIGN_BYTES == 0;
	const uint64_t want =
		blocks ? (length + READ_ALIGN_BYTES - 1) / READ_ALIGN_BYTES * READ_ALIGN_BYTES
		       : length;
	*progress = (struct read_progress){
		.offset = offset,
		.expected = length,
		.part = true,
		.room = room,
		.want = want < room ? (size_t)want : room,
		.direct = blocks,
	};
}

void read_progress_request(
	struct read_progress *progress, const struct read_request *request, bool direct)
{
	if (request->part)
		read_progress_start_part(
			progress, request->offset, request->length, request->room, direct);
	else
		read_progress_start(progress, request->length, request->room, direct);
}

static enum read_step progress_failed(struct read_progress *progress, int status)
{
	progress->status = status;
	return READ_STEP_FAILED;
}

static enum read_step progress_retry(struct read_progress *progress, int code, enum read_step step,
	struct source_counter *counter)
{
	if (progress->retries >= READ_RETRIES_MAX)
		return progress_failed(progress, code);
	progress->retries++;
	source_count(&counter->retries, 1);
	return step;
}

/* File systems refuse O_DIRECT with EINVAL, some at open, some at the read. */
static enum read_step progress_error(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	if (code == -EINVAL && progress->direct) {
		progress->direct = false;
		return progress_retry(progress, code, READ_STEP_BUFFERED, counter);
	}
	if (code == -EINTR || code == -EAGAIN || code == -ECANCELED)
		return progress_retry(progress, code, READ_STEP_MORE, counter);
	return progress_failed(progress, code);
}

enum read_step read_progress_open_failed(
	struct read_progress *progress, int code, struct source_counter *counter)
{
	return progress_error(progress, code, counter);
}

/* A direct read cannot go on inside a block, and stops there only at the end of the file. */
static enum read_step progress_short(
	const struct read_progress *progress, struct source_counter *counter)
{
	source_count(&counter->short_reads, 1);
	return progress->direct && progress->got % READ_ALIGN_BYTES ? READ_STEP_SIZE
								    : READ_STEP_MORE;
}

/* Of a part, the rest of its last block is another sample's. */
static enum read_step progress_part_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter)
{
	progress->got += (size_t)answer;
	if (progress->got >= progress->expected) {
		progress->got = (size_t)progress->expected;
		return READ_STEP_DONE;
	}
	if (answer == 0)
		return progress_failed(
			progress, progress->got < progress->want ? -ENODATA : -EFBIG);
	return progress->got < progress->want ? progress_short(progress, counter)
					      : progress_failed(progress, -EFBIG);
}

/* All that was asked for came: the file is larger than expected, or fills the room exactly. */
static enum read_step progress_filled(struct read_progress *progress)
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
		return progress_error(progress, (int)answer, counter);
	if (progress->part)
		return progress_part_answer(progress, answer, counter);
	if (answer == 0)
		return progress->want == progress->got ? READ_STEP_SIZE : READ_STEP_DONE;
	progress->got += (size_t)answer;
	if (progress->got >= progress->want)
		return progress_filled(progress);
	if (progress->got == progress->expected)
		return READ_STEP_DONE;
	return progress_short(progress, counter);
}

enum read_step read_progress_size(struct read_progress *progress, uint64_t file_bytes)
{
	if (file_bytes <= progress->offset + progress->got)
		return progress->part ? progress_failed(progress, -ENODATA) : READ_STEP_DONE;
	if (progress->got == progress->room)
		return progress_failed(progress, -EFBIG);
	progress->direct = false;
	return READ_STEP_BUFFERED;
}
