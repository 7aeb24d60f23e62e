# The commands of this repository; `make` alone lists them. Each sets up what is missing in .venv first.
BIN    := .venv/bin
# One stamp per state of the two files that say what .venv holds: while they stay as they are, setup costs nothing.
READY  := .venv/ready-$(shell cat pyproject.toml scripts/setup | cksum | tr -d ' \t')
PYTEST := $(BIN)/python -m pytest
PARALLEL := $(PYTEST) -n 2 --dist loadfile --max-worker-restart 0
as_root := $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help setup demo lab lint test bench comparison docs bench-peers soak labextension webtest browser screenshots examples picture wheel chromium clean

help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*  ## /  make \1\t/p' $(MAKEFILE_LIST)

setup: $(READY)  ## create .venv and install everything (all others do it when needed)
	@:

$(READY):
	@scripts/setup
	@rm -f .venv/ready-* && touch $@

demo: $(READY)  ## kill a real notebook in the middle of a step, Run All, see that everything is back
	@$(BIN)/python scripts/demo.py

lab: labextension  ## open the examples in JupyterLab
	@$(BIN)/python -m jupyterlab $(as_root) --ServerApp.root_dir=examples

lint: $(READY) | build  ## style, types, directions of import
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary && $(BIN)/mypy --no-error-summary scripts
	@$(BIN)/lint-imports >build/lint-imports.txt 2>&1 || { cat build/lint-imports.txt; exit 1; }

test: lint webtest  ## every test; ARGS='-k name' narrows it
	@# What measures time runs first, with nothing beside it; pytest's 5 says that ARGS left nothing of it.
	@$(PYTEST) -q -m alone $(ARGS) || [ $$? -eq 5 ]
	@# By file: the tests of a file share its kernels. A worker that dies is a failure, never a second try.
	@$(PARALLEL) -m 'not alone and not browser and not crash' $(ARGS) || [ $$? -eq 5 ]
	@# What kills processes by the hundred runs by itself: nothing else is slowed down by it, or takes the blame.
	@$(PARALLEL) -m 'crash and not alone' $(ARGS) || [ $$? -eq 5 ]

# ---- the front end

EXTENSION := keel_notebook/labextension/package.json
TYPESCRIPT := $(shell find labextension/src labextension/style labextension/schema -type f 2>/dev/null) \
              $(wildcard labextension/*.json labextension/*.mjs)

labextension: $(EXTENSION)  ## build the JupyterLab extension and the lineage view, and let this .venv's JupyterLab see them
	@mkdir -p .venv/share/jupyter/labextensions
	@ln -sfn ../../../../keel_notebook/labextension .venv/share/jupyter/labextensions/keel-notebook

$(EXTENSION): $(TYPESCRIPT) labextension/node_modules/.package-lock.json | $(READY) build
	@cd labextension && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent build >../build/labextension.txt 2>&1 \
	  || { cat ../build/labextension.txt; exit 1; }
	@touch $@

labextension/node_modules/.package-lock.json: labextension/package-lock.json | build
	@command -v npm >/dev/null || { echo "the front end is built with node: install node 20 or newer" >&2; exit 1; }
	@cd labextension && npm ci --ignore-scripts >../build/npm.txt 2>&1 || { cat ../build/npm.txt; exit 1; }
	@touch $@

webtest: labextension  ## types and unit tests of the front end
	@cd labextension && npm run --silent check && npm run --silent test -- --silent

browser: labextension chromium  ## real JupyterLab and Notebook 7 in Chromium
	@$(PYTEST) -m browser $(ARGS) tests/browser

screenshots: labextension chromium  ## take the pictures of the docs anew
	@$(BIN)/python scripts/screenshots.py

docs: $(READY)  ## the pages of docs/ as a site in build/site
	@$(BIN)/python scripts/site.py build/site

bench: $(READY)  ## keel against floors and peers, as ratios measured in one run; build/bench/report.md. ARGS='contest --scale 0.1'
	@$(BIN)/python -m bench $(ARGS)

comparison: $(READY)  ## docs/comparison.md from the last `make bench`
	@$(BIN)/python -m bench --page docs/comparison.md

bench-peers: $(READY)  ## install the peers that `make bench` measures keel against, in Pythons of their own (.venv-peers)
	@test -x .venv-peers/bin/python || python3 -m venv .venv-peers
	@for peer in kishu elastic saturn; do test -x .venv-peers/$$peer/bin/python || python3 -m venv .venv-peers/$$peer; done
	@.venv-peers/bin/pip install --quiet 'keelrun>=0.7' 'dbos>=3.4' 'joblib>=1.5' 'dill>=0.4' 'marimo>=0.25' 'diskcache>=5' \
	  ipykernel pandas pyarrow scikit-learn matplotlib
	@# A peer that does not install is left out of the report.
	@-.venv-peers/kishu/bin/pip install --quiet 'kishu>=0.3' pandas pyarrow scikit-learn matplotlib
	@-.venv-peers/saturn/bin/pip install --quiet 'saturn-notebook>=1.5' pandas pyarrow scikit-learn matplotlib
	@-.venv-peers/elastic/bin/pip install --quiet 'elastic-kernel>=0.2' pandas pyarrow scikit-learn matplotlib

soak: $(READY)  ## the crash tests with thousands of kills, every fault, and a long life (report in build/soak)
	@KEEL_SOAK=$(or $(KILLS),3000) $(PYTEST) --timeout 0 -m crash tests/crash tests/journal tests/soak

examples: $(READY)  ## execute the examples again and keep their outputs
	@$(BIN)/python scripts/refresh_examples.py

picture: $(READY)  ## draw docs/img/demo.svg from a real run of the demo
	@$(BIN)/python scripts/picture.py

wheel: labextension | build  ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . >build/wheel.txt 2>&1 || { cat build/wheel.txt; exit 1; }
	@ls dist/*.whl

build:
	@mkdir -p $@

chromium:  ## a browser for the browser tests, from Debian's packages
	@command -v chromium >/dev/null || { \
	  [ "$$(id -u)" = 0 ] || { echo "chromium is missing: sudo apt-get install chromium" >&2; exit 1; }; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium >/dev/null; }

clean:  ## remove what was built and what runs left, not .venv
	@rm -rf keel_notebook/labextension labextension/lib
	@rm -rf build dist examples/.keel examples/bill.csv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
