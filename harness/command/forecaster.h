/* Settings, some of them measured, and what the measured ones predict of all (harness/analyze/forecast.h):
 * keeps the calibrated models and every prediction once made. */
#ifndef MLBENCH_COMMAND_FORECASTER_H
#define MLBENCH_COMMAND_FORECASTER_H

#include "harness/analyze/forecast.h"
#include "harness/command/calibration.h"
#include "harness/record/record.h"

#include <stdbool.h>
#include <stddef.h>

enum { FORECASTER_KEYS_MAX = 2 * CONFIG_AXES_MAX };

/* A setting: a point of the record, or one that was asked for. */
struct forecaster_item {
	struct config config;
	struct calibration calibration;
	bool calibrated;
	struct error why_not; /* why it is not, where it was tried */
	int why_code;
	struct forecaster_guess *guesses; /* (room), by item; NULL before the first; owned */
};

struct forecaster {
	const struct record *record;
	double contention; /* between cores; NAN: not known */
	unsigned effort;   /* of a prediction, as in model.h */
	size_t nearest;    /* calibrations of a forecast (forecast.h); 0: as many as ever */
	/* Of replay_samples_done: from then on errors of measured points are known well enough; 0: never */
	uint64_t samples_most;
	struct forecaster_item *items; /* (count) */
	size_t count, room;
	enum key_id keys[FORECASTER_KEYS_MAX]; /* that differ among the items */
	size_t key_count;
	double *at;       /* (room, FORECASTER_KEYS_MAX) */
	double *measured; /* (room); NAN */
	bool *calibrated; /* (room) */
	bool is_choice[FORECASTER_KEYS_MAX];
};

/* room: items at most. */
int forecaster_open(struct forecaster *forecaster, const struct record *record, size_t room,
	unsigned effort, struct error *err);
void forecaster_close(struct forecaster *forecaster); /* safe on {0} */

/* Adds a setting (copied), which gets the next number. */
int forecaster_add(struct forecaster *forecaster, const struct config *config, struct error *err);

/* The keys that tell settings apart; before the first forecast. */
void forecaster_take_key(struct forecaster *forecaster, enum key_id key);
/* Where each setting is, once all are added. */
void forecaster_place(struct forecaster *forecaster);

/* Item `item` is this point of the record: its median and, if it can be, its calibration.  The reason why
 * it cannot be calibrated is in the item; the result is of what is broken (-ENOMEM). */
int forecaster_calibrate(
	struct forecaster *forecaster, size_t item, size_t point, struct error *err);

/* Where the settings are; borrows from the forecaster. */
struct forecast_space forecaster_space(const struct forecaster *forecaster);
/* The stage that binds by the wait states of the replay of `to` from calibration `from`, once that was
 * predicted; "" before. */
const char *forecaster_limit(const struct forecaster *forecaster, size_t from, size_t to);
/* To be given to forecast_point and the like, as long as the forecaster lives. */
struct forecast_input forecaster_input(struct forecaster *forecaster);

#endif
