# Berth. `make help` lists the targets.
#
# Binaries are file targets: they are rebuilt when a Go file, go.mod or the web
# bundle is newer, so a second `make build` only compares times.

SHELL         := /bin/bash -o pipefail
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SECONDEXPANSION:
MAKEFLAGS     += --no-print-directory
# One set of flags for builds, vet and tests: each reuses what the others compiled.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath
# go-nvml binds calls that NVIDIA has deprecated.
export CGO_CFLAGS  ?= -O2 -g -Wno-deprecated-declarations

DATA     ?= $(CURDIR)/var
IMAGES   ?= python minimal
# Mock accelerators that `make run` offers, so that fractions can be tried
# without hardware.
MOCK     ?= 2
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO       ?= go
# Tests of these run with the race detector. The planner below the scheduler starts no
# goroutine.
RACE     ?= $(patsubst %,./%/...,$(wildcard client internal plugins agent/device)) ./manager/scheduler
# Most tests wait, for timers, products and other processes. `make lint` vets.
SIDE     := -timeout 60m -p 4 -parallel 4 -vet=off
# Each in a network of its own: a browser drops requests when an interface comes or goes.
E2E      := -timeout 60m -p 3 -vet=off -exec $(CURDIR)/tools/ci/netns.sh
# The packages that people write: generated ones are not linted.
READ     := { $(GO) list ./... | grep -vE '/ent(/[a-z]+)?$$|/graph/exec$$|pb$$'; $(GO) list ./ent/schema ./ent/migrate; }

LINK     := -ldflags "-s -w -X main.version=$(VERSION)"
GO_FILES := $(shell find agent client cmd ent gateway graph internal manager plugins storage -name '*.go' -not -name '*_test.go' -o -name '*.sql' 2>/dev/null) go.mod go.sum
WEB_SRC  := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -type f -not -name '*.go' -print 2>/dev/null)
CMDS     := $(notdir $(patsubst %/main.go,%,$(wildcard cmd/*/main.go)))
# One of each runs beside every container, or every build.
BESIDE   := berth-runner berth-builder containerd-shim-runc-v2
# accelerator/template is an example to copy, not a plugin to run.
VENDORS  := $(filter-out %/template,$(patsubst plugins/%/main.go,%,$(wildcard plugins/accelerator/*/main.go plugins/volume/*/main.go)))
# The plugin that links a vendor's C library, and all packages that do.
CGO      := accelerator/nvidia
NVML     := /plugins/accelerator/nvidia
# The library that holds containers to their part of a GPU's memory.
LIMIT    := plugins/accelerator/nvidia/limit/lib
# SSH clients from npm, for tests.
NODE_SSH := agent/runner/sshd/testdata/node
# OpenAI's clients in Python, from npm and in Go, for tests of the router.
OPENAI   := gateway/inference/clients/testdata
OPENAIS  := bin/tools/openai-python/.installed $(OPENAI)/node/node_modules/.package-lock.json bin/tools/openai-go
PROTOS   := $(shell find agent storage plugins internal -name '*.proto')

BIN      := $(CMDS:%=bin/%) $(VENDORS:%=bin/plugins/%) bin/plugins/lib/libberthlimit.so bin/runc
# What `make run` starts: plugins of vendors only where this machine may have a device.
EVERYHERE := accelerator/mock volume/vfs
PLATFORM := $(if $(shell tools/setup/accelerators.sh),$(BIN),bin/berthd bin/berth bin/berth-runner bin/berth-builder $(EVERYHERE:%=bin/plugins/%) bin/containerd-shim-runc-v2 bin/runc)
BUNDLE   := web/dist/index.html

##@ Everyday

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what building and testing need from Debian 12 (as root); starts nothing
	@tools/setup/debian.sh test

.PHONY: setup-run
setup-run:
	@tools/setup/debian.sh

.PHONY: run
run: setup-run ## set up, build and start the whole platform on this machine
	@tools/stages.sh platform images
	@exec bin/berthd up --data "$(DATA)" --mock-accelerators $(MOCK)

.PHONY: demo
demo: ## walk through the running platform: folder, batch session, result
	@./demo/run.sh

.PHONY: build
build: $(BIN) ## build every binary into bin/

.PHONY: platform
platform: $(PLATFORM) ## build what runs here: without accelerators in this machine no plugin but mock

.PHONY: images
images: $(IMAGES:%=build/images/%/index.json) ## build starter images: make images IMAGES="jupyter desktop"

.PHONY: web
web: $(BUNDLE) ## build the web interface into web/dist

.PHONY: clean
clean: ## remove what was built; keeps the platform's data under var/
	rm -rf bin build web/dist web/node_modules

##@ Checks

.PHONY: test
test: setup build images test-web race test-go ## every test: web units, Go, browser

.PHONY: test-go
test-go: bin/tools/versitygw $(NODE_SSH)/node_modules/.package-lock.json $(OPENAIS)
	$(GO) test $(SIDE) ./e2e/sim ./manager/vfolder/integration ./manager/session/integration ./manager $$($(GO) list ./... | grep -vE '/e2e($$|/)' | grep -vxF "$$($(GO) list -e $(RACE))") # the longest first
	$(GO) test $(E2E) $$($(GO) list ./e2e/... | grep -v /sim$$)

.PHONY: test-web
test-web: web/node_modules/.package-lock.json
	cd web && npm run --silent check && npm run --silent test

.PHONY: conformance
conformance: bin/berth-accelerator-conformance bin/berth-volume-conformance $(filter bin/plugins/%,$(BIN)) ## plugins x checks, on every machine and product made for them
	@bin/berth-accelerator-conformance --plugins bin/plugins/accelerator
	@bin/berth-volume-conformance --plugins bin/plugins/volume

.PHONY: test-vm
test-vm: setup ## volume plugins on xfs, ext4 and NFS, inside user-mode Linux where this kernel has none
	BERTH_TEST_VMS_REQUIRED=1 $(GO) test -count 1 -timeout 20m -v -run "^TestVM" ./agent/disk ./internal/testvm/... ./plugins/volume/xfs/... ./plugins/volume/nfs/... ./internal/scopemount/... | grep -v '^ *=== '

.PHONY: test-ceph
test-ceph: ## the cephfs plugin on a real Ceph of one node; installs it
	@tools/setup/debian.sh ceph
	BERTH_TEST_VMS_REQUIRED=1 $(GO) test -count 1 -timeout 20m -v ./plugins/volume/cephfs/... | grep -v '^ *=== '

.PHONY: test-gluster
test-gluster: ## the glusterfs plugin on a real GlusterFS of one node; installs it
	@tools/setup/debian.sh gluster
	BERTH_TEST_VMS_REQUIRED=1 $(GO) test -count 1 -timeout 20m -v ./internal/testvm/gluster/... ./plugins/volume/glusterfs/... | grep -v '^ *=== '

.PHONY: test-smb
test-smb: setup ## the smb plugin on a real Samba, inside user-mode Linux; installs it
	@tools/setup/debian.sh samba
	BERTH_TEST_VMS_REQUIRED=1 $(GO) test -count 1 -timeout 20m -v -run "^TestVM" ./plugins/volume/smb/... | grep -v '^ *=== '

.PHONY: e2e
e2e: setup build images ## who may do what, whole-cluster and browser scenarios
	@$(GO) test -count 1 -run TestAccessMatrix -v ./graph | grep -v '^ *\(===\|---\) '
	$(GO) test -count 1 $(E2E) ./e2e/...

.PHONY: check
check: $(BUNDLE) bin/tools/staticcheck ## what every edit should pass: format, vet, staticcheck, rules, tests without services
	@test -z "$$(git ls-files -z -co --exclude-standard '*.go' | xargs -0 ls -d 2>/dev/null | xargs gofmt -l | tee /dev/stderr)" || { echo 'run gofmt -w on the files above'; exit 1; }
	$(GO) vet $$($(READ) | grep -v $(NVML))
	bin/tools/staticcheck $$($(READ) | grep -v $(NVML))
	$(GO) test -short -timeout 10m -vet=off $$(tools/unit.sh)

.PHONY: lint
lint: $(BUNDLE) bin/tools/staticcheck ## format, vet, staticcheck, repository rules, prose
	@test -z "$$(git ls-files -z -co --exclude-standard '*.go' | xargs -0 ls -d 2>/dev/null | xargs gofmt -l | tee /dev/stderr)" || { echo 'run gofmt -w on the files above'; exit 1; }
	$(GO) vet $$($(READ) | grep -v $(NVML))
	CGO_ENABLED=1 $(GO) vet $$($(READ) | grep $(NVML))
	bin/tools/staticcheck $$($(READ) | grep -v $(NVML))
	CGO_ENABLED=1 bin/tools/staticcheck $$($(READ) | grep $(NVML))
	cd web && npm run --silent lint
	$(GO) test -count 1 .

.PHONY: race
race: setup build bin/tools/oci-conformance ## the concurrent packages under the race detector
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=100 $(GO) test -race $(SIDE) $(RACE)

.PHONY: gpu-check
gpu-check: ## verify the nvidia plugin and its limits on a real card, if there is one
	@tools/gpu-check.sh

.PHONY: bench
bench: setup build images ## measure beside bare engines; ratios, no pass or fail
	$(GO) test -count 1 -timeout 30m -run '^$$' -bench . ./e2e/bench/... ./e2e/images ./manager/scheduler ./plugins/accelerator/acceleratortest ./plugins/accelerator/nvidia/limit ./storage ./gateway/... ./agent/runtime/commit ./agent/runtime/containerd ./agent/build
	$(GO) test -count 1 -timeout 30m -run '^$$' -bench . -benchtime 1x ./manager/scheduler/plan/openb # skips without BERTH_OPENB

.PHONY: bench-plot
bench-plot: ## draw how the cost of decisions grows
	$(GO) test -count 1 -run '^$$' -bench Growth -benchtime 0.3s ./manager/scheduler/plan | $(GO) run ./tools/benchplot > docs/growth.svg

.PHONY: gen
gen: bin/tools/protoc-gen-go bin/tools/protoc-gen-go-grpc web/node_modules/.package-lock.json ## regenerate protobuf, ent, gqlgen, schema.graphql, the Go client, web types
	PATH="$(CURDIR)/bin/tools:$$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative $(PROTOS)
	$(GO) generate ./ent/... ./graph/... ./client
	cd web && npm run --silent gen

.PHONY: migration
migration: ## write the next file of ent/migrate/sql: make migration NAME=what_changes
	$(GO) run ./tools/migration "$(NAME)"

.PHONY: current
current: ## fail when `make gen` would change a file
	@tools/ci/unchanged.sh $(MAKE) gen

.PHONY: ci
ci: setup ## what .ci/run runs
	@tools/stages.sh current lint build images test-web race test-go

.PHONY: nightly
nightly: setup build images ## what takes too long for every change: 1,000 simulated seeds, test VMs, conformance
	$(GO) test -count 1 -timeout 3h ./e2e/sim -sim.seeds 1000
	@$(MAKE) conformance test-vm test-ceph test-gluster test-smb

##@ Files

$(addprefix bin/,$(filter-out $(BESIDE),$(CMDS))) &: $(GO_FILES) $(BUNDLE)
	@mkdir -p bin
	$(GO) build $(LINK) -o bin/ $(addprefix ./cmd/,$(filter-out $(BESIDE),$(CMDS)))
	@touch $(addprefix bin/,$(filter-out $(BESIDE),$(CMDS)))

# Without grpc's traces the linker leaves out a third of the shim.
$(BESIDE:%=bin/%): bin/%: $(GO_FILES)
	@mkdir -p bin
	$(GO) build -tags netgo,osusergo,grpcnotrace $(LINK) -o $@ ./cmd/$*
	@touch $@

$(EVERYHERE:%=bin/plugins/%): bin/plugins/%: $(GO_FILES)
	@mkdir -p $(@D)
	$(GO) build $(LINK) -o $@ ./plugins/$*
	@touch $@

PURE     := $(filter-out $(CGO) $(EVERYHERE),$(VENDORS))

$(PURE:%=bin/plugins/%) &: $(GO_FILES)
	@mkdir -p bin/plugins/accelerator bin/plugins/volume
	$(GO) build $(LINK) -o bin/plugins/accelerator/ $(addprefix ./plugins/,$(filter accelerator/%,$(PURE)))
	$(GO) build $(LINK) -o bin/plugins/volume/ $(addprefix ./plugins/,$(filter volume/%,$(PURE)))
	@touch $(PURE:%=bin/plugins/%)

bin/plugins/$(CGO): $(GO_FILES)
	@mkdir -p $(@D)
	CGO_ENABLED=1 $(GO) build $(LINK) -o $@ ./plugins/$(CGO)
	@touch $@

bin/plugins/lib/libberthlimit.so: $(wildcard $(LIMIT)/*)
	@mkdir -p $(@D)
	$(LIMIT)/build.sh $(abspath $@)

bin/runc: go.mod go.sum
	@mkdir -p bin
	CGO_ENABLED=1 $(GO) build -tags "seccomp netgo osusergo" -ldflags "-s -w -linkmode external -extldflags -static" -o $@ github.com/opencontainers/runc
	@touch $@

bin/tools/protoc-gen-go: go.mod
	$(GO) build -o $@ google.golang.org/protobuf/cmd/protoc-gen-go
	@touch $@

bin/tools/protoc-gen-go-grpc: go.mod
	$(GO) build -o $@ google.golang.org/grpc/cmd/protoc-gen-go-grpc
	@touch $@

bin/tools/staticcheck: tools/lint/go.mod
	$(GO) build -modfile tools/lint/go.mod -o $@ honnef.co/go/tools/cmd/staticcheck
	@touch $@

# An S3 server for tests, with a go.mod of its own: none of it is in what we ship.
bin/tools/versitygw: tools/versitygw/go.mod
	$(GO) build -modfile tools/versitygw/go.mod -o $@ github.com/versity/versitygw/cmd/versitygw
	@touch $@

# The suite of the OCI distribution specification, for internal/registry.
bin/tools/oci-conformance: tools/ociconformance/go.mod
	$(GO) build -modfile tools/ociconformance/go.mod -o $@ github.com/opencontainers/distribution-spec/conformance
	@touch $@

bin/tools/mkimage: $(wildcard tools/mkimage/*.go) go.mod
	$(GO) build -o $@ ./tools/mkimage
	@touch $@

build/images/%/index.json: $$(wildcard images/$$*/*) | setup-run bin/tools/mkimage
	bin/tools/mkimage -o build/images/$* images/$*

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

$(NODE_SSH)/node_modules/.package-lock.json $(OPENAI)/node/node_modules/.package-lock.json: %/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --omit=optional --ignore-scripts --no-audit --no-fund
	@touch $@

# Wheels alone, each with a known hash: nothing of a package runs while it is installed.
bin/tools/openai-python/.installed: $(OPENAI)/python/requirements.txt
	rm -rf $(@D)
	/usr/bin/python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r $<
	@touch $@

# Without optimization: the client's packages are large, and the program runs once.
bin/tools/openai-go: $(wildcard $(OPENAI)/go/*)
	cd $(OPENAI)/go && $(GO) build -gcflags 'github.com/openai/openai-go/...=-N -l' -o $(CURDIR)/$@ .
	@touch $@

.PHONY: openai-clients
openai-clients: $(OPENAIS) ## install what the tests of ./gateway/inference/clients need

$(BUNDLE): $(WEB_SRC) web/node_modules/.package-lock.json
	cd web && npm run --silent build
	@touch $@
