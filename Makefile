# mlbench: two commands do everything on a fresh Debian 12 machine.
#   make sweep     set up, build, generate the data set, run the main job
#   make check     set up, build, run every test
# The others: make, make install PREFIX=, dist, bench, format, lint, clean; DEV=1, SAN=address,undefined, SAN=thread.

VERSION := 0.1.0
CC ?= gcc
PREFIX ?= /usr/local
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

# --- variants: each builds into a folder of its own ---------------------------------------------
comma := ,
VARIANT := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),$(if $(DEV),dev,release))$(if $(filter clang%,$(notdir $(CC))),-clang)
B := build/$(VARIANT)

PACKAGES := liburing libpng libjpeg inih jansson hwloc openblas libdeflate libisal libxxhash
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wformat=2 -Wnull-dereference
OPTIMISE := -O3 -g -fno-math-errno -ffp-contract=off
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE -DMLBENCH_VERSION='"$(VERSION)"' -I. -fopenmp -pthread $(WARNINGS) \
              $(PKG_CFLAGS) -fno-omit-frame-pointer
LDFLAGS_ALL := -fopenmp -pthread
ifdef SAN
  OPTIMISE := -O1 -g
  CFLAGS_ALL += -fsanitize=$(SAN) -fno-sanitize-recover=all
  LDFLAGS_ALL += -fsanitize=$(SAN)
endif
ifdef DEV
  CFLAGS_ALL += -Werror
endif
CFLAGS_ALL += $(OPTIMISE) $(CFLAGS)
LIBS := $(PKG_LIBS) -lz -lm -ldl

# --- sources: every .c of the three folders; main.c apart, so that tests link the rest ------------
SOURCES := $(sort $(wildcard harness/*/*.c workloads/*/*.c pipelines/*.c))
OBJECTS := $(SOURCES:%.c=$(B)/%.o)
TEST_SOURCES := $(sort $(wildcard tests/unit/test_*.c))
TESTS := $(TEST_SOURCES:tests/unit/%.c=$(B)/tests/%)
BENCH_SOURCES := $(sort $(wildcard tests/bench/bench_*.c))
BENCHES := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)

all: $(B)/mlbench

$(B)/libmlbench.a: $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

$(B)/mlbench: $(B)/harness/main.o $(B)/libmlbench.a
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Unit tests: one cmocka program per file; `make unit-NAME` builds and runs one.
$(B)/tests/%: tests/unit/%.c $(B)/libmlbench.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libmlbench.a $(LIBS) -lcmocka

unit-%: $(B)/tests/test_%
	$<

$(B)/bench/%: tests/bench/%.c $(B)/libmlbench.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libmlbench.a $(LIBS)

unit-tests: $(TESTS)
benches: $(BENCHES)

clean:
	rm -rf build

.PHONY: all clean unit-tests benches
.SECONDARY:

-include $(OBJECTS:.o=.d) $(B)/harness/main.d $(TESTS:=.d) $(BENCHES:=.d)
