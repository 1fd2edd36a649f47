# The labs by experiment, on this machine: minutes each, so not part of `make check`.  LABS="--seeds 1 configs/labs/03_queue.ini" passes
# options and files on.
LABS ?= --seeds 3 $(wildcard configs/labs/*.ini)
# tests/labs/count.py counts what was printed, as the table of docs/workshop/TRIED.md.
labs: setup-check
	@$(MAKE) --no-print-directory all
	tests/labs/both_ends.py --mlbench $(B)/mlbench $(LABS)
labs-plain: setup-check
	@$(MAKE) --no-print-directory all
	tests/labs/trial.py --mlbench $(B)/mlbench $(LABS)
