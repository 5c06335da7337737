# Targets for developers and CI. `make help` lists them. Everything also builds with Cargo alone.

PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
BINDIR = $(DESTDIR)$(PREFIX)/bin
DATADIR = $(DESTDIR)$(PREFIX)/share
MANDIR = $(DATADIR)/man
DOCDIR = $(DATADIR)/doc/blkhash
BASHDIR = $(DATADIR)/bash-completion/completions
ZSHDIR = $(DATADIR)/zsh/site-functions
FISHDIR = $(DATADIR)/fish/vendor_completions.d
UNITDIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
SYSUSERSDIR = $(DESTDIR)$(PREFIX)/lib/sysusers.d

# Files to install with the C library.
PROGRAMS = blksum blkhash blkcopy
PAGES = $(wildcard man/*.1 man/*.3)
DOCS = README.md SECURITY.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(wildcard docs/*.md docs/*/*.md docs/*/*/*.md)

CARGO ?= cargo
PYTHON = .venv/bin/python
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
WHEELS = $(TARGET_DIR)/wheels
CAPI_ROOT = $(abspath $(TARGET_DIR))/capi-root
DIGESTS ?= sha256 blake2b512 blake3
FUZZ_SECONDS ?= 60
PYTEST_ARGS ?=
# More than the processors of a small machine: tests wait for programs and devices a third of their time.
PYTEST_WORKERS ?= 3
BENCH_ARGS ?=
RECORD ?= $(TARGET_DIR)/record
PACKAGES ?= $(TARGET_DIR)/packages
QEMU_TOOLS ?= $(TARGET_DIR)/qemu-tools
RELEASE ?= $(TARGET_DIR)/release-packages

# $(call run_steps,TARGET...): runs targets, also after one that failed, with home and cache folders that are empty at first
run_steps = scripts/empty-caches $(TARGET_DIR)/caches scripts/run-steps $(1)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: capi ## Build the release binaries and the C libraries
	$(CARGO) build --release --workspace --exclude blkhash-capi --exclude blksum-capi --exclude blkhash-python

# A panic must not pass into C, so the profile unwinds and the library catches it.
.PHONY: capi
capi: ## Build libblkhash and libblksum
	$(CARGO) build --profile capi -p blkhash-capi
	$(CARGO) build --profile capi -p blksum-capi

# The profile is in python/pyproject.toml. A second run builds nothing.
.PHONY: wheel
wheel: ## Build the Python package
	rm -rf $(WHEELS)
	$(PYTHON) -m maturin build -q -m python/Cargo.toml --out $(WHEELS)

.PHONY: setup
setup: ## Install what the tests need
	scripts/install-test-deps

# The steps of a tier run one after another even with -j, because they share cargo's lock and the memory.
LINTS = check-circles check-words fmt clippy
TEST = setup rust-test pytest-quick python-quick capi-test-quick go-test-quick
REST = setup packaging-deps check-rest rust-test-rest test-features build pytest-rest python-rest capi-test go-test
ALL = setup $(LINTS) $(filter-out setup,$(TEST) $(REST)) test-without-features test-soak test-qemu test-aarch64-short check-systems \
	test-systems test-portable capi-test-tsan deb-source-test rpm-source-test

.PHONY: quick
quick: ## Formatting, lints and quick tests of Rust: needs no root, and installs nothing
	scripts/run-steps $(LINTS) rust-test

.PHONY: test
test: ## Install what the tests need, and run quick tests of every part, on a debug build
	+$(call run_steps,$(TEST))

.PHONY: test-rest
test-rest: ## Run what `make test` leaves out, on the release build
	+$(call run_steps,$(REST))

.PHONY: test-all
test-all: ## Run all tests
	+$(call run_steps,$(ALL))

.PHONY: check-circles check-words fmt clippy rust-test
check-circles:
	scripts/check-circles
check-words:
	scripts/check-words
fmt:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path bench/Cargo.toml --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings
rust-test:
	$(CARGO) test --workspace --no-fail-fast -- --show-output

.PHONY: rust-test-rest test-features test-without-features packaging-deps test-aarch64-short
rust-test-rest:
	$(CARGO) test --workspace --tests --no-fail-fast -- --show-output --ignored
test-features:
	scripts/test-features
test-without-features:
	$(CARGO) test -p blkimage -p blksum --no-default-features --lib --test pipeline
# Also what tests with a cluster of Ceph start.
packaging-deps:
	packaging/install-deps ceph-mon:ceph-mon ceph-osd:ceph-osd dnf:dnf lintian:lintian rbd:ceph-common
test-aarch64-short:
	scripts/test-emulated aarch64 --short

# Tests that fail there are listed in tests/helpers/portable.py, with the promise that is weaker.
.PHONY: test-portable
test-portable: ## `make test` on a build that knows nothing of Linux but POSIX, as a stand-in for other systems
	+BLKHASH_PORTABLE=1 RUSTFLAGS='--cfg blkhash_portable' CARGO_TARGET_DIR=$(abspath $(TARGET_DIR))/portable \
		scripts/run-steps clippy rust-test pytest-quick python-quick

.PHONY: check-systems
check-systems: ## Lints for macOS and FreeBSD
	scripts/check-systems --lints

.PHONY: test-systems
test-systems: ## Build for macOS and FreeBSD, and check what the programs need
	scripts/check-systems

.PHONY: test-aarch64 test-s390x
test-aarch64: ## Tests of a build for ARM under emulation, all of them
test-s390x: ## The same for s390x, which is big endian
test-aarch64 test-s390x: test-%:
	scripts/test-emulated $*

# `make quick` has the lints of the features that are on by default.
.PHONY: check-rest
check-rest: ## Lints of other features, and of the documentation
	$(CARGO) clippy -p blkimage --no-default-features --all-targets -- -D warnings
	$(CARGO) clippy -p blkimage --no-default-features --features nbd --all-targets -- -D warnings
	$(CARGO) clippy -p blkimage --no-default-features --features http --all-targets -- -D warnings
	$(CARGO) clippy -p blksum --no-default-features --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib

.PHONY: vectors
vectors: ## Generate test-vectors/*.json from the reference
	$(PYTHON) test-vectors/generate.py

.PHONY: vectors-check
vectors-check: ## Fail if test-vectors/*.json differ from the reference
	$(PYTHON) test-vectors/generate.py --check

.PHONY: golden
golden: build ## Write test-vectors/golden/VERSION, which later versions must read
	$(PYTHON) tests/helpers/golden.py $(TARGET_DIR)/release

# With tests, as `cargo test` has built most of it: without them, dependencies have other features.
.PHONY: debug
debug: ## Build what the quick tests test
	$(CARGO) build --workspace --lib --bins --tests

# $(call pytest,PROFILE,FOLDER,ARGUMENTS): runs the tests in a folder against the programs of a profile
pytest = BLKSUM=$(TARGET_DIR)/$(1)/blksum $(PYTHON) -m pytest $(2) -n $(PYTEST_WORKERS) --dist loadfile $(3) $(PYTEST_ARGS)
# The markers are in tests/pytest.ini.
quick_tests = -m "not slow and not soak and not release and not qemu"
rest_tests = -m "(slow or release) and not soak and not qemu"

.PHONY: install-wheel
install-wheel: wheel
	$(PYTHON) -m pip install -q --force-reinstall --no-deps --no-index $(WHEELS)/*.whl

.PHONY: pytest
pytest: install-wheel ## Whole-program tests of the built release binary, and of the Python package
	$(call pytest,release,tests)
	$(call pytest,release,python/tests)

.PHONY: pytest-quick python-quick
pytest-quick: debug ## Quick whole-program tests of the debug build
	scripts/install-python $(TARGET_DIR)/debug
	$(call pytest,debug,tests,$(quick_tests))
python-quick: debug ## Quick tests of the Python package
	scripts/install-python $(TARGET_DIR)/debug
	$(call pytest,debug,python/tests,$(quick_tests))

.PHONY: pytest-rest python-rest
pytest-rest: install-wheel ## The other whole-program tests, of the release build
	$(call pytest,release,tests,$(rest_tests))
python-rest: install-wheel ## The other tests of the Python package
	$(call pytest,release,python/tests,$(rest_tests))

.PHONY: test-soak
test-soak: build install-wheel ## Run the random tests of programs with more cases
	BLKSUM=$(TARGET_DIR)/release/blksum $(PYTHON) -m pytest tests -n $(PYTEST_WORKERS) -m soak $(PYTEST_ARGS)

# $(call install_capi,PROFILE): installs the C libraries into CAPI_ROOT
define install_capi
	rm -rf $(CAPI_ROOT)
	scripts/install-capi $(TARGET_DIR)/$(1) "" $(CAPI_ROOT) $(CAPI_ROOT)/lib
endef

.PHONY: capi-test
capi-test: capi ## Tests of libblkhash and libblksum in C, against what is installed
	$(call install_capi,capi)
	scripts/test-capi $(CAPI_ROOT)
	scripts/test-capi-images $(CAPI_ROOT) $(TARGET_DIR)/release/blksum

.PHONY: capi-test-tsan
capi-test-tsan: ## Tests of the C libraries under ThreadSanitizer
	scripts/test-capi-tsan $(TARGET_DIR)

.PHONY: capi-test-quick
capi-test-quick: debug ## The same with one compiler, of the debug build
	$(call install_capi,debug)
	scripts/test-capi $(CAPI_ROOT) --short
	scripts/test-capi-images $(CAPI_ROOT) $(TARGET_DIR)/debug/blksum --short

# Minutes, and some hundred MB in QEMU_TOOLS. A second run builds what changed.
.PHONY: test-qemu
test-qemu: build ## Build QEMU's tools from Debian's source with `qemu-img checksum`, and test it
	$(call install_capi,capi)
	PKG_CONFIG_PATH=$(CAPI_ROOT)/lib/pkgconfig contrib/qemu/build $(QEMU_TOOLS)
	BLKSUM=$(TARGET_DIR)/release/blksum QEMU_IMG_CHECKSUM=$(abspath $(QEMU_TOOLS))/build/qemu-img \
		$(PYTHON) -m pytest tests/libraries/test_qemu_img_checksum.py -m qemu $(PYTEST_ARGS)

.PHONY: go-test
go-test: ## Tests of the Go module, against the release build, where Go is installed
	scripts/test-go $(TARGET_DIR)/release

.PHONY: go-test-quick
go-test-quick: debug ## The quick ones, against the debug build
	scripts/test-go $(TARGET_DIR)/debug --short

.PHONY: packages
packages: build deb rpm tarball container ## Build packages of every kind for this machine, in PACKAGES

.PHONY: deb rpm tarball container
deb rpm container: ## Package what `make build` has built
	packaging/install-deps
	packaging/$@/build $(PACKAGES)
tarball:
	packaging/install-deps
	packaging/tar/build $(PACKAGES)

.PHONY: deb-source rpm-source deb-source-test rpm-source-test
rpm-source: ## Make the source RPM of this commit, in PACKAGES
	packaging/install-deps
	packaging/rpm/source $(PACKAGES)
deb-source: ## Make the Debian source package of this commit, in PACKAGES
	packaging/install-deps
	packaging/deb/source $(PACKAGES)
deb-source-test: deb-source ## Build it in a root of Debian testing without network
	packaging/install-deps lintian:lintian
	packaging/deb/test-source $(PACKAGES)
rpm-source-test: rpm-source ## Build it there with macros in the place of Fedora's
	packaging/rpm/test-source $(PACKAGES)

.PHONY: release
release: ## Make packages of every kind for x86-64 and ARM, the source, an SBOM and SHA256SUMS, in RELEASE
	packaging/release $(RELEASE)

.PHONY: deny
deny: ## Licences, bans, sources and, where their database can be reached, advisories
	scripts/deny

.PHONY: public-api
public-api: ## List the public items of the libraries in public-api/
	scripts/public-api

.PHONY: semver-check
semver-check: ## Find breaks of the libraries that the version does not allow, or list all since BASELINE
	scripts/semver-check $(BASELINE)

.PHONY: public-api-check
public-api-check: ## Fail if the public items differ from those in public-api/
	scripts/public-api --check

.PHONY: msrv
msrv: ## Check that the oldest supported Rust builds everything
	scripts/msrv

.PHONY: site
site: ## Build the docs as a site in target/site/html, and check its links
	scripts/site

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_SECONDS, and print what was reached
	scripts/fuzz $(FUZZ_SECONDS)

.PHONY: models
models: ## Run models of the concurrent code under many schedules
	scripts/models

.PHONY: miri
miri: ## Run tests of unsafe code under Miri
	scripts/miri

.PHONY: mutants
mutants: ## List changes of FILE that no test notices
	scripts/mutants $(FILE) $(TEST_ARGS)

.PHONY: bench
bench: ## Measure every hash and other libraries'
	scripts/install-bench-deps
	$(CARGO) run --release --manifest-path bench/Cargo.toml

.PHONY: bench-images
bench-images: build ## Measure blksum and other tools
	scripts/install-bench-deps
	scripts/bench-images $(TARGET_DIR)/release/blksum $(BENCH_ARGS)

.PHONY: bench-scaling
bench-scaling: build ## Measure how blksum scales, and what that means for more cores
	scripts/install-bench-deps
	scripts/bench-scaling $(TARGET_DIR)/release/blksum $(BENCH_ARGS)

# The programs, which run on any machine of this kind, and the command that runs them.
.PHONY: record record-programs
record-programs: ## Build what `make record` runs, in TARGET_DIR/record/programs
	$(CARGO) build --release -p blkhash-cli
	$(CARGO) build --profile capi -p blkhash-capi
	install -d $(RECORD)/programs
	install $(TARGET_DIR)/release/blksum $(TARGET_DIR)/release/blkhash $(RECORD)/programs
	$(CC) -O2 -o $(RECORD)/programs/blkhash-cases crates/capi/bench/cases.c -Icrates/capi/include \
		$(TARGET_DIR)/capi/libblkhash_capi.a -lpthread -ldl -lm
	scripts/simulate > $(RECORD)/programs/simulated
record: record-programs ## Measure the library and images in memory on 1 to all processors, as the C project does
	python3 scripts/record $(RECORD)/programs $(RECORD)/out $(BENCH_ARGS)

.PHONY: first-run
first-run: ## Build, test and measure on a system that this project does not run on, and write a report to send
	python3 scripts/first-run

.PHONY: bench-capi
bench-capi: capi ## Measure libblkhash against its kernels
	$(call install_capi,capi)
	$(CC) -O3 -march=native -o $(CAPI_ROOT)/blkhash-c-bench crates/capi/bench/bench.c -I$(CAPI_ROOT)/include \
		-L$(CAPI_ROOT)/lib -lblkhash -Wl,-rpath,$(CAPI_ROOT)/lib
	$(CAPI_ROOT)/blkhash-c-bench $(DIGESTS)

.PHONY: bench-btrfs
bench-btrfs: build ## Measure blkhash btrfs verify and btrfs check, as root
	scripts/bench-btrfs $(TARGET_DIR)/release/blkhash

.PHONY: bench-web
bench-web: build ## Measure blksum, curl and others on URLs, over wires with delays and losses, as root
	scripts/install-bench-deps
	scripts/bench-web $(TARGET_DIR)/release/blksum $(BENCH_ARGS)

# PROFILE=debug installs the programs of `cargo build`.
PROFILE ?= release

# With options that every install(1) has: Homebrew and the port of FreeBSD call this target.
.PHONY: install
install: ## Install into DESTDIR/PREFIX what `make build` has built
	install -d $(BINDIR) $(BASHDIR) $(ZSHDIR) $(FISHDIR)
	install $(PROGRAMS:%=$(TARGET_DIR)/$(PROFILE)/%) $(BINDIR)
	for page in $(PAGES); do \
		install -d $(MANDIR)/man$${page##*.} && install -m 644 $$page $(MANDIR)/man$${page##*.} || exit; \
	done
	for doc in $(DOCS); do \
		install -d $$(dirname $(DOCDIR)/$$doc) && install -m 644 $$doc $(DOCDIR)/$$doc || exit; \
	done
	for name in $(PROGRAMS); do \
		install -m 644 completions/$$name.bash $(BASHDIR)/$$name && \
		install -m 644 completions/_$$name $(ZSHDIR) && \
		install -m 644 completions/$$name.fish $(FISHDIR) || exit; \
	done
	scripts/install-capi $(TARGET_DIR)/capi "$(DESTDIR)" $(PREFIX) $(LIBDIR) $(GNU)

.PHONY: uninstall
uninstall: ## Remove from DESTDIR/PREFIX what `make install` brought
	rm -f $(PROGRAMS:%=$(BINDIR)/%)
	for page in $(notdir $(PAGES)); do rm -f $(MANDIR)/man$${page##*.}/$$page; done
	rm -f $(DOCS:%=$(DOCDIR)/%)
	rm -f $(PROGRAMS:%=$(BASHDIR)/%) $(PROGRAMS:%=$(ZSHDIR)/_%) $(PROGRAMS:%=$(FISHDIR)/%.fish)
	scripts/uninstall-capi "$(DESTDIR)" $(PREFIX) $(LIBDIR)
	for folder in $(addprefix $(DOCDIR)/docs/,inside/decisions inside reference use) $(DOCDIR)/docs $(DOCDIR); do rmdir $$folder 2>/dev/null || :; done

# Not a part of `install`, because not every host has systemd.
UNITS = blksum-check@.service blksum-check@.timer

.PHONY: install-systemd
install-systemd: ## Install into DESTDIR/PREFIX the units that check images every night
	install -D -t $(BINDIR) contrib/systemd/blksum-check
	for unit in $(UNITS); do install -D -m 644 -t $(UNITDIR) contrib/systemd/$$unit || exit; done
	install -D -m 644 contrib/systemd/blksum-check.sysusers $(SYSUSERSDIR)/blksum-check.conf
	install -D -m 644 -t $(MANDIR)/man8 man/blksum-check.8

.PHONY: uninstall-systemd
uninstall-systemd: ## Remove from DESTDIR/PREFIX what `make install-systemd` brought
	rm -f $(BINDIR)/blksum-check $(UNITS:%=$(UNITDIR)/%) $(SYSUSERSDIR)/blksum-check.conf $(MANDIR)/man8/blksum-check.8
