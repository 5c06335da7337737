# Targets for people and CI; `make help` lists them. Cargo alone builds everything.

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1
DATADIR = $(DESTDIR)$(PREFIX)/share

CARGO ?= cargo
PYTHON = .venv/bin/python
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
FUZZ_SECONDS ?= 60
PYTEST_ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the release binaries
	$(CARGO) build --release --workspace

# The steps run one after another, also with -j: they share cargo's lock and the memory.
.PHONY: test
test: ## Install what the tests need, then run everything
	scripts/install-test-deps
	$(MAKE) check
	$(CARGO) test --workspace
	scripts/test-features
	$(MAKE) vectors-check
	$(MAKE) build
	$(MAKE) pytest

.PHONY: check
check: ## Formatting and lints, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path bench/Cargo.toml --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

.PHONY: vectors
vectors: ## Generate test-vectors/*.json from the reference
	$(PYTHON) test-vectors/generate.py

.PHONY: vectors-check
vectors-check: ## Fail if test-vectors/*.json differ from the reference
	$(PYTHON) test-vectors/generate.py --check

.PHONY: pytest
pytest: ## Whole-program tests of the built release binary
	BLKSUM=$(TARGET_DIR)/release/blksum $(PYTHON) -m pytest tests $(PYTEST_ARGS)

.PHONY: deny
deny: ## Licences, bans, sources and, where their database can be reached, advisories
	scripts/deny

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_SECONDS
	scripts/fuzz $(FUZZ_SECONDS)

.PHONY: bench
bench: ## Measure every hash beside those of other libraries
	scripts/install-bench-deps
	$(CARGO) run --release --manifest-path bench/Cargo.toml

.PHONY: bench-images
bench-images: build ## Measure blksum beside other tools
	scripts/install-bench-deps
	scripts/bench-images $(TARGET_DIR)/release/blksum

.PHONY: install
install: ## Install into DESTDIR/PREFIX what `make build` has built
	install -D -t $(BINDIR) $(TARGET_DIR)/release/blksum $(TARGET_DIR)/release/blkhash
	install -D -m 644 -t $(MANDIR) man/*.1
	install -D -m 644 completions/blksum.bash $(DATADIR)/bash-completion/completions/blksum
	install -D -m 644 completions/blkhash.bash $(DATADIR)/bash-completion/completions/blkhash
	install -D -m 644 -t $(DATADIR)/zsh/site-functions completions/_blksum completions/_blkhash
	install -D -m 644 -t $(DATADIR)/fish/vendor_completions.d completions/blksum.fish completions/blkhash.fish
