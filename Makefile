# The same commands serve a person and CI. Each sets up .venv by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEMO := $(VENV)/.installed-demo
INSTALLED_BENCH := $(VENV)/.installed-bench

.PHONY: demo test check bench docs format proto clean

demo: $(INSTALLED_DEMO)  ## four hosts learn SYN-SBM together, scored beside one process, drawn
	$(BIN)/python examples/communities.py

# libraries that would take all cores in each of the two processes wait for each other then
test: $(INSTALLED)  ## run the tests: two processes, and then those with processes of their own
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile --ignore tests/e2e --ignore tests/pages
	$(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile tests/e2e

check: $(INSTALLED)  ## format, lint, types, import contract, and whether the package can be published
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	mkdir -p build && rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist . >build/build.log 2>&1 || { cat build/build.log; false; }
	$(BIN)/twine check --strict build/dist/*

bench: $(INSTALLED_BENCH)  ## measure what the issue asks for; tables on stdout
	$(BIN)/python -m benchmarks

docs: $(INSTALLED)  ## build the pages of docs/ into build/docs, where warnings are errors, and run the code on them
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest -q --numprocesses 2 tests/pages

format: $(INSTALLED)  ## fix what `make check` finds and can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: $(INSTALLED)  ## make the Python code of proto/ anew
	mkdir -p build/proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=build/proto --pyi_out=build/proto manela/v1/host.proto
	cp build/proto/manela/v1/host_pb2.py build/proto/manela/v1/host_pb2.pyi src/manela/agents/

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
