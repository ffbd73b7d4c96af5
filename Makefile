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
	@.ci/build fuzz $(addprefix fuzz_,$(fuzzers))
	@failed=0; for name in $(fuzzers); do \
	  mkdir -p build/fuzz/corpus/$$name build/fuzz/findings; \
	  echo "fuzz: $$name, $(FUZZ_SECONDS) s"; \
	  build/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10 -verbosity=0 \
	    -artifact_prefix=build/fuzz/findings/$$name- build/fuzz/corpus/$$name || failed=1; \
	done; exit $$failed

clean:
	@rm -rf build
