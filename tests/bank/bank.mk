# The banks of planted bottlenecks: how often the diagnosis is right.  Part of the Makefile.
# BANK="--only lock,worker --seeds 5" passes options on; the score lands in results/bank/.
bank: setup-check
	@$(MAKE) --no-print-directory all
	tests/bank/bank.py $(B)/mlbench $(BANK)
bank-quick: setup-check
	@$(MAKE) --no-print-directory all
	tests/bank/bank.py $(B)/mlbench --quick --out $(B)/bank-quick $(BANK)

# Real plants: a storage in user space whose limits are known, cgroups, a shaped link, hogs.  Needs root, and packages of its own;
# begins by measuring that storage.  BANK="--half train --only quota --advice" passes options on.
REAL_TOOLS := $(B)/real/slowfs $(B)/real/hog
$(B)/real/slowfs: REAL_FLAGS = $$(pkg-config --cflags --libs fuse3) -lm
$(REAL_TOOLS): $(B)/real/%: tests/bank/real/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -O2 -g -pthread $(WARNINGS) $(if $(DEV),-Werror) -o $@ $< $(REAL_FLAGS)
real-tools: $(REAL_TOOLS)
bank-real:
	@.ci/setup build bank
	@$(MAKE) --no-print-directory all real-tools
	tests/bank/real/store_check.py $(B)/real || [ $$? -eq 3 ]
	tests/bank/real/real_bank.py $(B)/mlbench $(B)/real $(BANK)
# Jobs of ranks, by mpirun on this machine: which rank the others wait for, and why.  Needs root, too.
bank-ranks:
	@.ci/setup build bank
	@$(MAKE) --no-print-directory all real-tools
	tests/bank/ranks.py $(B)/mlbench $(B)/real $(BANK)
# Real jobs (PyTorch and others) whose truth stands in their own files: what observe, fit and the twin make of them.  Some need root;
# python = venv ones need `make jobs-venv`.  BANK="--half held --seed 37", BANK="--jobs flock", BANK=--truth pass options on.
bank-jobs:
	@.ci/setup build bank
	@$(MAKE) --no-print-directory all
	tests/jobs/bank/score.py $(B)/mlbench $(BANK)
# The frameworks that Debian has not got or has too old, by name alone: current releases, some gigabytes, in build/jobs-venv.
# They are installed one after another: together they leave pip no end of versions to try.
JOBS_MODULES := torch torchvision lightning webdataset datasets litdata spdl spdl-io tensorflow-cpu grain nvidia-dali-cuda120 mpi4py h5py
jobs-venv:
	@[ -x build/jobs-venv/bin/python ] || python3 -m venv build/jobs-venv
	@for name in $(JOBS_MODULES); do build/jobs-venv/bin/python -m pip install --quiet --no-input $$name || exit 1; done

# The public cases of configs/cases/: cause, decoys and fixes, quiet and beside one busy core; about a minute and a half for each
# of both.  BANK="--only few_workers --blocks 2 --page docs/CASES.md" passes options on.
bank-cases: setup-check
	@$(MAKE) --no-print-directory all
	@mkdir -p results/bank
	tests/bank/cases.py $(B)/mlbench --out results/bank/cases.json $(BANK)
