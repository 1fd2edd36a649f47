# Installing, and tarballs that run on other systems.  Part of the Makefile.
install: all man $(COMPLETIONS)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 \
	        $(DESTDIR)$(PREFIX)/share/mlbench/configs/emulated
	install -m 755 $(B)/mlbench $(DESTDIR)$(PREFIX)/bin/mlbench
	$(if $(and $(CUDA_NVCC),$(PLUGIN)),install -d $(DESTDIR)$(PREFIX)/lib/mlbench)
	$(if $(and $(CUDA_NVCC),$(PLUGIN)),install -m 755 $(B)/libmlbench-cuda.so $(DESTDIR)$(PREFIX)/lib/mlbench/)
	$(if $(MPI_PLUGIN),install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/mlbench $(MPI_PLUGIN))
	install -m 644 $(B)/man/mlbench.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(B)/man/mlbench.ini.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -m 644 configs/*.ini $(DESTDIR)$(PREFIX)/share/mlbench/configs/
	install -m 644 configs/emulated/*.ini $(DESTDIR)$(PREFIX)/share/mlbench/configs/emulated/
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/mlbench/configs/accept configs/accept/*.ini
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/mlbench/configs/cases configs/cases/*.ini
	$(if $(wildcard configs/labs/*.ini),install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/mlbench/configs/labs $(wildcard configs/labs/*.ini))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/mlbench/configs/accept/integration $(wildcard configs/accept/integration/*)
	chmod 755 $(DESTDIR)$(PREFIX)/share/mlbench/configs/accept/integration/*.sh
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench README.md LICENSE
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs $(wildcard docs/*.*)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs/prometheus $(wildcard docs/prometheus/*)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs/cluster $(wildcard docs/cluster/*)
	cp -r docs/workshop $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs/
	install -D -m 644 $(B)/completion/bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mlbench
	install -D -m 644 $(B)/completion/zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_mlbench
	install -D -m 644 $(B)/completion/fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/mlbench.fish

# Everything beside glibc, libgcc_s and the CUDA libraries travels in lib/; DT_RPATH (not RUNPATH) holds for libraries' libraries
# too.  .ci/old_glibc.py has all of it run on glibc 2.28; the program names libpthread, libdl and librt, which were
# libraries of their own then.  The programs that tests/device/run.sh runs where there is a device are a tarball of their own,
# which unpacks into the same folder.
DIST := mlbench-$(VERSION)-linux-$(shell uname -m)
DIST_B := $(B)/dist/$(DIST)
DIST_PLUGIN := $(if $(and $(CUDA_NVCC),$(PLUGIN)),$(PLUGIN))
DIST_PROGRAMS := $(if $(DIST_PLUGIN),$(DEVICE_TESTS) $(DEVICE_BENCHES:%=$(B)/device/%))
DIST_LEVEL ?= 6
DIST_OUT ?= build/dist
DIST_BLAS := $(OPENBLAS_DIR)/libopenblas.so.0
NODES_OWN := libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libcuda|libcudart|libcublas|libcublasLt|libnccl
OLD_PARTS = $(foreach library,pthread.so.0 dl.so.2 rt.so.1,$(shell $(CC) -print-file-name=lib$(library)))
pack = mkdir -p $(DIST_OUT) && tar -C $(B)/dist -I 'xz -T0 -$(DIST_LEVEL)' -cf $(DIST_OUT)/$1.tar.xz $(DIST) && echo $(DIST_OUT)/$1.tar.xz
libraries_of = ldd $1 | awk '$$3 ~ /^\// && $$1 !~ /^($(NODES_OWN))\.so/ { print $$3 }' | sort -u | xargs -I{} install -m 644 {} $2
OLD_GLIBC := $(B)/dist/old_glibc.o
OLD_LDFLAGS = $$(.ci/old_glibc.py --exports) -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/../lib'
$(OLD_GLIBC): .ci/old_glibc.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE $(WARNINGS) -O2 -c -o $@ $<
dist: all man $(COMPLETIONS) $(DIST_PLUGIN) $(OLD_GLIBC)
	rm -rf $(DIST_B)
	install -d $(DIST_B)/bin $(DIST_B)/lib $(DIST_B)/man $(DIST_B)/completion
	$(CC) $(LDFLAGS_ALL) $(OLD_LDFLAGS) -Wl,-S -o $(DIST_B)/bin/mlbench $(B)/harness/main.o $(OLD_GLIBC) $(LIBRARIES) $(LIBS) -Wl,--no-as-needed $(OLD_PARTS)
	@$(call libraries_of,$(B)/mlbench $(DIST_BLAS),$(DIST_B)/lib/)
	install -m 644 $(DIST_BLAS) $(DIST_B)/lib/
	$(if $(DIST_PLUGIN),install -D -m 644 -t $(DIST_B)/lib/mlbench $(PLUGIN))
	.ci/old_glibc.py $(DIST_B)/bin/mlbench $(DIST_B)/lib/*.so* $(if $(DIST_PLUGIN),$(DIST_B)/lib/mlbench/*.so)
	cp -r configs docs README.md LICENSE $(DIST_B)/
	cp $(B)/man/* $(DIST_B)/man/
	cp $(COMPLETIONS) $(DIST_B)/completion/
	@$(call pack,$(DIST))
dist-device: device $(OLD_GLIBC)
	rm -rf $(DIST_B)
	install -d $(DIST_B)/device $(DIST_B)/tests/device $(DIST_B)/tests/bank
	$(if $(DIST_PROGRAMS),,@echo 'dist-device: $(or $(CUDA_WHY),CUDA=$(CUDA)): there is nothing to pack' >&2; false)
	$(Q)$(foreach program,$(DIST_PROGRAMS),$(CC) $(LDFLAGS_ALL) $(OLD_LDFLAGS) -s -o $(DIST_B)/device/$(notdir $(program)) $(program).o \
	        $(if $(filter bench_%,$(notdir $(program))),$(B)/device/device_bench.o) $(OLD_GLIBC) $(B)/pic/plugin.a $(LIBRARIES) \
	        $(CUDA_LIBS) $(LIBS) -lcmocka -Wl$(comma)--no-as-needed $(OLD_PARTS) && ) true
	install -d $(DIST_B)/lib
	@$(call libraries_of,$(DIST_PROGRAMS),$(DIST_B)/lib/)
	.ci/old_glibc.py $(DIST_B)/device/* $(DIST_B)/lib/*.so*
	cp tests/device/run.sh tests/device/judge.py $(DIST_B)/tests/device/
	cp tests/bank/*.py $(DIST_B)/tests/bank/
	@$(call pack,$(DIST)-device)
