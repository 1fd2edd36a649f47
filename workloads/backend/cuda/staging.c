/* Where batches arrive in the device's memory, and the copies to there.  Copies run on a stream of their own, beside the steps.
 * The order of everything that touches a place is kept on the device: a copy waits for the step that used the place last, a
 * step for the copy.  Labels and descriptors are small and come from the pipeline's own arrays: they go through pinned words of
 * the place, so that no copy is one from pageable memory, which would make the host wait. */
#include "workloads/backend/cuda/device_session.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/backend/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_ALIGN = 256, CHANNELS = 3, FLOAT_BYTES = 4 };

/* Share of the time of the copy before that is slept before the first look. */
static const double COPY_EXPECTED_SHARE = 0.9;

static size_t staging_align(size_t bytes)
{
	return (bytes + WORDS_ALIGN - 1) / WORDS_ALIGN * WORDS_ALIGN;
}

static size_t staging_labels_room(const struct cuda_options *options)
{
	return staging_align(options->batch_size * sizeof(uint32_t));
}

static size_t staging_words_room(const struct cuda_options *options)
{
	const size_t pictures =
		options->augments ? options->batch_size * sizeof(struct batch_picture) : 0;
	return staging_labels_room(options) + staging_align(pictures);
}

static unsigned staging_count(const struct cuda_options *options)
{
	return options->staging_places > 0 ? options->staging_places : 1 + options->ahead;
}

uint64_t staging_bytes(const struct cuda_options *options)
{
	return (uint64_t)(staging_count(options) + options->evaluates) *
	       (staging_align(options->batch_room) + staging_words_room(options));
}

size_t staging_sample_bytes(const struct cuda_options *options)
{
	return (size_t)options->sample_elements *
	       (options->type == AUGMENT_TYPE_UINT8 ? 1 : FLOAT_BYTES);
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int staging_allocate(void **out, size_t bytes, const char *what, struct error *err)
{
	char size[UNITS_BYTES];
	const cudaError_t code = cudaMalloc(out, bytes);
	return code == cudaSuccess ? 0
				   : fail_cuda(err, (int)code, "cudaMalloc of %s for %s",
					     units_format_size((double)bytes, size), what);
}

static int staging_open_place(
	struct staging_place *place, const struct cuda_options *options, struct error *err)
{
	const size_t words = staging_words_room(options);
	const size_t room = staging_align(options->batch_room);
	place->batch = UINT64_MAX;
	OR_RETURN(staging_allocate(&place->data, room, "a batch", err));
	OR_RETURN(staging_allocate((void **)&place->words, words, "labels", err));
	/* The part that a smaller batch leaves unwritten is computed too, though its results are ignored. */
	CUDA_OR_RETURN(err, cudaMemset(place->data, 0, room));
	CUDA_OR_RETURN(err, cudaMemset(place->words, 0, words));
	CUDA_OR_RETURN(
		err, cudaHostAlloc((void **)&place->host_words, words, cudaHostAllocDefault));
	CUDA_OR_RETURN(err, cudaEventCreate(&place->begin));
	CUDA_OR_RETURN(err, cudaEventCreate(&place->end));
	return CUDA_TRY(err, cudaEventCreateWithFlags(&place->used, cudaEventDisableTiming));
}

int staging_open(struct cuda_session *session, struct error *err)
{
	struct staging *staging = &session->staging;
	staging->count = staging_count(&session->options);
	staging->pictures_at = staging_labels_room(&session->options);
	const unsigned all = staging->count + session->options.evaluates;
	staging->places = calloc(all, sizeof *staging->places);
	if (!staging->places)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	CUDA_OR_RETURN(err, cudaStreamCreateWithFlags(&staging->stream, cudaStreamNonBlocking));
	staging->evaluated = session->options.evaluates ? &staging->places[staging->count] : NULL;
	for (unsigned i = 0; i < all; i++)
		OR_RETURN(staging_open_place(&staging->places[i], &session->options, err));
	return 0;
}

static void staging_close_place(struct staging_place *place)
{
	const cudaEvent_t events[] = {place->begin, place->end, place->used};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		release_event(events[i]);
	release_host(place->host_words);
	release_device(place->words);
	release_device(place->data);
}

void staging_close(struct staging *staging)
{
	for (unsigned i = 0; staging->places && i < staging->count; i++)
		staging_close_place(&staging->places[i]);
	if (staging->evaluated)
		staging_close_place(staging->evaluated);
	release_stream(staging->stream);
	free(staging->places);
	*staging = (struct staging){0};
}

/* --- batches ---------------------------------------------------------------------------------- */

/* What a kernel would read outside of the batch would end the whole context. */
static int staging_check_pictures(
	const struct cuda_options *options, const struct batch_view *batch, struct error *err)
{
	for (uint32_t i = 0; i < batch->size; i++) {
		const struct batch_picture *picture = &batch->pictures[i];
		const uint64_t bytes = (uint64_t)picture->width * picture->height * CHANNELS;
		if (picture->bad)
			continue;
		if (bytes == 0 || bytes > batch->bytes || picture->offset > batch->bytes - bytes)
			return error_set(err, -EINVAL,
				"cuda: picture %u of batch %llu (%u x %u) lies outside of the batch",
				i, (unsigned long long)batch->index, picture->width,
				picture->height);
	}
	if (batch->bytes > options->batch_room)
		return error_set(err, -EINVAL,
			"cuda: batch %llu has %zu bytes, but a staging place holds %zu",
			(unsigned long long)batch->index, batch->bytes, options->batch_room);
	return 0;
}

int staging_check(
	const struct cuda_options *options, const struct batch_view *batch, struct error *err)
{
	if (batch->size == 0 || batch->size > options->batch_size)
		return error_set(err, -EINVAL, "batch of %u samples: the step takes 1 to %u",
			batch->size, options->batch_size);
	if (options->augments != (batch->pictures != NULL))
		return error_set(err, -EINVAL, "cuda: batch %llu has %s",
			(unsigned long long)batch->index,
			options->augments ? "samples instead of pictures"
					  : "pictures instead of samples");
	if (options->augments)
		return staging_check_pictures(options, batch, err);
	const size_t sample_bytes = staging_sample_bytes(options);
	if (batch->type != options->type || batch->sample_bytes != sample_bytes ||
		batch->size * sample_bytes > options->batch_room)
		return error_set(err, -EINVAL, "cuda: samples of %zu bytes: the model takes %zu",
			batch->sample_bytes, sample_bytes);
	return 0;
}

int staging_copy(struct cuda_session *session, struct staging_place *place,
	const struct batch_view *batch, cudaStream_t stream, struct error *err)
{
	const struct cuda_options *options = &session->options;
	const size_t pictures_at = session->staging.pictures_at;
	const size_t labels = batch->size * sizeof(uint32_t);
	const size_t pictures = batch->size * sizeof(struct batch_picture);
	place->batch = batch->index;
	place->size = batch->size;
	place->bytes =
		options->augments ? batch->bytes : batch->size * staging_sample_bytes(options);
	memcpy(place->host_words, batch->labels, labels);
	if (options->augments)
		memcpy(place->host_words + pictures_at, batch->pictures, pictures);
	const size_t words = options->augments ? pictures_at + pictures : labels;
	if (place->bytes > 0)
		CUDA_OR_RETURN(err, cudaMemcpyAsync(place->data, batch->data, place->bytes,
					    cudaMemcpyHostToDevice, stream));
	return CUDA_TRY(err, cudaMemcpyAsync(place->words, place->host_words, words,
				     cudaMemcpyHostToDevice, stream));
}

/* --- uploads ---------------------------------------------------------------------------------- */

static int staging_prefix(const struct staging_place *place, int code, struct error *err)
{
	return error_prefix(err, code, "upload of batch %llu", (unsigned long long)place->batch);
}

/* The least that a copy is expected to take, by the one before it; a larger one is not taken to be slower, since a small one's time is
 * mostly latency. */
static uint64_t staging_least_ns(const struct staging *staging, size_t bytes)
{
	const double share =
		staging->last_bytes > bytes ? (double)bytes / (double)staging->last_bytes : 1;
	return (uint64_t)(COPY_EXPECTED_SHARE * share * (double)staging->last_ns);
}

static int staging_enqueue(struct cuda_session *session, struct staging_place *place,
	const struct batch_view *batch, struct error *err)
{
	cudaStream_t stream = session->staging.stream;
	CUDA_OR_RETURN(err, cudaSetDevice((int)session->options.device));
	place->stamp = device_clock_stamp(&session->clock);
	CUDA_OR_RETURN(err, cudaStreamWaitEvent(stream, place->used, 0));
	CUDA_OR_RETURN(err, cudaEventRecord(place->begin, stream));
	OR_RETURN(staging_copy(session, place, batch, stream, err));
	return CUDA_TRY(err, cudaEventRecord(place->end, stream));
}

static struct staging_place *staging_find(
	struct cuda_session *session, unsigned place, struct error *err)
{
	if (session->options.staging_places > 0 && place < session->staging.count)
		return &session->staging.places[place];
	(void)error_set(err, -EINVAL, "cuda: there is no staging place %u", place);
	return NULL;
}

int session_upload(struct cuda_session *session, unsigned place, const struct batch_view *batch,
	struct error *err)
{
	struct staging_place *at = staging_find(session, place, err);
	if (!at)
		return -EINVAL;
	OR_RETURN(staging_check(&session->options, batch, err));
	at->batch = batch->index;
	const int code = staging_enqueue(session, at, batch, err);
	if (code)
		return staging_prefix(at, code, err);
	at->expected_ns = clock_now_ns() + staging_least_ns(&session->staging, at->bytes);
	return 0;
}

static int staging_read_times(struct cuda_session *session, const struct staging_place *place,
	struct upload_result *out, struct error *err)
{
	struct device_span span;
	OR_RETURN(device_clock_span(
		&session->clock, place->stamp, place->begin, place->end, &span, err));
	*out = (struct upload_result){span.begin_ns, span.end_ns, span.device_ns};
	session->staging.last_ns = span.device_ns;
	session->staging.last_bytes = place->bytes;
	return 0;
}

int session_upload_finish(
	struct cuda_session *session, unsigned place, struct upload_result *out, struct error *err)
{
	*out = (struct upload_result){0};
	struct staging_place *at = staging_find(session, place, err);
	if (!at)
		return -EINVAL;
	int code = CUDA_TRY(err, cudaSetDevice((int)session->options.device));
	if (code)
		return staging_prefix(at, code, err);
	const cudaError_t came =
		wait_for(at->end, at->expected_ns, UINT64_MAX, session->options.stop);
	if (came == cudaErrorNotReady)
		return error_set(err, -ECANCELED, "cuda: stopped during an upload");
	code = came == cudaSuccess ? staging_read_times(session, at, out, err)
				   : fail_cuda(err, (int)came, "copy to the device");
	return code ? staging_prefix(at, code, err) : 0;
}

bool session_upload_finished(struct cuda_session *session, unsigned place)
{
	return place >= session->staging.count ||
	       wait_look(session->staging.places[place].end) != cudaErrorNotReady;
}

/* --- pinned memory: a count of holders for each piece, behind one lock ------------------------ */

struct pinned {
	void *memory;
	size_t bytes;
	unsigned holders;
	struct pinned *next;
};

struct pin {
	struct pinned *pinned;
	struct pin *next;
};

static pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinned *pins_all;

static struct pinned *pins_find(const void *memory, size_t bytes)
{
	for (struct pinned *pinned = pins_all; pinned; pinned = pinned->next)
		if (pinned->memory == memory && pinned->bytes == bytes)
			return pinned;
	return NULL;
}

static int pins_register(struct pinned **out, void *memory, size_t bytes, struct error *err)
{
	struct pinned *pinned = malloc(sizeof *pinned);
	if (!pinned)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	/* Portable: for all devices of the process. */
	const cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
	if (code != cudaSuccess) {
		char size[UNITS_BYTES];
		free(pinned);
		return fail_cuda(err, (int)code, "cudaHostRegister of %s",
			units_format_size((double)bytes, size));
	}
	*pinned = (struct pinned){.memory = memory, .bytes = bytes, .next = pins_all};
	pins_all = pinned;
	*out = pinned;
	return 0;
}

int pins_add(struct pin **list, void *memory, size_t bytes, struct error *err)
{
	struct pin *pin = malloc(sizeof *pin);
	if (!pin)
		return error_set(err, -ENOMEM, "cuda: out of memory");
	(void)pthread_mutex_lock(&pins_lock);
	struct pinned *pinned = pins_find(memory, bytes);
	const int code = pinned ? 0 : pins_register(&pinned, memory, bytes, err);
	if (pinned)
		pinned->holders++;
	(void)pthread_mutex_unlock(&pins_lock);
	if (code) {
		free(pin);
		return code;
	}
	*pin = (struct pin){.pinned = pinned, .next = *list};
	*list = pin;
	return 0;
}

static void pins_leave(struct pinned *pinned)
{
	if (--pinned->holders > 0)
		return;
	struct pinned **at = &pins_all;
	while (*at != pinned)
		at = &(*at)->next;
	*at = pinned->next;
	if (cudaHostUnregister(pinned->memory) != cudaSuccess)
		(void)cudaGetLastError();
	free(pinned);
}

void pins_release(struct pin **list)
{
	(void)pthread_mutex_lock(&pins_lock);
	while (*list) {
		struct pin *pin = *list;
		*list = pin->next;
		pins_leave(pin->pinned);
		free(pin);
	}
	(void)pthread_mutex_unlock(&pins_lock);
}
