# Everything that is built lands in bin/.
GO      ?= go
BIN     := bin
LDFLAGS := -s -w
# Tests wait for machines, so they run side by side even on few cores.
TESTFLAGS ?= -race -timeout 15m
# The tests write many sparse disks: in RAM where there is room for them.
TESTTMP   := $(shell [ "$$(df --output=avail -B1G /dev/shm 2>/dev/null | tail -1)" -ge 8 ] 2>/dev/null && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

.DEFAULT_GOAL := build
.PHONY: bench-lots bench-write chaos test-crash lab-talosinit test-qemu demo-qemu histories help build agent temporal temporal-server tools test test-fast lint demo fuzz clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: agent ## Build starter, worker and agent
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/starter ./starter
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/worker ./worker

agent: ## Build the agent for the machines' architectures
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/agent-linux-amd64 ./agent
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/agent-linux-arm64 ./agent

temporal: ## Build Temporal's dev server with its Web UI (about 5 minutes cold)
	@echo "building Temporal's dev server: about 5 minutes the first time"
	$(GO) -C tools build -o ../$(BIN)/temporal github.com/temporalio/cli/cmd/temporal

temporal-server: ## Build Temporal's server and schema tool, for bench-lots on PostgreSQL
	$(GO) -C tools build -o ../$(BIN)/temporal-server go.temporal.io/server/cmd/server
	$(GO) -C tools build -o ../$(BIN)/temporal-sql-tool go.temporal.io/server/cmd/tools/sql

test: build temporal ## Run all tests
	TMPDIR=$(TESTTMP) $(GO) test $(TESTFLAGS) $$($(GO) list ./... | grep -vE '/tests(/crash|/chaos)?$$')
	@# Whole labs are slow under the race detector, so it sees the runs that all the others vary.
	TMPDIR=$(TESTTMP) $(GO) test $(TESTFLAGS) -run '^(TestLotOfThreeReachesReady|TestRunGoesOnWithAnotherWorker|TestMachineResetMidWriteRewinds)$$' ./tests
	TMPDIR=$(TESTTMP) $(GO) test -timeout 20m -parallel 8 -p 1 ./tests ./tests/crash ./tests/chaos
	@# Full-size images (4247 MiB), whole disks with STATE and lots of thousands are too slow under the race detector.
	TMPDIR=$(TESTTMP) $(GO) test -timeout 10m -run '^TestFullSize$$|^TestState|^TestThousandsOfNodes$$' ./internal/agent/stage ./internal/agent/write ./workflows
	@echo "NOT RUN: the tests on QEMU machines with a real kernel; run them with: make test-qemu"

test-fast: ## Run the tests without the race detector
	$(GO) test ./...

lint: ## Run golangci-lint and check formatting and modules
	$(GO) -C tools/lint build -o ../../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(BIN)/golangci-lint run ./...
	$(GO) mod tidy -diff
	$(GO) mod verify

demo: build temporal ## Provision a lot of three simulated servers to Ready (KEEP=1 leaves it up)
	KEEP=$(KEEP) tools/demo.sh

lab-talosinit: ## Build what boots from the disks of QEMU machines
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/lab-talosinit ./internal/lab/qemu/talosinit

test-qemu: build temporal lab-talosinit ## Run the tests on QEMU machines with a real kernel (under 35 minutes on two cores)
	IRONLOT_QEMU=1 $(GO) test -count=1 -timeout 2h -parallel 3 -v $(QEMUFLAGS) ./tests/qemu

demo-qemu: build temporal lab-talosinit ## Provision one QEMU machine with a real kernel to Ready (KEEP=1 leaves it up)
	KEEP=$(KEEP) tools/demo-qemu.sh

bench-write: agent lab-talosinit ## Measure staging and writing against curl, zstd and dd; needs root (BENCHFLAGS)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/bench ./tests/bench
	$(BIN)/bench $(BENCHFLAGS)

bench-lots: build temporal $(if $(findstring postgres,$(BENCHFLAGS)),temporal-server) ## Measure whole lots of simulated machines: makespan, idle time, memory, history (BENCHFLAGS)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/benchlots ./tests/benchlots
	$(BIN)/benchlots $(BENCHFLAGS)

fuzz: ## Fuzz the image reader, the partition tables and the lot file (FUZZTIME each)
	tools/fuzz.sh $(or $(FUZZTIME),30s)

clean: ## Remove what was built
	rm -rf $(BIN)

test-crash: build temporal ## Run the crash matrix alone: every fault in every phase
	$(GO) test -count=1 -timeout 20m -v ./tests/crash

chaos: build temporal ## Provision a lot while everything breaks at random (SEED, NODES, FOR)
	$(GO) test -count=1 -timeout 2h -v ./tests/chaos -args -seed $(or $(SEED),0) -nodes $(or $(NODES),50) -for $(or $(FOR),5m)

histories: build temporal ## Record new histories for the replay tests
	$(GO) test ./tests -run '^TestHistories' -record
	$(GO) test ./tests/crash -run '^TestMatrix$$/^worker_killed_during$$' -record
