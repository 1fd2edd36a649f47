/* A session on a device: that steps, uploads and graphs come in the right order whatever overlaps, that times are the device's, and
 * that every failure is said and leaves nothing behind.  The model is toy.h's, whose losses are whole numbers. */
#include "tests/device/fixture.h"
#include "tests/device/toy_train.h"
#include "tests/measuring.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/device_session.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef MLBENCH_CUDA_DOUBLE
#include "tests/device/double/double.h"
#endif

enum {
	EDGE = 2,
	ELEMENTS = 3 * EDGE * EDGE,
	BATCH = 4,
	BATCHES = 12,
	SLOW_ROUNDS = 20 * 1000 * 1000,
	FAULTS_MAX = 150,
};

/* --- batches whose contents are a function of their number -------------------------------------------------------------- */

struct material {
	float data[BATCH * ELEMENTS];
	uint32_t labels[BATCH];
	uint32_t size;
};

static struct material make_material(uint64_t number, uint32_t size)
{
	struct material m = {.size = size};
	for (uint32_t i = 0; i < BATCH * ELEMENTS; i++)
		m.data[i] = (float)((number * 7 + i * 3) % 5);
	for (uint32_t i = 0; i < BATCH; i++)
		m.labels[i] = (uint32_t)(number + i) % 3;
	return m;
}

static struct batch_view view_of(const struct material *m, uint64_t number, int place)
{
	return (struct batch_view){
		.data = m->data,
		.labels = m->labels,
		.bytes = m->size * ELEMENTS * sizeof(float),
		.size = m->size,
		.sample_bytes = ELEMENTS * sizeof(float),
		.type = AUGMENT_TYPE_FLOAT32,
		.index = number,
		.place = place,
	};
}

/* The last of every third epoch of four is smaller. */
static uint32_t size_of(uint64_t number)
{
	return number % 5 == 4 ? BATCH - 1 : BATCH;
}

/* What the toy computes, on the host. */
struct reference {
	float weights[ELEMENTS], gradients[ELEMENTS];
	unsigned accumulated, accumulate;
};

static float reference_step(struct reference *r, const struct material *m)
{
	float labels = 0;
	for (uint32_t s = 0; s < m->size; s++)
		labels += (float)m->labels[s];
	const float loss = r->weights[0] + labels + m->data[m->size * ELEMENTS - 1];
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		float sum = r->accumulated > 0 ? r->gradients[i] : 0;
		for (uint32_t s = 0; s < m->size; s++)
			sum += m->data[s * ELEMENTS + i] * (1 + (float)m->labels[s]);
		r->gradients[i] = sum;
	}
	if (++r->accumulated < r->accumulate)
		return loss;
	for (uint32_t i = 0; i < ELEMENTS; i++)
		r->weights[i] += r->gradients[i] / (float)r->accumulate;
	r->accumulated = 0;
	return loss;
}

/* --- sessions ---------------------------------------------------------------------------------------------------------- */

static struct cuda_options options_with(unsigned places, unsigned ahead)
{
	return (struct cuda_options){
		.model = "mlp",
		.batch_size = BATCH,
		.sample_elements = ELEMENTS,
		.class_count = 3,
		.type = AUGMENT_TYPE_FLOAT32,
		.accumulate = 1,
		.streams = 1,
		.ahead = ahead,
		.staging_places = places,
		.batch_room = BATCH * ELEMENTS * sizeof(float),
		.picture_size = EDGE,
	};
}

static struct cuda_session *open_with(const struct cuda_options *options)
{
	struct cuda_session *session = NULL;
	struct error err = {""};
	if (session_open(&session, options, &err))
		fail_msg("%s", err.text);
	return session;
}

#define GOOD(call)                                                         \
	do {                                                               \
		err.text[0] = '\0';                                        \
		const int good_code = (call);                              \
		if (good_code)                                             \
			fail_msg("%s: %d %s", #call, good_code, err.text); \
	} while (0)

/* Steps over BATCHES batches, uploaded or not, in the way of the options; losses[] are what came back. */
static void run_batches(const struct cuda_options *options, float *losses, size_t count)
{
	struct error err = {""};
	struct cuda_session *session = open_with(options);
	struct material *all = calloc(count, sizeof *all);
	assert_non_null(all);
	size_t uploaded = 0, launched = 0;
	for (size_t finished = 0; finished < count; finished++) {
		while (launched < count && launched - finished <= options->ahead) {
			while (options->staging_places > 0 && uploaded < count &&
				uploaded - finished < options->staging_places) {
				all[uploaded] = make_material(uploaded, size_of(uploaded));
				const struct batch_view view =
					view_of(&all[uploaded], uploaded, BATCH_ON_HOST);
				const unsigned place =
					(unsigned)(uploaded % options->staging_places);
				GOOD(session_upload(session, place, &view, &err));
				uploaded++;
			}
			const int place = options->staging_places > 0
						  ? (int)(launched % options->staging_places)
						  : BATCH_ON_HOST;
			if (place == BATCH_ON_HOST)
				all[launched] = make_material(launched, size_of(launched));
			const struct batch_view view = view_of(&all[launched], launched, place);
			GOOD(session_launch(session, &view, &err));
			launched++;
		}
		if (options->staging_places > 0) {
			struct upload_result copied;
			GOOD(session_upload_finish(session,
				(unsigned)(finished % options->staging_places), &copied, &err));
			assert_true(copied.begin_ns > 0 && copied.end_ns >= copied.begin_ns);
		}
		struct step_result result;
		GOOD(session_finish(session, &result, &err));
		losses[finished] = (float)result.loss;
	}
	session_close(session);
	free(all);
}

static void expect_reference(const float *losses, size_t count, unsigned accumulate)
{
	struct reference reference = {.accumulate = accumulate};
	for (size_t i = 0; i < count; i++) {
		const struct material m = make_material(i, size_of(i));
		const float expected = reference_step(&reference, &m);
		if (losses[i] != expected)
			fail_msg("loss of batch %zu is %g, not %g", i, (double)losses[i],
				(double)expected);
	}
}

/* --- order ------------------------------------------------------------------------------------------------------------------ */

static void steps_and_uploads_keep_their_order(void **state)
{
	(void)state;
	need_device();
	static const struct {
		unsigned places, ahead, accumulate;
		bool graph;
	} ways[] = {
		{0, 0, 1, false},
		{0, 3, 1, false},
		{3, 1, 1, false},
		{2, 0, 1, true},
		{5, 3, 1, true},
		{0, 2, 1, true},
		{3, 1, 4, false},
		{3, 1, 4, true},
		{0, 1, 2, true},
	};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct cuda_options options = options_with(ways[i].places, ways[i].ahead);
		options.accumulate = ways[i].accumulate;
		options.graph = ways[i].graph;
		float losses[3 * BATCHES];
		run_batches(&options, losses, 3 * BATCHES);
		expect_reference(losses, 3 * BATCHES, options.accumulate);
	}
}

static void a_graph_changes_no_bit(void **state)
{
	(void)state;
	need_device();
	struct cuda_options options = options_with(3, 2);
	float without[2 * BATCHES];
	float with[2 * BATCHES];
	run_batches(&options, without, 2 * BATCHES);
	options.graph = true;
	run_batches(&options, with, 2 * BATCHES);
	assert_memory_equal(without, with, sizeof with);
}

/* The step computes from the place while the next batch is on its way there: the device orders them. */
static void a_copy_waits_for_the_step_that_uses_its_place(void **state)
{
	(void)state;
	need_device();
	toy_rounds = SLOW_ROUNDS;
	const struct cuda_options options = options_with(1, 1);
	struct cuda_session *session = open_with(&options);
	toy_rounds = 0;
	struct error err = {""};
	struct reference reference = {.accumulate = 1};
	const struct material first = make_material(0, BATCH), second = make_material(1, BATCH);
	const struct batch_view a = view_of(&first, 0, 0), b = view_of(&second, 1, 0);
	struct upload_result copied;
	struct step_result result;
	GOOD(session_upload(session, 0, &a, &err));
	GOOD(session_upload_finish(session, 0, &copied, &err));
	GOOD(session_launch(session, &a, &err));
	GOOD(session_upload(session, 0, &b, &err));
	assert_false(session_finished(session));
	assert_false(session_upload_finished(session, 0));
	GOOD(session_launch(session, &b, &err));
	GOOD(session_finish(session, &result, &err));
	assert_true((float)result.loss == reference_step(&reference, &first));
	const uint64_t first_end = result.end_ns;
	GOOD(session_upload_finish(session, 0, &copied, &err));
	GOOD(session_finish(session, &result, &err));
	assert_true((float)result.loss == reference_step(&reference, &second));
	assert_true(result.begin_ns >= first_end);
	session_close(session);
}

static void copies_run_beside_a_step(void **state)
{
	(void)state;
	need_device();
	toy_rounds = SLOW_ROUNDS;
	const struct cuda_options options = options_with(2, 1);
	struct cuda_session *session = open_with(&options);
	toy_rounds = 0;
	struct error err = {""};
	const struct material first = make_material(0, BATCH), second = make_material(1, BATCH);
	const struct batch_view a = view_of(&first, 0, 0), b = view_of(&second, 1, 1);
	struct upload_result copied;
	struct step_result result;
	GOOD(session_upload(session, 0, &a, &err));
	GOOD(session_launch(session, &a, &err));
	GOOD(session_upload(session, 1, &b, &err));
	GOOD(session_upload_finish(session, 1, &copied, &err));
	assert_false(session_finished(session));
	GOOD(session_finish(session, &result, &err));
	/* On one clock, to within what the map says of itself. */
	struct cuda_description description;
	session_describe(session, &description);
	assert_true(copied.end_ns < result.end_ns);
	assert_true(description.clock_map_error_ns >= 0);
	assert_measured(description.clock_map_error_ns < 5e6);
	session_close(session);
}

/* --- times ------------------------------------------------------------------------------------------------------------------- */

static void times_are_the_devices_own(void **state)
{
	(void)state;
	need_device();
	toy_rounds = SLOW_ROUNDS;
	const struct cuda_options options = options_with(0, 1);
	struct cuda_session *session = open_with(&options);
	toy_rounds = 0;
	struct error err = {""};
	uint64_t last_end = 0;
	for (uint64_t i = 0; i < 4; i++) {
		const struct material m = make_material(i, BATCH);
		const struct batch_view view = view_of(&m, i, BATCH_ON_HOST);
		struct step_result result;
		const uint64_t before = clock_now_ns();
		GOOD(session_launch(session, &view, &err));
		const uint64_t launched = clock_now_ns();
		GOOD(session_finish(session, &result, &err));
		const uint64_t after = clock_now_ns();
		const uint64_t error = 3000000;
		print_message("step of %.3f ms from %.3f to %.3f of %.3f\n",
			(double)result.device_ns / 1e6,
			((double)result.begin_ns - (double)before) / 1e6,
			((double)result.end_ns - (double)before) / 1e6,
			(double)(after - before) / 1e6);
		assert_measured(
			result.begin_ns + error >= before && result.end_ns <= after + error);
		assert_true(result.begin_ns >= last_end && result.end_ns > result.begin_ns);
		assert_measured(
			result.device_ns > 1000000 && result.device_ns < after - before + error);
		assert_true(result.launch_ns > 0 && result.launch_ns <= launched - before);
		assert_true(result.copy_ns < result.device_ns);
		assert_int_equal(result.sync_ns, 0);
		assert_true(isnan(result.gradient_norm) && isnan(result.activation_mean));
		last_end = result.end_ns;
	}
	session_close(session);
}

static void statistics_come_when_they_are_due(void **state)
{
	(void)state;
	need_device();
	struct cuda_options options = options_with(0, 0);
	options.statistics = 3;
	options.graph = true;
	struct cuda_session *session = open_with(&options);
	struct error err = {""};
	struct reference reference = {.accumulate = 1};
	for (uint64_t i = 0; i < 9; i++) {
		const struct material m = make_material(i, BATCH);
		const struct batch_view view = view_of(&m, i, BATCH_ON_HOST);
		const float before = reference.weights[0];
		const float loss = reference_step(&reference, &m);
		struct step_result result;
		GOOD(session_launch(session, &view, &err));
		GOOD(session_finish(session, &result, &err));
		assert_true((float)result.loss == loss);
		if (i % 3 != 2) {
			assert_true(isnan(result.gradient_norm) && isnan(result.nonfinite_share));
			continue;
		}
		/* Of the gradients before the update. */
		assert_true(result.gradient_norm == (double)reference.gradients[0]);
		assert_true(result.nonfinite_share == 0.5);
		assert_true(result.activation_mean == (double)before);
		assert_true(result.activation_deviation == (double)loss);
	}
	session_close(session);
}

static void idle_shares_are_shares(void **state)
{
	(void)state;
	need_device();
	for (int graph = 0; graph < 2; graph++) {
		struct cuda_options options = options_with(0, 1);
		options.graph = graph == 1;
		struct cuda_session *session = open_with(&options);
		struct error err = {""};
		unsigned known = 0;
		for (uint64_t i = 0; i < 40; i++) {
			const struct material m = make_material(i, size_of(i));
			const struct batch_view view = view_of(&m, i, BATCH_ON_HOST);
			struct step_result result;
			GOOD(session_launch(session, &view, &err));
			GOOD(session_finish(session, &result, &err));
			if (isnan(result.idle_share))
				continue;
			known++;
			assert_true(result.idle_share >= 0 && result.idle_share <= 1);
			assert_int_equal(m.size, BATCH);
		}
		/* All full batches but the first, or those after the first that ran as a graph. */
		assert_measured(known >= (graph ? 31U : 20U));
		session_close(session);
	}
}

/* --- pictures ----------------------------------------------------------------------------------------------------------------- */

static void pictures_become_samples(void **state)
{
	(void)state;
	need_device();
	struct cuda_options options = options_with(2, 1);
	options.augments = true;
	options.type = AUGMENT_TYPE_UINT8;
	options.channels_last = true;
	options.batch_room = 4096;
	struct cuda_session *session = open_with(&options);
	struct error err = {""};
	uint8_t bytes[BATCH * ELEMENTS];
	struct batch_picture pictures[BATCH];
	const uint32_t labels[BATCH] = {1, 0, 2, 0};
	float expected = 3;
	for (uint32_t i = 0; i < BATCH; i++) {
		for (uint32_t j = 0; j < ELEMENTS; j++)
			bytes[i * ELEMENTS + j] = (uint8_t)(i * 20 + j);
		/* In another order than they lie. */
		pictures[i] = (struct batch_picture){
			.offset = (uint64_t)(BATCH - 1 - i) * ELEMENTS,
			.width = EDGE,
			.height = EDGE,
			.box_width = EDGE,
			.box_height = EDGE,
		};
	}
	expected += (float)bytes[ELEMENTS - 1]; /* the last sample is the first picture */
	struct batch_view view = {
		.data = bytes,
		.labels = labels,
		.pictures = pictures,
		.bytes = sizeof bytes,
		.size = BATCH,
		.sample_bytes = ELEMENTS,
		.type = AUGMENT_TYPE_UINT8,
		.place = 1,
	};
	struct upload_result copied;
	struct step_result result;
	GOOD(session_upload(session, 1, &view, &err));
	GOOD(session_launch(session, &view, &err));
	GOOD(session_upload_finish(session, 1, &copied, &err));
	GOOD(session_finish(session, &result, &err));
	assert_true((float)result.loss == expected);
	/* One that lies outside would end the whole context: it is refused on the host. */
	pictures[2].offset = sizeof bytes - 1;
	assert_int_equal(session_upload(session, 0, &view, &err), -EINVAL);
	assert_non_null(strstr(err.text, "picture 2 of batch 0"));
	pictures[2].bad = 1;
	GOOD(session_upload(session, 0, &view, &err));
	GOOD(session_upload_finish(session, 0, &copied, &err));
	session_close(session);
}

/* --- refusals -------------------------------------------------------------------------------------------------------------------- */

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	need_device();
	const struct cuda_options options = options_with(2, 0);
	struct cuda_session *session = open_with(&options);
	struct error err = {""};
	const struct material m = make_material(0, BATCH);
	struct batch_view view = view_of(&m, 0, 0);
	struct step_result result;
	struct upload_result copied;
	assert_int_equal(session_finish(session, &result, &err), -EINVAL);
	assert_false(session_finished(session));
	assert_int_equal(session_launch(session, &view, &err), -EINVAL); /* not uploaded */
	assert_non_null(strstr(err.text, "was not uploaded"));
	assert_int_equal(session_upload(session, 2, &view, &err), -EINVAL);
	assert_int_equal(session_upload_finish(session, 9, &copied, &err), -EINVAL);
	view.size = BATCH + 1;
	assert_int_equal(session_upload(session, 0, &view, &err), -EINVAL);
	view.size = 0;
	assert_int_equal(session_upload(session, 0, &view, &err), -EINVAL);
	view.size = BATCH;
	view.sample_bytes = 7;
	assert_int_equal(session_upload(session, 0, &view, &err), -EINVAL);
	view = view_of(&m, 0, 0);
	GOOD(session_upload(session, 0, &view, &err));
	GOOD(session_launch(session, &view, &err));
	assert_int_equal(session_launch(session, &view, &err), -EINVAL); /* one at a time */
	assert_non_null(strstr(err.text, "in flight"));
	GOOD(session_finish(session, &result, &err));
	view.place = BATCH_ON_HOST;
	assert_int_equal(session_launch(session, &view, &err), -EINVAL);
	session_close(session);
	struct cuda_options wrong = options;
	wrong.streams = DEVICE_STREAMS_MAX + 1;
	assert_int_equal(session_open(&session, &wrong, &err), -EINVAL);
	wrong = options;
	wrong.model = "unheard of";
	assert_int_equal(session_open(&session, &wrong, &err), -EINVAL);
	wrong = options;
	wrong.device = 99;
	assert_true(session_open(&session, &wrong, &err) < 0);
	assert_null(session);
	session_close(NULL);
}

/* Between steps, of more samples than a step takes: what it gives is that of the weights of that moment, and training goes on
 * as if nothing had been. */
static void evaluations_leave_training_alone(void **state)
{
	(void)state;
	need_device();
	enum { TRIED = 2 * BATCH + 3 };
	static float data[TRIED * ELEMENTS];
	static uint32_t labels[TRIED];
	float sum = 0;
	for (uint32_t i = 0; i < TRIED * ELEMENTS; i++)
		data[i] = (float)(i % 7);
	for (uint32_t i = 0; i < TRIED; i++)
		labels[i] = i % 3;
	for (uint32_t i = 2 * BATCH; i < TRIED; i++) /* of the last piece */
		sum += (float)labels[i];
	const struct batch_view tried = {.data = data,
		.labels = labels,
		.bytes = sizeof data,
		.size = TRIED,
		.sample_bytes = ELEMENTS * sizeof(float),
		.type = BATCH_FLOAT32,
		.index = 7,
		.place = BATCH_ON_HOST};
	for (unsigned way = 0; way < 8; way++) {
		struct cuda_options options = options_with(way & 1 ? 2 : 0, 1);
		options.graph = (way & 2) != 0;
		options.accumulate = way & 4 ? 3 : 1;
		options.evaluates = true;
		struct error err = {""};
		struct cuda_session *session = open_with(&options);
		struct reference reference = {.accumulate = options.accumulate};
		for (uint64_t i = 0; i < BATCHES; i++) {
			const struct material m = make_material(i, size_of(i));
			const struct batch_view view =
				view_of(&m, i, options.staging_places > 0 ? 0 : BATCH_ON_HOST);
			struct step_result result;
			struct upload_result copied;
			float loss = 0;
			if (options.staging_places > 0) {
				GOOD(session_upload(session, 0, &view, &err));
				GOOD(session_upload_finish(session, 0, &copied, &err));
			}
			GOOD(session_launch(session, &view, &err));
			assert_int_equal(session_evaluate(session, &tried, &err), -EINVAL);
			assert_non_null(strstr(err.text, "in flight"));
			GOOD(session_finish(session, &result, &err));
			assert_true((float)result.loss == reference_step(&reference, &m));
			GOOD(session_evaluate(session, &tried, &err));
			assert_int_equal(cudaMemcpy(&loss, train_loss(session->train), sizeof loss,
						 cudaMemcpyDeviceToHost),
				cudaSuccess);
			assert_true(
				loss == reference.weights[0] + sum + data[TRIED * ELEMENTS - 1]);
		}
		session_close(session);
	}
	const struct cuda_options options = options_with(0, 0);
	struct error err = {""};
	struct cuda_session *session = open_with(&options);
	assert_int_equal(session_evaluate(session, &tried, &err), -EINVAL);
	assert_non_null(strstr(err.text, "was not opened to evaluate"));
	session_close(session);
}

static void stopping_ends_a_wait(void **state)
{
	(void)state;
	need_device();
	atomic_bool stop = false;
	struct cuda_options options = options_with(1, 0);
	options.stop = &stop;
	toy_rounds = 20U * SLOW_ROUNDS;
	struct cuda_session *session = open_with(&options);
	toy_rounds = 0;
	struct error err = {""};
	const struct material m = make_material(0, BATCH);
	const struct batch_view view = view_of(&m, 0, 0);
	struct step_result result;
	struct upload_result copied;
	GOOD(session_upload(session, 0, &view, &err));
	GOOD(session_launch(session, &view, &err));
	GOOD(session_upload(session, 0, &view, &err)); /* waits for the step */
	atomic_store(&stop, true);
	const uint64_t before = clock_now_ns();
	assert_int_equal(session_finish(session, &result, &err), -ECANCELED);
	assert_int_equal(session_upload_finish(session, 0, &copied, &err), -ECANCELED);
	assert_measured(clock_now_ns() - before < 50000000);
	OK(cudaDeviceSynchronize()); /* a device that seems to hang would be left alone, with its memory */
	session_close(session);
}

/* --- two threads -------------------------------------------------------------------------------------------------------------------- */

enum { RING = 4, MANY = 200 };

struct two {
	struct cuda_session *session;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t uploaded, finished;
	int code;
	struct error err;
};

static void tell(struct two *two, uint64_t *what)
{
	(void)pthread_mutex_lock(&two->lock);
	++*what;
	(void)pthread_cond_broadcast(&two->changed);
	(void)pthread_mutex_unlock(&two->lock);
}

static void *upload_all(void *context)
{
	struct two *two = context;
	struct material ring[RING];
	for (uint64_t i = 0; i < MANY && !two->code; i++) {
		(void)pthread_mutex_lock(&two->lock);
		while (i - two->finished >= RING)
			(void)pthread_cond_wait(&two->changed, &two->lock);
		(void)pthread_mutex_unlock(&two->lock);
		ring[i % RING] = make_material(i, size_of(i));
		const struct batch_view view = view_of(&ring[i % RING], i, BATCH_ON_HOST);
		const unsigned place = (unsigned)(i % RING);
		struct upload_result copied;
		two->code = session_upload(two->session, place, &view, &two->err);
		tell(two, &two->uploaded);
		if (!two->code)
			two->code = session_upload_finish(two->session, place, &copied, &two->err);
		/* Host memory is the pipeline's again. */
		memset(ring[i % RING].data, 0xff, sizeof ring[i % RING].data);
	}
	return NULL;
}

static void uploader_and_step_thread_work_side_by_side(void **state)
{
	(void)state;
	need_device();
	struct cuda_options options = options_with(RING, 2);
	options.graph = true;
	struct two two = {.session = open_with(&options)};
	assert_int_equal(pthread_mutex_init(&two.lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&two.changed, NULL), 0);
	struct error err = {""};
	float losses[MANY];
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, upload_all, &two), 0);
	uint64_t launched = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		while (launched < MANY && launched - i <= options.ahead) {
			(void)pthread_mutex_lock(&two.lock);
			while (two.uploaded <= launched)
				(void)pthread_cond_wait(&two.changed, &two.lock);
			(void)pthread_mutex_unlock(&two.lock);
			const struct material m = make_material(launched, size_of(launched));
			const struct batch_view view =
				view_of(&m, launched, (int)(launched % RING));
			GOOD(session_launch(two.session, &view, &err));
			launched++;
		}
		struct step_result result;
		GOOD(session_finish(two.session, &result, &err));
		losses[i] = (float)result.loss;
		tell(&two, &two.finished);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (two.code)
		fail_msg("%s", two.err.text);
	expect_reference(losses, MANY, 1);
	session_close(two.session);
	(void)pthread_cond_destroy(&two.changed);
	(void)pthread_mutex_destroy(&two.lock);
}

/* In the middle of an update, statistics are of the parts that are there. */
static void statistics_within_an_update_are_of_its_parts(void **state)
{
	(void)state;
	need_device();
	struct cuda_options options = options_with(0, 0);
	options.statistics = 1;
	options.accumulate = 4;
	struct cuda_session *session = open_with(&options);
	struct error err = {""};
	struct reference reference = {.accumulate = 4};
	for (uint64_t i = 0; i < 9; i++) {
		const struct material m = make_material(i, BATCH);
		const struct batch_view view = view_of(&m, i, BATCH_ON_HOST);
		(void)reference_step(&reference, &m);
		struct step_result result;
		GOOD(session_launch(session, &view, &err));
		GOOD(session_finish(session, &result, &err));
		assert_true(result.gradient_norm ==
			    (double)(reference.gradients[0] / (float)(i % 4 + 1)));
	}
	session_close(session);
}

/* --- pinned memory --------------------------------------------------------------------------------------------------------------------- */

static void memory_is_pinned_once_for_all_sessions(void **state)
{
	(void)state;
	need_device();
	enum { BYTES = 1 << 20 };
	struct error err = {""};
	void *memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	memset(memory, 1, BYTES);
	const struct cuda_options options = options_with(0, 0);
	struct cuda_session *first = open_with(&options);
	struct cuda_session *second = open_with(&options);
	GOOD(session_pin(first, memory, BYTES, &err));
	GOOD(session_pin(second, memory, BYTES, &err));
	session_close(first);
#ifdef MLBENCH_CUDA_DOUBLE
	assert_int_equal(double_calls("cudaHostRegister"), 1);
	assert_int_equal(double_calls("cudaHostUnregister"), 0);
#endif
	session_close(second);
	/* It is free again. */
	OK(cudaHostRegister(memory, BYTES, cudaHostRegisterDefault));
	OK(cudaHostUnregister(memory));
	(void)munmap(memory, BYTES);
}

/* --- several devices --------------------------------------------------------------------------------------------------------------------- */

struct rank {
	struct cuda_options options;
	float losses[BATCHES];
	double norms[BATCHES];
	uint64_t sync_ns;
	unsigned exchanges; /* of all ranks, once this one was open: on the double */
	int code;
	struct error err;
};

/* Rank r of n takes batches r, n + r, 2 n + r ... */
static void *train_rank(void *context)
{
	struct rank *r = context;
	struct cuda_session *session = NULL;
	r->code = session_open(&session, &r->options, &r->err);
#ifdef MLBENCH_CUDA_DOUBLE
	r->exchanges = double_calls("ncclAllReduce");
#endif
	for (uint64_t i = 0; i < BATCHES && !r->code; i++) {
		const uint64_t number = i * r->options.devices + r->options.rank;
		const struct material m = make_material(number, BATCH);
		const struct batch_view view = view_of(&m, number, BATCH_ON_HOST);
		struct step_result result;
		r->code = session_launch(session, &view, &r->err);
		if (!r->code)
			r->code = session_finish(session, &result, &r->err);
		if (r->code)
			break;
		r->losses[i] = (float)result.loss;
		r->norms[i] = result.gradient_norm;
		r->sync_ns += result.sync_ns;
		assert_true((result.sync_begin_ns > 0) == (result.sync_ns > 0));
		assert_true(result.sync_begin_ns == 0 ||
			    (result.sync_begin_ns >= result.begin_ns &&
				    result.sync_begin_ns <= result.end_ns));
	}
	session_close(session);
	return NULL;
}

static void run_ranks(struct rank *ranks, unsigned count)
{
	struct error err = {""};
	struct cuda_group *group = NULL;
	pthread_t threads[CUDA_DEVICES_MAX];
	GOOD(group_open(&group, count, NULL, &err));
	for (unsigned i = 0; i < count; i++) {
		ranks[i].options.group = group;
		ranks[i].options.device = i;
		ranks[i].options.rank = i;
		ranks[i].options.devices = count;
		assert_int_equal(pthread_create(&threads[i], NULL, train_rank, &ranks[i]), 0);
	}
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	group_close(group);
}

static bool has_devices(unsigned wanted)
{
	int count = 0;
#ifdef MLBENCH_CUDA_DOUBLE
	assert_int_equal(setenv("MLBENCH_DOUBLE_DEVICES", "2", 1), 0);
	double_configure();
#endif
	return cudaGetDeviceCount(&count) == cudaSuccess && count >= (int)wanted;
}

static void two_devices_train_as_one(void **state)
{
	(void)state;
	enum { DEVICES = 2 };
	if (!has_devices(DEVICES)) {
		print_message("skipped: one device\n");
		skip();
	}
	for (unsigned way = 0; way < 4; way++) {
		struct rank ranks[DEVICES] = {0};
		struct reference references[DEVICES] = {0};
		const unsigned accumulate = way & 1 ? 2 : 1;
		for (unsigned r = 0; r < DEVICES; r++) {
			ranks[r].options = options_with(0, 0);
			ranks[r].options.accumulate = accumulate;
			ranks[r].options.graph = (way & 2) != 0;
			ranks[r].options.statistics =
				way & 2 ? 0 : 1;                /* a step with them is no graph */
			references[r].accumulate = BATCHES + 1; /* updates are made here */
		}
#ifdef MLBENCH_CUDA_DOUBLE
		double_configure(); /* counts from 0 */
#endif
		run_ranks(ranks, DEVICES);
#ifdef MLBENCH_CUDA_DOUBLE
		/* All exchange once before the first of them steps. */
		assert_true(ranks[0].exchanges >= DEVICES && ranks[1].exchanges >= DEVICES);
		assert_int_equal(
			double_calls("ncclAllReduce"), DEVICES * (1 + BATCHES / accumulate));
#endif
		for (unsigned i = 0; i < BATCHES; i++) {
			for (unsigned r = 0; r < DEVICES; r++) {
				const struct material m =
					make_material((uint64_t)i * DEVICES + r, BATCH);
				const float loss = reference_step(&references[r], &m);
				if (ranks[r].code)
					fail_msg("%s", ranks[r].err.text);
				assert_true(ranks[r].losses[i] == loss);
			}
			/* Before the exchange a device knows its own gradient alone; from the first step on. */
			if ((i + 1) % accumulate > 0) {
				for (unsigned r = 0; r < DEVICES && way < 2; r++)
					assert_true(ranks[r].norms[i] ==
						    (double)references[r].gradients[0]);
				continue;
			}
			const float both = references[0].gradients[0] + references[1].gradients[0];
			for (unsigned r = 0; r < DEVICES && way < 2; r++)
				assert_true(ranks[r].norms[i] ==
					    (double)(both / (float)(accumulate * DEVICES)));
			for (unsigned j = 0; j < ELEMENTS; j++) {
				const float sum =
					references[0].gradients[j] + references[1].gradients[j];
				for (unsigned r = 0; r < DEVICES; r++) {
					references[r].weights[j] +=
						sum / (float)(accumulate * DEVICES);
					references[r].accumulated = 0;
				}
			}
		}
		assert_true(ranks[0].sync_ns > 0 && ranks[1].sync_ns > 0);
	}
}

/* One that cannot begin leaves nobody waiting for it. */
static void a_rank_that_fails_ends_the_others(void **state)
{
	(void)state;
	enum { DEVICES = 2 };
	if (!has_devices(DEVICES)) {
		print_message("skipped: one device\n");
		skip();
	}
	struct rank ranks[DEVICES] = {0};
	for (unsigned r = 0; r < DEVICES; r++)
		ranks[r].options = options_with(0, 0);
	ranks[1].options.batch_room = (size_t)1 << 50;
	run_ranks(ranks, DEVICES);
	print_message("%s; %s\n", ranks[0].err.text, ranks[1].err.text);
	assert_int_equal(ranks[0].code, -ECANCELED);
	assert_int_equal(ranks[1].code, -ENOMEM);
}

/* --- failures: on the double -------------------------------------------------------------------------------------------------------------- */

#ifdef MLBENCH_CUDA_DOUBLE

static void expect_nothing_left(void)
{
	if (double_allocated() > 0 || double_live() > 0)
		fail_msg("%zu bytes and %zu objects are left", double_allocated(), double_live());
}

static void too_little_memory_is_said_with_both_figures(void **state)
{
	(void)state;
	assert_int_equal(setenv("MLBENCH_DOUBLE_MEMORY", "1048576", 1), 0);
	double_configure();
	struct cuda_options options = options_with(64, 1);
	options.batch_room = 65536;
	struct cuda_session *session = NULL;
	struct error err = {""};
	assert_int_equal(session_open(&session, &options, &err), -ENOMEM);
	print_message("%s\n", err.text);
	assert_non_null(strstr(err.text, "4.02 MiB of device memory"));
	assert_non_null(strstr(err.text, "1.00 MiB are free"));
	assert_null(session);
	(void)unsetenv("MLBENCH_DOUBLE_MEMORY");
	double_configure();
	expect_nothing_left();
}

/* Opens, steps, uploads, closes; the first failure's code, with err. */
static int live_a_little(const struct cuda_options *options, struct error *err)
{
	struct cuda_session *session = NULL;
	int code = session_open(&session, options, err);
	for (uint64_t i = 0; i < 6 && !code; i++) {
		const struct material m = make_material(i, BATCH);
		const bool uploads = options->staging_places > 0;
		const struct batch_view view = view_of(&m, i, uploads ? 0 : BATCH_ON_HOST);
		struct step_result result;
		struct upload_result copied;
		code = uploads ? session_upload(session, 0, &view, err) : 0;
		if (!code && uploads)
			code = session_upload_finish(session, 0, &copied, err);
		if (!code)
			code = session_launch(session, &view, err);
		if (!code)
			code = session_finish(session, &result, err);
		const struct batch_view tried = view_of(&m, i, BATCH_ON_HOST);
		if (!code && options->evaluates)
			code = session_evaluate(session, &tried, err);
	}
	session_close(session);
	return code;
}

static void try_failures_of(const char *function, const struct cuda_options *options)
{
	double_configure();
	struct error err = {""};
	assert_int_equal(live_a_little(options, &err), 0);
	const unsigned calls = double_calls(function);
	unsigned said = 0;
	/* Looks at events are many and alike. */
	const unsigned stride = 1 + calls / FAULTS_MAX;
	for (unsigned n = 1; n <= calls; n += stride) {
		char fault[64];
		(void)snprintf(fault, sizeof fault, "%s:%u", function, n);
		assert_int_equal(setenv("MLBENCH_DOUBLE_FAIL", fault, 1), 0);
		double_configure();
		err.text[0] = '\0';
		const int code = live_a_little(options, &err);
		if (code > 0 || (code < 0 && !strstr(err.text, "cuda")))
			fail_msg("%s: %d, '%s'", fault, code, err.text);
		said += code < 0;
		expect_nothing_left();
	}
	assert_int_equal(unsetenv("MLBENCH_DOUBLE_FAIL"), 0);
	double_configure();
	print_message("%s: %u calls, %u failures said\n", function, calls, said);
	assert_true(calls > 0);
}

static void every_failure_is_said_and_leaves_nothing(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* 15 seconds, and nothing of threads in it */
#endif
	static const char *const functions[] = {
		"cudaSetDevice",
		"cudaGetDeviceProperties",
		"cudaMemGetInfo",
		"cudaMalloc",
		"cudaHostAlloc",
		"cudaMemset",
		"cudaStreamCreateWithFlags",
		"cudaEventCreate",
		"cudaEventCreateWithFlags",
		"cudaEventRecord",
		"cudaEventQuery",
		"cudaEventElapsedTime",
		"cudaStreamWaitEvent",
		"cudaMemcpyAsync",
		"cudaStreamBeginCapture",
		"cudaStreamEndCapture",
		"cudaGraphGetNodes",
		"cudaGraphInstantiate",
		"cudaGraphLaunch",
		"cudaDeviceSynchronize",
	};
	struct cuda_options options = options_with(1, 1);
	options.graph = true;
	options.statistics = 5;
	options.evaluates = true;
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		try_failures_of(functions[i], &options);
	assert_string_equal(double_complaint(), "");
}

/* Without step.graph, a device that cannot record goes on without the share of idle time. */
static void a_refused_recording_harms_no_step(void **state)
{
	(void)state;
	const struct cuda_options options = options_with(0, 1);
	assert_int_equal(setenv("MLBENCH_DOUBLE_FAIL", "cudaGraphInstantiate:2", 1), 0);
	double_configure();
	float losses[BATCHES];
	run_batches(&options, losses, BATCHES);
	assert_true(double_calls("cudaGraphInstantiate") == 2);
	expect_reference(losses, BATCHES, 1);
	(void)unsetenv("MLBENCH_DOUBLE_FAIL");
	double_configure();
}

/* With it, that is what was asked for. */
static void a_graph_that_was_asked_for_is_no_option(void **state)
{
	(void)state;
	struct cuda_options options = options_with(0, 1);
	options.graph = true;
	struct error err = {""};
	assert_int_equal(setenv("MLBENCH_DOUBLE_FAIL", "cudaGraphInstantiate:2", 1), 0);
	double_configure();
	assert_int_equal(live_a_little(&options, &err), -ENOTSUP);
	print_message("%s\n", err.text);
	assert_non_null(strstr(err.text, "step of batch 1"));
	assert_non_null(strstr(err.text, "cannot be recorded as a graph"));
	(void)unsetenv("MLBENCH_DOUBLE_FAIL");
	double_configure();
	expect_nothing_left();
}

/* What fails on the device itself ends its context: nothing can be given back there any more, but the failure is said, at the
 * step where it came, and closing comes back. */
static void a_lost_device_is_said_at_its_step(void **state)
{
	(void)state;
	static const char *const faults[] = {"kernel:643", "kernel:649", "copy:8"};
	struct cuda_options options = options_with(1, 1);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		struct error err = {""};
		assert_int_equal(setenv("MLBENCH_DOUBLE_FAIL", faults[i], 1), 0);
		double_configure();
		const uint64_t before = clock_now_ns();
		const int code = live_a_little(&options, &err);
		print_message("%s: %s\n", faults[i], err.text);
		assert_true(code < 0);
		assert_non_null(strstr(err.text, " of batch "));
		assert_measured(clock_now_ns() - before < 5 * NS_PER_S);
	}
	(void)unsetenv("MLBENCH_DOUBLE_FAIL");
	double_configure();
}

static void nothing_was_misused(void **state)
{
	(void)state;
	assert_string_equal(double_complaint(), "");
	expect_nothing_left();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_uploads_keep_their_order),
		cmocka_unit_test(a_graph_changes_no_bit),
		cmocka_unit_test(a_copy_waits_for_the_step_that_uses_its_place),
		cmocka_unit_test(copies_run_beside_a_step),
		cmocka_unit_test(times_are_the_devices_own),
		cmocka_unit_test(statistics_come_when_they_are_due),
		cmocka_unit_test(statistics_within_an_update_are_of_its_parts),
		cmocka_unit_test(idle_shares_are_shares),
		cmocka_unit_test(pictures_become_samples),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(evaluations_leave_training_alone),
		cmocka_unit_test(stopping_ends_a_wait),
		cmocka_unit_test(uploader_and_step_thread_work_side_by_side),
		cmocka_unit_test(memory_is_pinned_once_for_all_sessions),
		cmocka_unit_test(two_devices_train_as_one),
		cmocka_unit_test(a_rank_that_fails_ends_the_others),
#ifdef MLBENCH_CUDA_DOUBLE
		cmocka_unit_test(nothing_was_misused),
		cmocka_unit_test(too_little_memory_is_said_with_both_figures),
		cmocka_unit_test(every_failure_is_said_and_leaves_nothing),
		cmocka_unit_test(a_refused_recording_harms_no_step),
		cmocka_unit_test(a_graph_that_was_asked_for_is_no_option),
		cmocka_unit_test(a_lost_device_is_said_at_its_step),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
