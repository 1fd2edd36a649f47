/* Logs that training programs print, with planted steps: each program's lines as they come,
 * coloured, with other lines between them, from several ranks, with evaluations, epochs and
 * restarts; JSON; and text that only looks like them. */
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/command/command.h"
#include "harness/fit/finding.h"
#include "harness/fit/step_lines.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char work_folder[] = "/tmp/mlbench-lines-XXXXXX";

static int lines_of(struct findings *out, const struct buffer *text, struct error *err)
{
	char path[256];
	assert_false(text->failed);
	(void)snprintf(path, sizeof path, "%s/log", work_folder);
	assert_int_equal(files_write_atomic(path, text->data, text->size, err), 0);
	findings_open(out);
	*err = (struct error){0};
	return findings_from_step_log(out, path, err);
}

static bool lines_note(const struct findings *findings, const char *words)
{
	for (size_t i = 0; i < findings->note_count; i++)
		if (strstr(findings->notes[i], words))
			return true;
	return false;
}

/* Within a tenth of a per cent. */
static void lines_expect(const struct findings *findings, enum finding_id id, double value)
{
	const struct finding *known = &findings->known[id];
	if (known->how == FINDING_UNKNOWN || !(fabs(known->value - value) <= 1e-3 * value))
		fail_msg("%s is %.9g, not %.9g", finding_name(id), known->value, value);
	assert_int_equal(known->source, SOURCE_STEP_LOG);
}

static void lines_unknown(const struct findings *findings, enum finding_id id)
{
	assert_int_equal(findings->known[id].how, FINDING_UNKNOWN);
}

/* --- planted lines ---------------------------------------------------------------------------- */

struct planted_step {
	int number;
	double ms, wait_ms, end_s; /* since the beginning */
	int rank;
};

/* What a step takes: 100 ms on average over three steps. */
static double planted_ms(int step)
{
	return 100 + (step % 3 - 1) * 10;
}

static void put_word(
	struct buffer *out, const char *word, size_t length, const struct planted_step *step)
{
	static const char *const words[] = {
		"n", "ms", "s", "w", "rate", "clock", "date", "rank", "hours", "epoch", "time"};
	size_t which = 0;
	const int seconds = (int)step->end_s;
	while (which < COUNT(words) &&
		(strlen(words[which]) != length || strncmp(words[which], word, length) != 0))
		which++;
	switch (which) {
	case 0:
		buffer_format(out, "%d", step->number);
		break;
	case 1:
		buffer_format(out, "%.2f", step->ms);
		break;
	case 2:
		buffer_format(out, "%.4f", step->ms / 1e3);
		break;
	case 3:
		buffer_format(out, "%.4f", step->wait_ms / 1e3);
		break;
	case 4:
		buffer_format(out, "%.4f", 1e3 / step->ms);
		break;
	case 5:
		buffer_format(out, "%02d:%02d", seconds / 60, seconds % 60);
		break;
	case 6:
		buffer_format(out, "2026-11-26 %02d:%02d:%06.3f", 6 + seconds / 3600,
			seconds / 60 % 60, fmod(step->end_s, 60));
		break;
	case 7:
		buffer_format(out, "%d", step->rank);
		break;
	case 8:
		buffer_format(
			out, "%d:%02d:%02d", 3 + seconds / 3600, seconds / 60 % 60, seconds % 60);
		break;
	case 10:
		buffer_format(out, "%02d:%02d:%06.3f", 6 + seconds / 3600, seconds / 60 % 60,
			fmod(step->end_s, 60));
		break;
	case 9:
		buffer_format(out, "%.6f", 1795675981 + step->end_s);
		break;
	default:
		fail_msg("{%.*s} is no word", (int)length, word);
	}
}

/* A line with {n}, {ms}, ... in it. */
static void put_line(struct buffer *out, const char *line, const struct planted_step *step)
{
	while (*line) {
		const size_t plain = strcspn(line, "{");
		buffer_add(out, line, plain);
		line += plain;
		if (*line == '{' &&
			line[1 + strspn(line + 1, "abcdefghijklmnopqrstuvwxyz")] == '}' &&
			line[1] != '}') {
			const size_t length = strcspn(line + 1, "}");
			put_word(out, line + 1, length, step);
			line += length + 2;
		} else if (*line) {
			buffer_add(out, line++, 1);
		}
	}
}

struct planted_log {
	const char *line;
	const char *program; /* as the note names it */
	double wait_ms;      /* 20, or 0: the lines do not say */
	double batch;        /* 0: the lines do not say */
};

static const struct planted_log planted_logs[] = {
	{"iter {n}: loss 9.0000, time {ms}ms, mfu 30.12%\n", "nanoGPT", 0, 0},
	{"step {n}| loss: 9.649529 | lr: 1.2000e-04 | norm: 9.5134  | dt: {ms}ms | tok/sec: 193189.05\n",
		"nanochat", 0, 0},
	{"\rstep {n} (14.0%) | loss: 4.123456 | lrm: 0.04 | dt: {ms}ms | tok/sec: 4,429 | mfu: 41.2% | epoch: 1 | remaining: 246s    ",
		"nanochat", 0, 0},
	{"{n}, loss: 6.516855716705322, dt: {ms}ms, tok/sec: 2838.193518032083\n", "nanochat", 0,
		0},
	{"step {n}/18865 | loss 7.577051 (+1.20z)| norm 1.1461 (+nanz)| lr 7.00e-04 | {ms} ms | 80.1% bf16 MFU | 242028 tok/s\n",
		"llm.c", 0, 0},
	{" [{date}] iteration {n}/    1000 | consumed samples:          160 | elapsed time per iteration (ms): {ms} | throughput per GPU (TFLOP/s/GPU): 120.3 | learning rate: 1.0E-04 | global batch size:    16 | lm loss: 7.4E+00 | loss scale: 8388608.0 | number of skipped iterations:   0 |\n",
		"Megatron-LM", 0, 16},
	{" iteration      {n}/  317892 | elapsed time per iteration (ms): {ms} | learning rate 1.500E-04 | lm loss 6.9E+00 |\n",
		"Megatron-LM", 0, 0},
	{"Training epoch 0, iteration {n}/249 | lr: 3.922e-06 | global_batch_size: 8 | global_step: {n} | reduced_train_loss: 1.653 | train_step_timing in s: {s} | consumed_samples: 16\n",
		"NeMo", 0, 8},
	{"steps: {n} loss: 5.5508 lm loss: 5.5103 iter time (s): {s} samples/sec: 136.706\n",
		"DeepSpeed", 0, 0},
	{"Epoch: [0][{n}/5005]\tTime  {s} ( 0.100)\tData  {w} ( 0.021)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   0.00 (  0.00)\n",
		"pytorch/examples", 20, 0},
	{"Epoch: [3][{n}/5005]\tTime {s} (0.100)\tData {w} (0.021)\tLoss 6.9 (6.9)\n",
		"pytorch/examples", 20, 0},
	{"[2026-11-26 06:53:01 swin_tiny] (main.py 190): INFO Train: [0/300][{n}/1251]\teta 1 day, 1:02:03 lr 0.000001\ttime {s} (0.1)\tloss 6.9 (6.9)\tmem 11712MB\n",
		"pytorch/examples", 0, 0},
	{"[2022/05/01 12:00:00] ppcls INFO: [Train][Epoch 1/120][Iter: {n}/5005]lr(LinearWarmup): 0.1, top1: 0.1, loss: 7.0, batch_cost: {s}s, reader_cost: {w}, ips: 640 images/s\n",
		"PaddlePaddle", 20, 0},
	{"[05/01 12:00:00] ppdet.engine INFO: Epoch: [0] [  {n}/1000] eta: 1:02:03 lr: 0.1 loss: 1.2 batch_cost: {s} data_cost: {w} ips: 35.1 images/s\n",
		"PaddlePaddle", 20, 0},
	{"completed step: {n}, seconds: {s}, TFLOP/s/device: 123.4, Tokens/s/device: 5678.9, total_weights: 4096, loss: 8.1\n",
		"MaxText", 0, 0},
	{"Epoch 1 | iter {n} step 5 | loss train: 1.2, val: n/a | iter time: {ms} ms (step) remaining time: 0:10:00\n",
		"LitGPT", 0, 0},
	{"\rtrain          Epoch   0:   10%|██▌      | {n}/625 [{clock}<01:30,  {rate}ba/s, loss/train/total=2.3]",
		"tqdm", 0, 0},
	{"      1/100      2.1G      1.2        16        640: 100%|██████████| {n}/8 [{clock}<00:00,  {rate}it/s]\n",
		"tqdm", 0, 0},
	{"\r1|10|Loss: 1.2:   1%|▏         | {n}/1000 [{clock}<20:00,  {s}s/it]", "tqdm", 0, 0},
	{"Epoch: [0]  [ {n}/5005]  eta: 1:02:03  lr: 0.1  img/s: 320.0  loss: 6.9 (6.9)  acc1: 0.0 (0.1)  time: {s}  data: {w}  max mem: 11712\n",
		"torchvision", 20, 0},
	{"Train: 0 [  {n}/10009 (  0%)]  Loss:  6.992771 (6.9921)  Time: {s}s,  1,280.65/s  (0.100s,  371.84/s)  LR: 5.000e-07  Data: {w} (0.033)\n",
		"timm", 20, 0},
	{"2021-07-15 12:00:00,123 - mmdet - INFO - Epoch [1][{n}/7330]\tlr: 1.978e-03, eta: 10:11:12, time: {s}, data_time: {w}, memory: 3800, loss: 1.2\n",
		"MMEngine or detectron2", 20, 0},
	{"02/20 14:43:11 - mmengine - INFO - Epoch(train)   [1][ {n}/3125]  lr: 1.0000e-01  eta: 6:12:01  time: {s}  data_time: {w}  memory: 214  loss: 2.0611\n",
		"MMEngine or detectron2", 20, 0},
	{"2023/10/08 11:07:07 - mmengine - INFO - Iter(train) [   {n}/15230]  lr: 3.9580e-07  eta: 2:59:41  time: {s}  data_time: {w}  memory: 18021\n",
		"MMEngine or detectron2", 20, 0},
	{"[03/12 10:00:00 d2.utils.events]:  eta: 1 day, 1:02:03  iter: {n}  total_loss: 5.5  time: {s}  last_time: 0.3  data_time: {w}  last_data_time: 0.01  lr: 0.02  max_mem: 3800M\n",
		"MMEngine or detectron2", 20, 0},
	{"{\"mode\": \"train\", \"epoch\": 1, \"iter\": {n}, \"lr\": 0.00198, \"memory\": 3800, \"data_time\": {w}, \"loss\": NaN, \"time\": {s}}\n",
		"MMEngine or detectron2", 20, 0},
	{"{\"data_time\": {w}, \"eta_seconds\": 12.3, \"iteration\": {n}, \"lr\": 0.02, \"time\": {s}, \"total_loss\": 5.5}\n",
		"MMEngine or detectron2", 20, 0},
	{"2026-11-26 06:53:01 | INFO | train_inner | epoch 001: {n} / 1131 loss=5.6, ppl=48, wps=12000, ups={rate}, wpb=5000, bsz=32, num_updates={n}, lr=0.1, gnorm=1, train_wall=43, wall=45\n",
		"fairseq", 0, 32},
	{"INFO:tensorflow:global_step/sec: {rate}\n", "TensorFlow's Estimator", 0, 0},
	{"{n}/1563 [=========>....................] - ETA: 12s {ms}ms/step - loss: 0.5456 - accuracy: 0.8655 - val_loss: 0.07\n",
		"Keras", 0, 0},
	{"\x1b[1m{n}/1563\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m5s\x1b[0m {ms}ms/step - accuracy: 0.9\b\b\b\b\b",
		"Keras", 0, 0},
	{"\r 10%|█         | {n}/500 [{clock}<00:45,  {rate}it/s, loss=0.5]", "tqdm", 0, 0},
	{"\r 10%|#         | {n}/500 [{hours}<15:10:45,  {s}s/it]", "tqdm", 0, 0},
	{"Epoch 3/9:  10%|█▌        | {n}/938 [{clock}<00:12,  {rate}it/s, v_num=0, train_loss=1.2e+3]\n",
		"tqdm", 0, 0},
	{"Epoch 0: 100% {n}/638 [{clock}<00:00,  {s}s/it, v_num=skpv]\n", "tqdm", 0, 0},
	{"Epoch 0: : {n}it [{clock}, {s}s/it, v_num=0]\r", "tqdm", 0, 0},
	{"\r 10%|█         | {n}/500 [{clock}<00:45,  {rate}batch/s]", "tqdm", 0, 0},
	{"\r 10%|█         | {n}/500 [{clock}<00:45,  {rate} steps/s]", "tqdm", 0, 0},
	{"{date} - trainer - INFO - Step {n}/1000 loss=0.5 eta 0:10:00\n", "a logger with moments",
		0, 0},
	{"11/26/2026 {time} - INFO - __main__ - step {n} loss 0.5\n", "a logger with moments", 0,
		0},
	{"[{time}] train.py:5] iteration {n}: loss 0.5, eta 0:10:00\n", "a logger with moments", 0,
		0},
	{"{time} INFO global_step={n} eta 0:10:00\n", "a logger with moments", 0, 0},
	{"I1126 {time}567 12345 train.cc:50] Iter: {n} loss 0.5\n", "a logger with moments", 0, 0},
	{"[{date}] [INFO] [timer.py:260:stop] epoch=0/micro_step=3/global_step={n}, RunningAvgSamplesPerSec=74.6, CurrSamplesPerSec=74.6\n",
		"a logger with moments", 0, 0},
};

enum { PLANTED = 31 };

static struct planted_step planted_step(int i, double *now_s)
{
	const double ms = i == 0 ? 4000 : planted_ms(i); /* the first one is slow */
	*now_s += ms / 1e3;
	return (struct planted_step){.number = i, .ms = ms, .wait_ms = 20, .end_s = *now_s};
}

static void plant_lines(struct buffer *out, const char *line, const char *between)
{
	double now_s = 0;
	for (int i = 0; i < PLANTED; i++) {
		const struct planted_step step = planted_step(i, &now_s);
		put_line(out, line, &step);
		buffer_text(out, between);
	}
	buffer_text(out, "\n");
}

static void lines_expect_planted(const struct findings *findings, const struct planted_log *log)
{
	const bool moments = strcmp(log->program, "a logger with moments") == 0;
	lines_expect(findings, FINDING_STEP_PERIOD, 100e6);
	assert_int_equal(findings->known[FINDING_STEP_PERIOD].how,
		moments ? FINDING_DERIVED : FINDING_MEASURED);
	assert_int_equal(findings->step_count, PLANTED - 1);
	assert_true(lines_note(findings, log->program));
	assert_int_equal(lines_note(findings, "1 slow step"), !moments);
	assert_false(lines_note(findings, "does not say"));
	if (log->wait_ms > 0) {
		lines_expect(findings, FINDING_STEP_WAIT, log->wait_ms * 1e6);
		lines_expect(findings, FINDING_STEP_TIME, (100 - log->wait_ms) * 1e6);
	} else {
		lines_unknown(findings, FINDING_STEP_WAIT);
		lines_unknown(findings, FINDING_STEP_TIME);
	}
	if (log->batch > 0) {
		lines_expect(findings, FINDING_BATCH_SIZE, log->batch);
		lines_expect(findings, FINDING_THROUGHPUT, 10 * log->batch);
	} else {
		lines_unknown(findings, FINDING_BATCH_SIZE);
	}
}

/* Each program's log, alone, and with what stands between its lines in real ones; and each as
 * Windows ends its lines. */
static void test_programs(void **state)
{
	static const char *const between[] = {"", "\r\n",
		"\n\x1b[31mWARNING\x1b[0m: something took 5 s (12 of 30) at 3.2 GB/s\n",
		"\nloss 1.23 accuracy 99/100\n{'loss': 0.5, 'epoch': 1.0}\n\n"};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(planted_logs); i++)
		for (size_t k = 0; k < COUNT(between); k++) {
			struct buffer text = {0};
			buffer_text(&text,
				"Namespace(eval_interval=2000, test=True)\nusing 8 workers\n");
			plant_lines(&text, planted_logs[i].line, between[k]);
			const int code = lines_of(&findings, &text, &err);
			if (code)
				fail_msg("%zu, %zu: %s", i, k, err.text);
			lines_expect_planted(&findings, &planted_logs[i]);
			findings_close(&findings);
			buffer_release(&text);
		}
}

/* Each program of the table has a log above, and its name in the help. */
static void test_all_programs(void **state)
{
	(void)state;
	for (const struct step_shape *shape = step_shapes; shape->name; shape++) {
		bool planted = shape->whole; /* test_whole_runs */
		for (size_t i = 0; i < COUNT(planted_logs); i++)
			planted = planted || strcmp(planted_logs[i].program, shape->name) == 0;
		if (!planted)
			fail_msg("%s has no log here", shape->name);
		if (!strstr(command_fit.description, shape->name))
			fail_msg("the help of mlbench fit does not name %s", shape->name);
	}
}

/* Lines of an evaluation are no steps. */
static void test_evaluation_lines(void **state)
{
	static const char *const lines[][2] = {
		{"Epoch: [0][{n}/5005]\tTime  {s} ( 0.100)\tData  {w} ( 0.021)\tLoss 6.9 (6.9)\n",
			"Test: [ {n}/782]\tTime  0.900 ( 0.900)\tLoss 6.9 (6.9)\n"},
		{"Train: 0 [  {n}/10009 (  0%)]  Loss: 6.99 (6.99)  Time: {s}s,  405.65/s  (0.344s,  371.84/s)  LR: 5.000e-07  Data: {w} (0.033)\n",
			"Test: [  {n}/30]  Time: 6.593 (6.593)  Loss:   6.723 ( 6.723)\n"},
		{"INFO - Epoch(train) [1][ {n}/3125]  lr: 1.0  eta: 6:12:01  time: {s}  data_time: {w}\n",
			"INFO - Epoch(val) [1][ {n}/13]    eta: 0:00:00  time: 0.9  data_time: 0.8\n"},
		{"Epoch 0:  10%|█████                                   | {n}/938 [{clock}<00:12,  {rate}it/s]\n",
			"Validation DataLoader 0:  81%|█████████████          | {n}/62 [01:37<00:23,  1.95s/it]\n"},
		{"Train:  10%|█ | {n}/938 [{clock}<00:12,  {rate}it/s]\n",
			"Epoch 1/9 [val]:  81%|██ | {n}/62 [01:37<00:23,  1.95s/it]\n"},
		/* told apart by how long the loop is */
		{" 10%|█ | {n}/938 [{clock}<00:12,  {rate}it/s]\n",
			" 10%|█ | {n}/62 [01:37<00:23,  1.95s/it]\n"},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct buffer text = {0};
		double now_s = 0;
		for (int n = 0; n < PLANTED; n++) {
			const struct planted_step step = planted_step(n, &now_s);
			put_line(&text, lines[i][0], &step);
			if (n % 2)
				put_line(&text, lines[i][1], &step);
		}
		assert_int_equal(lines_of(&findings, &text, &err), 0);
		lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
		assert_int_equal(findings.step_count, PLANTED - 1);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* The step behind an evaluation has it in its time: it is left out where it is slow, and only
 * there. */
static void test_evaluations(void **state)
{
	struct findings findings;
	struct error err;
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct buffer text = {0};
		for (int i = 0; i < 60; i++) {
			const bool evaluated = i % 20 == 0;
			if (evaluated)
				buffer_format(
					&text, "step %d: train loss 10.9, val loss 10.9\n", i);
			buffer_format(&text, "iter %d: loss 9.0, time %.2fms, mfu 30.12%%\n", i,
				evaluated && slow ? 30000 : planted_ms(i));
		}
		assert_int_equal(lines_of(&findings, &text, &err), 0);
		lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
		assert_int_equal(lines_note(&findings, "behind an evaluation"), slow);
		assert_int_equal(findings.step_series, !slow);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* A line that is written every tenth step stands for ten, the first one of an epoch, which waits
 * for its loader, for one. */
static void test_epochs(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	for (int epoch = 0; epoch < 5; epoch++)
		for (int i = 0; i <= 100; i += 10)
			buffer_format(&text,
				"Epoch: [%d][%d/101]\tTime %.3f (0.1)\tData %.3f (0.1)\tLoss 6.9 (6.9)\n",
				epoch, i, i == 0 ? 3.0 : 0.1, i == 0 ? 2.5 : 0.02);
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	/* the first epoch's first step is warm-up */
	lines_expect(&findings, FINDING_STEP_PERIOD, (4 * 3e9 + 500 * 0.1e9) / 504);
	lines_expect(&findings, FINDING_STEP_WAIT, (4 * 2.5e9 + 500 * 0.02e9) / 504);
	double sum = 0;
	for (size_t i = 0; i < findings.step_count; i++)
		sum += findings.step_ns[i];
	assert_true(
		fabs(sum / (double)findings.step_count - (4 * 0.5e9 + 500 * 0.08e9) / 504) < 1e5);
	assert_false(findings.step_series);
	findings_close(&findings);
	buffer_release(&text);
}

/* A job that was started again counts its steps again; what lies between the two runs is no step. */
static void test_restart(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	double now_s = 0;
	(void)state;
	for (int i = 0; i < 40; i++) {
		now_s += i == 20 ? 500 : 0.1;
		const struct planted_step step = {.number = i < 20 ? i : i - 10, .end_s = now_s};
		put_line(&text, "{date} INFO step {n} loss 0.5\n", &step);
	}
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
	assert_false(findings.step_series);
	findings_close(&findings);
	buffer_release(&text);
}

/* A bar that is drawn twice for each step, as with tqdm's set_postfix, has each step once. */
static void test_repeated_lines(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	double now_s = 0;
	(void)state;
	for (int i = 0; i < PLANTED; i++) {
		const struct planted_step step = planted_step(i, &now_s);
		put_line(&text, "\r 10%|█ | {n}/500 [{clock}<00:45, {rate}it/s]", &step);
		put_line(&text, "\r 10%|█ | {n}/500 [{clock}<00:45, {rate}it/s, loss=0.5]", &step);
	}
	buffer_text(&text, "\n");
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
	assert_int_equal(findings.step_count, PLANTED - 1);
	assert_true(findings.step_series);
	findings_close(&findings);
	buffer_release(&text);
}

/* Whole seconds suffice where steps have numbers; steps of ranks that log the same ones count once. */
static void test_whole_seconds(void **state)
{
	struct findings findings;
	struct error err;
	(void)state;
	for (int ranks = 1; ranks < 4; ranks += 2) {
		struct buffer text = {0};
		for (int i = 0; i <= 400; i++)
			for (int rank = 0; rank < ranks; rank++)
				buffer_format(&text,
					"11/26/2026 06:53:%02d - INFO - step %d loss 0.5\n", i / 10,
					i);
		assert_int_equal(lines_of(&findings, &text, &err), 0);
		lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* Time since the beginning as hours, minutes and seconds, in JSON and in a table. */
static void test_elapsed_time(void **state)
{
	static const char *const logs[][2] = {
		{"", "{\"current_steps\": %d, \"total_steps\": 1000, \"elapsed_time\": \"0:%02d:%02d\", \"remaining_time\": \"1:00:00\"}\n"},
		{"step,time\n", "%d,00:%02d:%02d\n"}};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t k = 0; k < COUNT(logs); k++) {
		struct buffer text = {0};
		buffer_text(&text, logs[k][0]);
		for (int i = 0; i < 60; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			buffer_format(&text, logs[k][1], 10 * i, 2 * i / 60, 2 * i % 60);
#pragma GCC diagnostic pop
		}
		assert_int_equal(lines_of(&findings, &text, &err), 0);
		lines_expect(&findings, FINDING_STEP_PERIOD, 200e6);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* A table says itself which rows are of an evaluation. */
static void test_phases(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	double now_s = 1795675981;
	(void)state;
	buffer_text(&text, "phase,step,timestamp\n");
	for (int i = 0; i < 60; i++) {
		now_s += i % 20 == 19 ? 30 : 0.1;
		buffer_format(
			&text, "%s,%d,%.3f\n", i % 20 == 18 ? "eval" : "train", i - i / 20, now_s);
	}
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
	assert_true(lines_note(&findings, "behind an evaluation"));
	findings_close(&findings);
	buffer_release(&text);
}

/* Ranks that write to one log: the slowest one counts. */
static void test_ranks(void **state)
{
	static const char *const marks[] = {
		"[rank{rank}]: iter {n}: loss 9.0, time {ms}ms, mfu 3%\n",
		"[default{rank}]:iter {n}: loss 9.0, time {ms}ms, mfu 3%\n",
		"{rank}: iter {n}: loss 9.0, time {ms}ms, mfu 3%\n",
		"[Rank {rank}] iter {n}: loss 9.0, time {ms}ms, mfu 3%\n",
		"INFO rank={rank} iter {n}: loss 9.0, time {ms}ms, mfu 3%\n",
		"{\"rank\": {rank}, \"step\": {n}, \"step_time_ms\": {ms}}\n",
		"{date} [rank{rank}] INFO step {n}: loss 0.5\n"};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(marks); i++) {
		struct buffer text = {0};
		for (int n = 0; n < 30; n++)
			for (int rank = 0; rank < 4; rank++) {
				const double ms = rank == 2 ? 150 : 100;
				const struct planted_step step = {
					.number = n, .ms = ms, .rank = rank, .end_s = n * ms / 1e3};
				put_line(&text, marks[i], &step);
			}
		if (lines_of(&findings, &text, &err))
			fail_msg("%zu: %s", i, err.text);
		lines_expect(&findings, FINDING_STEP_PERIOD, 150e6);
		lines_expect(&findings, FINDING_RANKS, 4);
		assert_int_equal(findings.known[FINDING_RANKS].how, FINDING_ASSUMED);
		assert_true(lines_note(&findings, "4 ranks: the steps of rank 2 count"));
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* A column of ranks is one; whose the samples per second are is not known then. */
static void test_rank_column(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	buffer_text(&text, "rank,step,step_time_ms,images/s\n");
	for (int n = 0; n < 20; n++)
		buffer_format(&text, "0,%d,100,320\n1,%d,150,213.3\n", n, n);
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	lines_expect(&findings, FINDING_STEP_PERIOD, 150e6);
	assert_int_equal(findings.step_count, 20);
	assert_true(findings.step_series);
	lines_unknown(&findings, FINDING_THROUGHPUT);
	assert_true(lines_note(&findings, "those of a rank or of all"));
	findings_close(&findings);
	buffer_release(&text);
}

/* --- whole runs, and JSON --------------------------------------------------------------------- */

/* trainer_state.json of transformers, which has no times but for the whole run: 60.2 s for the 600
 * steps that were done of 1200. */
static void test_whole_runs(void **state)
{
	static const struct {
		const char *end;
		double period_ms, batch;
	} runs[] = {
		{"{\"epoch\": 1.0, \"step\": 600, \"train_loss\": 1.0, \"train_runtime\": 60.2, \"train_samples_per_second\": 318.9, \"train_steps_per_second\": 9.966}",
			100.3333, 32},
		/* it was stopped early: its rates are of the steps that were planned */
		{"{\"step\": 600, \"train_runtime\": 60.2, \"train_samples_per_second\": 637.9, \"train_steps_per_second\": 19.934}",
			100.3333, 32},
		/* evaluations are in its time */
		{"{\"step\": 300, \"eval_runtime\": 15.0, \"eval_steps_per_second\": 40},\n{\"step\": 600, \"eval_runtime\": 15.2},\n"
		 "{\"step\": 600, \"train_runtime\": 90.4, \"train_samples_per_second\": 212.4, \"train_steps_per_second\": 6.637}",
			100.3333, 32},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(runs); i++)
		for (int flat = 0; flat < 2; flat++) {
			struct buffer text = {0};
			buffer_text(&text,
				"{\n \"best_metric\": null,\n \"global_step\": 600,\n \"log_history\": [\n");
			for (int step = 10; step <= 600; step += 10)
				buffer_format(&text,
					"  {\n   \"epoch\": 0.5,\n   \"grad_norm\": NaN,\n   \"loss\": 2.0,\n   \"step\": %d\n  },\n",
					step);
			buffer_format(&text,
				"%s\n ],\n \"max_steps\": 600,\n \"train_batch_size\": 4\n}",
				runs[i].end);
			for (size_t c = 0; flat && c < text.size; c++)
				if (text.data[c] == '\n')
					text.data[c] = ' ';
			if (flat)
				buffer_text(&text, "\n");
			if (lines_of(&findings, &text, &err))
				fail_msg("%zu, %d: %s", i, flat, err.text);
			lines_expect(&findings, FINDING_STEP_PERIOD, runs[i].period_ms * 1e6);
			lines_expect(&findings, FINDING_BATCH_SIZE, runs[i].batch);
			lines_expect(&findings, FINDING_THROUGHPUT,
				runs[i].batch * 1e3 / runs[i].period_ms);
			assert_true(lines_note(&findings, "mean of the whole run"));
			findings_close(&findings);
			buffer_release(&text);
		}
	/* what it prints */
	struct buffer text = {0};
	buffer_text(&text,
		"{'loss': 0.2234, 'grad_norm': 2.37, 'learning_rate': 2e-07, 'epoch': 3.19}\n"
		"{'train_runtime': 44.055, 'train_samples_per_second': 320.0, 'train_steps_per_second': 10.0, 'train_loss': 0.38, 'epoch': 3.19}\n");
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
	lines_expect(&findings, FINDING_BATCH_SIZE, 32);
	findings_close(&findings);
	buffer_release(&text);
}

/* Of a checkpoint's trainer_state.json: it has no times yet. */
static void test_no_times(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	buffer_text(&text,
		"{\n \"log_history\": [\n  {\"loss\": 2.0, \"step\": 10},\n  {\"loss\": 1.9, \"step\": 20}\n ]\n}\n");
	assert_int_equal(lines_of(&findings, &text, &err), -ENOMSG);
	assert_non_null(strstr(err.text, "step times"));
	findings_close(&findings);
	buffer_release(&text);
}

static void test_json(void **state)
{
	static const struct {
		const char *head, *line, *tail;
		double wait_ms, batch;
	} logs[] = {
		{"", "{\"step\": {n}, \"step_time_ms\": {ms}, \"loss\": NaN, \"data_time_ms\": 20.0, \"batch_size\": 64}\n",
			"", 20, 64},
		{"", "{\"_step\": {n}, \"_timestamp\": {epoch}, \"train/step_time\": \"{s} s\", \"grad\": -Infinity, \"note\": \"a \\x1b[31m \\q\"}\n",
			"", 0, 0},
		{"", "{\"event\": \"epoch\"}\n{\"global_step\": {n}, \"perf\": {\"step_time_s\": {s}, \"data_time_s\": 0.02}}\n",
			"", 20, 0},
		{"DLLL {\"type\": \"PARAMETER\", \"data\": {\"epochs\": 3}}\n",
			"DLLL {\"timestamp\": \"1\", \"elapsedtime\": \"3\", \"type\": \"LOG\", \"step\": [0, {n}], \"data\": {\"train.step_time_ms\": {ms}}}\n",
			"", 0, 0},
		{"", "{\"split\": \"val\", \"step\": 1, \"step_time_ms\": 900}\n{\"split\": \"train\", \"step\": {n}, \"step_time_ms\": {ms}}\n",
			"", 0, 0},
		{"[\n", " {\n  \"step\": {n},\n  \"iter_time_ms\": {ms}\n },\n", " {}\n]\n", 0, 0},
		{"{\"history\": [\n", "{\"step\": {n}, \"it/s\": {rate}},\n", "{}]}\n", 0, 0},
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(logs); i++) {
		struct buffer text = {0};
		double now_s = 0;
		buffer_text(&text, logs[i].head);
		for (int n = 0; n < PLANTED; n++) {
			const struct planted_step step = planted_step(n, &now_s);
			put_line(&text, logs[i].line, &step);
		}
		buffer_text(&text, logs[i].tail);
		if (lines_of(&findings, &text, &err))
			fail_msg("%zu: %s", i, err.text);
		lines_expect(&findings, FINDING_STEP_PERIOD, 100e6);
		assert_int_equal(findings.step_count, PLANTED - 1);
		assert_true(findings.step_series);
		if (logs[i].wait_ms > 0)
			lines_expect(&findings, FINDING_STEP_WAIT, logs[i].wait_ms * 1e6);
		if (logs[i].batch > 0)
			lines_expect(&findings, FINDING_BATCH_SIZE, logs[i].batch);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* --- what is no log --------------------------------------------------------------------------- */

static void test_no_logs(void **state)
{
	static const char *const lines[] = {
		"def train(iter): # time 5 ms\n",
		"- iteration: describe the step, 5 of 7\n",
		"drwxr-xr-x 2 user user 4096 Nov 26 06:53 data/step_5\n",
		"data/train/n01440764/n01440764_10026.JPEG\n",
		"2026-11-26 06:53:01,123 INFO copied 5/7 files\n",
		"a\tb\n",
		"Test: [ 1/782]\tTime  0.900 ( 0.900)\n",
		"{\"timestamp\": \"2026-11-26T06:53:01.123Z\", \"event\": \"request\"}\n",
		"100%|██████████| 5000/5000 [00:01<00:00, 3000 examples/s]\n",
	};
	struct findings findings;
	struct error err;
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct buffer text = {0};
		for (int n = 0; n < 10; n++)
			buffer_text(&text, lines[i]);
		const int code = lines_of(&findings, &text, &err);
		if (code != -ENOMSG && code != -EINVAL)
			fail_msg("%zu is a log: %d", i, code);
		findings_close(&findings);
		buffer_release(&text);
	}
}

/* Lines longer than any of a log, and bytes that are no text, are passed over. */
static void test_long_lines(void **state)
{
	struct buffer text = {0};
	struct findings findings;
	struct error err;
	(void)state;
	for (int n = 0; n < 40; n++) {
		buffer_format(&text, "iter %d: loss 9.0, time %.2fms, mfu 3%%\n", n, planted_ms(n));
		for (int k = 0; n % 13 == 5 && k < 20000; k++)
			buffer_text(&text, "iter 5: time 9000ms ");
		if (n % 13 == 5)
			buffer_text(&text, "\n");
		buffer_add(&text, "\0iter 7: loss 9.0, time 900ms\n", 30);
	}
	assert_int_equal(lines_of(&findings, &text, &err), 0);
	assert_int_equal(findings.step_count, 40);
	lines_expect(&findings, FINDING_STEP_PERIOD, 99.75e6);
	findings_close(&findings);
	buffer_release(&text);
}

static int lines_prepare(void **state)
{
	(void)state;
	return mkdtemp(work_folder) ? 0 : -1;
}

static int lines_remove(void **state)
{
	struct error err;
	(void)state;
	return files_remove_tree(work_folder, &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_all_programs),
		cmocka_unit_test(test_evaluation_lines),
		cmocka_unit_test(test_evaluations),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_repeated_lines),
		cmocka_unit_test(test_whole_seconds),
		cmocka_unit_test(test_elapsed_time),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_rank_column),
		cmocka_unit_test(test_whole_runs),
		cmocka_unit_test(test_no_times),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_no_logs),
		cmocka_unit_test(test_long_lines),
	};
	return cmocka_run_group_tests(tests, lines_prepare, lines_remove);
}
