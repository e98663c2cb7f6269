# SPDX-License-Identifier: Apache-2.0
# Everything a person types; meson does the building. Each step installs the packages it needs, once.
DATA_DIR ?= $(CURDIR)/build/data
FUZZ_SECONDS ?= 60
RELEASE = -Dbuildtype=release -Dhardened=true
DEV = -Dbuildtype=debug -Db_sanitize=address,undefined -Dtests=true
TSAN = -Dbuildtype=debugoptimized -Db_sanitize=thread
CLANG = -Dbuildtype=debug -Dtests=true
# Links beside each other, however deep the tree that they are built in.
PROGRAMS = server/seth agent/program/seth-agent agent/fleet/seth-fleet
LINK_PROGRAMS = for p in $(PROGRAMS); do ln -sf $$p build/release/; done

.PHONY: build run demo test bench fuzz install format check-format clean packages

build: packages-build
	@test -f build/release/build.ninja || meson setup build/release $(RELEASE) >/dev/null
	@ninja -C build/release $(PROGRAMS)
	@$(LINK_PROGRAMS)

# The server on its embedded store; kubectl finds it through the kubeconfig that is printed.
run: build
	@echo "kubeconfig: $(DATA_DIR)/admin.kubeconfig"
	@build/release/seth server --data-dir $(DATA_DIR)

# A server, a device in a network namespace, an application that runs there; takes root.
demo: build packages-demo
	@tools/demo $(DEMO)

test: packages-build packages-test
	@test -f build/dev/build.ninja || meson setup build/dev $(DEV) >/dev/null
	@test -f build/tsan/build.ninja || meson setup build/tsan $(TSAN) >/dev/null
	@test -f build/clang/build.ninja || CC=clang meson setup build/clang $(CLANG) >/dev/null
	@test -f build/release/build.ninja || meson setup build/release $(RELEASE) >/dev/null
	@ninja -C build/dev
	@ninja -C build/clang
	@ninja -C build/tsan server/seth
	@ninja -C build/release $(PROGRAMS)
	@$(LINK_PROGRAMS)
	@tests/run

bench: packages-build packages-bench build
	@test -f build/bench/build.ninja || meson setup build/bench $(RELEASE) -Dbench=true >/dev/null
	@ninja -C build/bench bench/load bench/list bench/store_bench bench/authorize bench/make_devices bench/telemetry bench/compose
	@bench/run

fuzz: packages-build packages-fuzz
	@test -f build/fuzz/build.ninja || CC=clang meson setup build/fuzz -Dbuildtype=debugoptimized -Dfuzz=true \
	  -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@ninja -C build/fuzz
	@tools/fuzz $(FUZZ_SECONDS)

# For packages: make install DESTDIR=/somewhere PREFIX=/usr
PREFIX ?= /usr/local
install: build
	@install -D -m 0755 build/release/server/seth $(DESTDIR)$(PREFIX)/bin/seth
	@install -D -m 0755 build/release/agent/program/seth-agent $(DESTDIR)$(PREFIX)/bin/seth-agent
	@install -D -m 0755 build/release/agent/fleet/seth-fleet $(DESTDIR)$(PREFIX)/bin/seth-fleet
	@install -D -m 0644 packaging/seth.bash-completion $(DESTDIR)$(PREFIX)/share/bash-completion/completions/seth
	@ln -sf seth $(DESTDIR)$(PREFIX)/share/bash-completion/completions/seth-agent
	@install -d $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)/lib/systemd/system
	@build/release/seth man > $(DESTDIR)$(PREFIX)/share/man/man8/seth.8
	@build/release/seth-agent man > $(DESTDIR)$(PREFIX)/share/man/man8/seth-agent.8
	@sed 's,/usr/bin/seth,$(PREFIX)/bin/seth,' packaging/seth.service > $(DESTDIR)/lib/systemd/system/seth.service
	@sed 's,/usr/bin/seth-agent,$(PREFIX)/bin/seth-agent,' packaging/seth-agent.service > $(DESTDIR)/lib/systemd/system/seth-agent.service
	@test -e $(DESTDIR)/etc/seth-agent/seth-agent.yaml || install -D -m 0640 packaging/seth-agent.yaml $(DESTDIR)/etc/seth-agent/seth-agent.yaml
	@test -e $(DESTDIR)/etc/seth/seth.yaml || install -D -m 0640 packaging/seth.yaml $(DESTDIR)/etc/seth/seth.yaml

format: packages-format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build/release build/dev build/tsan build/clang build/fuzz build/bench

packages-%:
	@tools/install-packages $*
