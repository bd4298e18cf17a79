# Two commands for everyone: `make demo` and `make test`. Each prepares what it needs in .venv and reuses it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ENGINES_STAMP := $(VENV)/.engines
DOCS_STAMP := $(VENV)/.docs
PEERS_STAMP := $(VENV)/.peers
JOBS ?= 2
# One more than cores: many tests wait for the processes that they start.
TESTERS ?= 3
MUTATE ?=
MUTANTS ?= 100
MUTATION_SEED ?= 20
STUDIES := rdt_panels steps_simulation nist_field youth_voters choosing
EARLIER ?=
KEEP ?= .studies-cache
SMOKE := .studies-smoke
KILLS ?= 1000
SEED ?= $(shell date +%s)
AUDITED := .venv-audited
AUDITED_EXTRAS := excel,stats,classifiers,postgres,delta,iceberg,studio,sign

LOWEST := .venv-lowest
LOWEST_TESTS ?= tests/cli tests/codec tests/counts tests/release tests/schema tests/test_public_names.py

# The suite starts hundreds of processes that load the package: byte code is kept, whatever the shell is set to.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo studio axe test test-engines test-slow test-explore test-lowest package pictures docs docs-pictures gallery studies studies-smoke lint types layers kernels clean bench test-peers test-mutations test-faults digests same-bytes dependency-audit

help:
	@echo "make demo       run the built-in example: release folder in demo-release/, then verify it"
	@echo "make studio     open the studio in .studio-demo/: the whole workflow in a browser, with a simulated table to try"
	@echo "make test       lint, types, layers, house rules and the test suite"
	@echo "make test-engines  databases, lakes and Spark, each started for real (PostgreSQL and a Java runtime must be there)"
	@echo "make test-slow  statistics that need minutes"
	@echo "make test-explore  the suite with fresh random examples of its properties"
	@echo "make test-peers  prices and samplers against dp-accounting and OpenDP"
	@echo "make test-mutations  small mistakes planted in privacy, counts, codec, statements and cost parts: which do tests miss?"
	@echo "make test-faults  a campaign of kills (KILLS=1000), full, failing, lost and read-only disks, memory and clock"
	@echo "make digests    what fixed answers and a fixed seed give, file by file; make same-bytes compares those of several Pythons"
	@echo "make dependency-audit  known vulnerabilities of what understudy needs (asks a public list; needs a network)"
	@echo "make test-lowest  the wheel and the oldest dependencies that pyproject.toml allows, in an environment of their own"
	@echo "make package    wheels and source distribution in dist/; each wheel is installed afresh and runs the demo"
	@echo "make studies    re-run the source documents' studies into docs/studies (DATA=folder with the real tables; in parts: STUDIES=rdt_panels)"
	@echo "make gallery    five real tables from raw file to release, pages in docs/gallery (DATA=folder with the real tables)"
	@echo "make bench      our methods and other packages on real tables, as far as not kept yet, and the page (DATA=folder)"
	@echo "make studies-smoke  every study in its smallest form on simulated tables, pages in .studies-smoke"
	@echo "make pictures   screenshots of report, card and study of three tables at three widths, in pictures/, and of the studio in docs/studio/ (chromium must be there)"
	@echo "make axe        renew axe-core (npm) in tests/studio, with which test-engines checks the studio's pages for accessibility"
	@echo "make docs       the documentation site in site/, strict about links; works offline, also from the folder"
	@echo "make docs-pictures  draw the pictures of the documentation again"
	@echo "make setup      only create .venv with everything the other targets need"

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "understudy needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

$(ENGINES_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group engines
	@touch $(ENGINES_STAMP)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $(DOCS_STAMP)

$(PEERS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group peers
	@touch $(PEERS_STAMP)

setup: $(STAMP)

demo: $(STAMP)
	$(BIN)/understudy demo --out demo-release
	$(BIN)/understudy verify demo-release

studio: $(STAMP)
	mkdir -p .studio-demo
	$(BIN)/understudy studio .studio-demo

# The file as npm has it, packed: tests unpack it. Its digest stands in tests/studio/walking.py.
axe:
	npm pack --silent axe-core@4
	tar xzf axe-core-4.*.tgz --to-stdout package/axe.min.js | gzip -9n > tests/studio/axe.min.js.gz
	tar xzf axe-core-4.*.tgz --to-stdout package/LICENSE > tests/studio/axe.LICENSE.txt
	rm axe-core-4.*.tgz

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports --no-cache

kernels: $(STAMP)
	$(BIN)/python -m tests.kernels

# Each of the four needs one core, so they go side by side. Kernels compiled here are not compiled by every process.
test: $(STAMP)
	$(MAKE) --no-print-directory -j $(JOBS) kernels types lint layers
	$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal --ignore tests/engines -m "not slow"

# A file of tests stays on one process: each process would start servers of its own.
test-engines: $(STAMP) $(ENGINES_STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile tests/engines

test-peers: $(STAMP) $(PEERS_STAMP)
	REQUIRE_PEERS=1 $(BIN)/python -m pytest tests/reference/test_peers.py

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/engines --ignore tests/faults -m slow

test-explore: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/engines -m "not slow" --hypothesis-profile explore

# A sample of mutants of each group; what is known is kept in .mutation, and a later run goes on from there.
test-mutations: $(STAMP)
	$(BIN)/python -m tests.mutation $(MUTATE) --sample $(MUTANTS) --seed $(MUTATION_SEED)

# Kills and faults take minutes of a processor; a seed of its own each time finds more than the same one again.
test-faults: $(STAMP)
	KILLS=$(KILLS) SEED=$(SEED) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "slow or not slow" -rP tests/faults

digests: $(STAMP)
	$(BIN)/python -W ignore -m tests.release.reproduced > digests.json

same-bytes:
	$(PYTHON) tests/release/same_bytes.py digests/*/digests.json

# What a fresh installation with all extras gets, in an environment of its own: what is installed here may be older.
dependency-audit:
	$(PYTHON) -m venv --clear $(AUDITED)
	$(AUDITED)/bin/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.7"
	$(AUDITED)/bin/python -m pip install --quiet --disable-pip-version-check ".[$(AUDITED_EXTRAS)]"
	$(AUDITED)/bin/pip-audit --local --desc --progress-spinner off

# The wheel as users get it, not the working tree, with the lowest version of each dependency that we declare.
test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.7"
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct . --group dev
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider -n $(JOBS) --dist worksteal --ignore tests/engines -m "not slow" $(LOWEST_TESTS)

# As an index would hand it out: the pure wheel comes from the source distribution, and nothing of the working tree is on its
# path. On x86-64 Linux there is a second wheel for this Python, which brings machine code (hatch_build.py).
package: $(STAMP)
	rm -rf dist .venv-package
	@! grep -q 'understudy\.example' pyproject.toml || echo "Before you publish: [project.urls] in pyproject.toml still names understudy.example, which belongs to nobody."
	$(BIN)/python -m hatchling build -t sdist -d dist
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check dist/*.tar.gz
	$(BIN)/python -m hatchling build -t wheel -d dist
	cd .venv-package && bin/understudy demo --quiet && bin/understudy verify demo-release
	@test "$$(uname -sm)" = "Linux x86_64" || { echo "Machine code is made on x86-64 Linux only."; exit 0; }; set -x; \
	UNDERSTUDY_KERNELS=1 $(BIN)/python -m hatchling build -t wheel -d dist && \
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*manylinux*.whl && \
	cd .venv-package && bin/understudy demo --quiet && bin/understudy verify demo-release

studies: $(STAMP)
	@test -n "$(DATA)" || { echo "make studies DATA=FOLDER: the studies need the folder with the real tables."; exit 1; }
	@began=$$(date +%s); \
	for study in $(STUDIES); do \
	  out=docs/studies; test $$study != choosing || out=docs; \
	  earlier=; test -z "$(EARLIER)" -o $$study = choosing || earlier="--earlier $(EARLIER)/$$study.md"; \
	  $(BIN)/python -m studies.$$study --data $(DATA) --jobs $(JOBS) --keep $(KEEP) --out $$out $$earlier || exit 1; \
	done; \
	echo "$(STUDIES): $$(( ($$(date +%s) - began) / 60 )) minutes in this sitting; finished runs are in $(KEEP)"

# The tables stay where they are; pages, pictures and figures may be published, as their licences allow.
gallery: $(STAMP)
	@test -n "$(DATA)" || { echo "make gallery DATA=FOLDER: the gallery needs the folder with the real tables."; exit 1; }
	$(BIN)/python -m studies.gallery --data $(DATA)

# Other packages are installed into environments of their own, outside the repository; stop it at any time and go on.
bench: $(STAMP)
	@test -n "$(DATA)" || { echo "make bench DATA=FOLDER: the benchmark needs the folder with the real tables."; exit 1; }
	$(BIN)/python -m benchmarks.bench --data $(DATA) $(BENCH)

# That every study still runs from its command line; a few repeats on simulated tables, so the pages say nothing.
studies-smoke: $(STAMP)
	@for study in $(STUDIES); do \
	  $(BIN)/python -m studies.$$study --smoke --out $(SMOKE) || exit 1; \
	done

# Reports in there are confidential; git ignores the folder.
pictures: $(STAMP)
	$(BIN)/python -m tests.report.pictures
	$(BIN)/python -m tests.studio.pictures

# mkdocs looks at the links that we write, website.links at every link of what was built, and at what it would load. Not
# --quiet: mkdocs then counts no warnings, and --strict lets broken links pass.
docs: $(STAMP) $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m website.links site

docs-pictures: $(STAMP)
	$(BIN)/python -m website.pictures

clean:
	rm -rf $(VENV) $(LOWEST) .venv-package dist $(SMOKE) .studio-demo site pictures demo-release demo-confidential .mypy_cache .ruff_cache .pytest_cache $(AUDITED) digests digests.json
