# The same commands serve a person and CI. Each sets up .venv by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEMO := $(VENV)/.installed-demo
INSTALLED_BENCH := $(VENV)/.installed-bench

.PHONY: demo test lowest newest check bench docs format proto clean

demo: $(INSTALLED_DEMO)  ## four hosts learn SYN-SBM together, scored beside one process, drawn
	$(BIN)/python examples/communities.py

# tests start hundreds of processes, each of which would compile all modules again where no bytecode may be kept
unexport PYTHONDONTWRITEBYTECODE

# real processes wait a good part of their time, so that six at once keep two cores busy; libraries that would take all
# cores in each of them would wait for each other
test: $(INSTALLED)  ## run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses 6 --dist loadfile --no-loadscope-reorder tests src --ignore tests/pages

# what a library will no longer do is of no interest where it is older than what it stands on
lowest: $(INSTALLED)  ## run the tests with the lowest releases that pyproject.toml allows
	$(BIN)/uv venv --quiet --clear build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct --editable '.[dev]'
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -q -W ignore::DeprecationWarning --numprocesses 3 --dist loadfile tests src --ignore tests/pages --ignore tests/e2e

newest: $(INSTALLED)  ## run the tests with the newest releases, whatever constraints.txt says
	$(BIN)/uv venv --quiet --clear build/newest
	$(BIN)/uv pip install --quiet --python build/newest/bin/python --editable '.[dev]'
	OMP_NUM_THREADS=1 build/newest/bin/python -m pytest -q --numprocesses 3 --dist loadfile tests src --ignore tests/pages --ignore tests/e2e

check: $(INSTALLED)  ## format, lint, types, import contract, and whether the package can be published
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/packages.py --check
	mkdir -p build && rm -rf build/dist
	$(BIN)/towncrier build --draft --version next >build/changelog.md
	$(BIN)/python -m build --outdir build/dist . >build/build.log 2>&1 || { cat build/build.log; false; }
	$(BIN)/twine check --strict build/dist/*

bench: $(INSTALLED_BENCH)  ## measure what the issue asks for; tables on stdout
	$(BIN)/python -m benchmarks

docs: $(INSTALLED)  ## build the pages of docs/ into build/docs, where warnings are errors, and run the code on them
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses 3 tests/pages

format: $(INSTALLED)  ## fix what `make check` finds and can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: $(INSTALLED)  ## make the descriptor and the types of proto/ anew
	mkdir -p build/proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --descriptor_set_out=src/manela/hosts/wire/host.desc --pyi_out=build/proto manela/v1/host.proto
	cp build/proto/manela/v1/host_pb2.pyi src/manela/hosts/wire/

clean:
	rm -rf $(VENV) build dist src/*.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "manela needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

# the demo needs little; tests, checks and docs need all extras, of which torch is the largest
$(INSTALLED_DEMO): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[agents,report]'
	touch $@

$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(INSTALLED_DEMO)

$(INSTALLED_BENCH): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@
