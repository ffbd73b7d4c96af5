# The front door. `make up` runs InferNex on this machine; `make test` tests all of it.
#   make up ARGS="--engines 2 --port 9000"   arguments of `infernex up`
#   make bench-NAME                          one benchmark of tests/bench; `make bench` runs all
#   make fuzz FUZZ_SECONDS=600               how long each fuzz target runs
ARGS ?=
# Debian puts nats-server where an ordinary user's PATH does not look.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin
FUZZ_SECONDS ?= 20
compiled_benches := $(sort $(basename $(notdir $(wildcard tests/bench/*.cpp))))
driver_benches := $(sort $(basename $(notdir $(wildcard tests/bench/*.py))))
benches := $(sort $(compiled_benches) $(driver_benches))
fuzzers := $(sort $(basename $(notdir $(wildcard tests/fuzz/*.cpp))))

.PHONY: build up test check bench fuzz clean $(addprefix bench-,$(benches))

build:
	@.ci/build release infernex

up:
	@.ci/install build
	@.ci/build release infernex
	@exec build/infernex up $(ARGS)

test:
	@.ci/install test
	@tests/run

check:
	@.ci/install check
	@.ci/check

bench: $(addprefix bench-,$(benches))

$(addprefix bench-,$(compiled_benches)): bench-%:
	@.ci/build release bench_$*
	@mkdir -p build/bench
	@build/bench_$*

$(addprefix bench-,$(driver_benches)): bench-%:
	@.ci/build release infernex
	@python3 tests/bench/$*.py

fuzz:
	@.ci/install fuzz
	@.ci/build fuzz fuzzers
	@echo "fuzz: $(FUZZ_SECONDS) s each of $(fuzzers)"
	@printf '%s\n' $(fuzzers) | FUZZ_SECONDS=$(FUZZ_SECONDS) xargs -P "$$(nproc)" -I NAME tests/fuzz/run build/fuzz/fuzz_NAME

clean:
	@rm -rf build
