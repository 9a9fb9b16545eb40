# Thin: every target is one command that can be typed.
CORES ?= $(shell nproc)
GPUS ?= 1
ARGS ?=  # for snakemake: `make report ARGS="--config seeds=10"`
PYTHON := .venv/bin/python
MAKEFLAGS += --no-print-directory
unexport PYTHONDONTWRITEBYTECODE  # else every job compiles all that it imports

.PHONY: all env optional docs test test-slow report bench bench-grader publish archive pack lint format lock

all:
	./snakemake $(ARGS) --cores $(CORES) --resources gpu=$(GPUS) results/Q10.md

env:  # the wrapper makes .venv when it is missing or stale
	@./snakemake --version >/dev/null

optional: env  # for tests of a real server, TRL and inspect_ai; apart from the environment, which is what its lock says
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --upgrade \
		--target .venv/optional -r envs/lock-optional.txt

docs: .venv/docs/ready  # the documentation as a site in build/site, which opens offline
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs $(if $(SERVE),serve,build --strict --quiet)

.venv/docs/ready: envs/lock-docs.txt | env
	$(PYTHON) -m venv --clear .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	touch $@

test: env
	$(PYTHON) -m pytest $(PYTEST)

test-slow: env
	$(PYTHON) -m pytest -m slow

report: env
	./snakemake $(ARGS) --cores $(CORES) --resources gpu=$(GPUS) report
	./snakemake $(ARGS) --report reports/snakemake.html report

bench: optional
	$(PYTHON) benchmarks/step.py

bench-grader: env
	$(PYTHON) benchmarks/grader.py

publish: env  # `make publish CONFIG=config/smollm2.yaml`: the pages of another organism; of several files: CONFIG="A B"
	$(PYTHON) -m projected_grpo.pages.publish $(if $(CONFIG),--configfile $(CONFIG))

archive: env  # texts of published runs beside their runs.csv
	$(PYTHON) -m projected_grpo.pages.archive $(if $(CONFIG),--configfile $(CONFIG))

pack:  # every runs.csv and the texts beside it as one file, for a release
	mkdir -p build
	find docs/results -name runs.csv -o -name deployed.parquet | sort | tar -czf build/runs.tar.gz -T -
	@ls -l build/runs.tar.gz

lint: env
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	.venv/bin/snakefmt --check Snakefile rules
	./snakemake --lint

format: env
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format
	.venv/bin/snakefmt Snakefile rules

lock:
	python3 envs/lock.py
