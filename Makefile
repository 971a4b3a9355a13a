# Commands for a fresh machine: `make demo` and `make test`. Both build what is missing.

# Where make starts cargo first, cargo has the jar and the page made beside its crates (jvmti-agent/build.rs, report/build.rs).
export UNFUSE_MAKE_PARTS := 1

MVN := mvn -q -B -f spark-patches/pom.xml
JAR := spark-patches/target/unfuse-spark.jar
JAVA_SOURCES := spark-patches/pom.xml $(shell find spark-patches/src -type f 2>/dev/null)
# The page of `unfuse report`; it is part of the program, so it is built before it.
PAGE := report/page/dist/page.html
PAGE_SOURCES := report/page/build.mjs $(shell find report/page/src -type f 2>/dev/null)
PAGE_PACKAGES := report/page/node_modules/.package-lock.json
# Where the jars of the grammar checker are in Maven's local repository.
GRAMMAR := tests/grammar/target/classpath
UNFUSE := target/release/unfuse

# Everything is compiled once, in release mode, with the same features (see profiler/format/Cargo.toml).
# What a user gets; benchmarks and fuzz targets are not part of it.
PROGRAM := --package unfuse-cli --package unfuse-agent

.PHONY: help build plugin demo dist test check spark test-java test-rust test-page test-loom test-miri test-aarch64 test-gate test-alone test-shared lint grammar bench clean

help:
	@echo "make demo    profile a TPC-H query on local Spark and show the result"
	@echo "make test    everything CI runs: format, lints, unit tests, end-to-end tests on real Spark"
	@echo "make grammar the English of documents, messages and help texts; part of make lint"
	@echo "make check   formats, lints and unit tests: minutes, for every day"
	@echo "make test-aarch64  the programs for ARM machines, under emulation (an hour)"
	@echo "make test-miri  the code map's tests under miri (minutes; needs a nightly toolchain)"
	@echo "make build   target/release/unfuse and target/release/libunfuse.so"
	@echo "make plugin  target/release/unfuse-spark.jar, for Spark's setting spark.plugins"
	@echo "make examples   the examples in documents again, on real Spark (minutes)"
	@echo "make dist    what a release consists of, below target/archives (minutes)"
	@echo "make bench   every page of docs/results again (takes hours)"

# The programs without debug information, which is in a file beside each. What is there already is made anew first if it is
# old; what is not, is made by build scripts while cargo compiles other crates.
build: tools $(wildcard $(JAR) $(PAGE))
	cargo build --release --locked --quiet $(PROGRAM)
	@tests/split-debug.sh $(UNFUSE) target/release/libunfuse.so

# The jar for spark.plugins: the plugin, with the agent and the program inside.
plugin: build
	dist/plugin_jar.sh target/release/unfuse-spark.jar linux-$$(uname -m) target/release

# Prints at the end how long each part took.
demo: tools
	@tests/demo.sh

# What a release consists of: archive, Debian package, list of crates, checksums. It runs on glibc 2.17.
dist: tools $(JAR) $(PAGE)
	@dist/make.sh

# Runs every part even if one fails, and prints how long each took and which tests failed. Parts that measure nothing run
# side by side: each of them waits for downloads, or uses one CPU for a part of its time.
test:
	@tests/parts.sh build lint+spark test-rust+test-java+test-loom+test-page+test-gate test-shared test-alone

check:
	@tests/parts.sh lint test-rust

lint: tools $(JAR) $(PAGE) grammar
	cd report/page && npx --no-install tsc && npx --no-install prettier --log-level warn --check "src/**/*" "test/*.mjs" "*.mjs"
	$(MVN) com.spotify.fmt:fmt-maven-plugin:check
	cargo fmt --all --check
	python3 tests/lint.py
	cargo clippy --release --locked --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --quiet --no-deps --workspace --lib

# The English of documents, messages and help texts, by LanguageTool and docs/style.md.
grammar: $(GRAMMAR)
	cd tests/grammar && python3 test_check.py -q
	tests/grammar/check.py $(GRAMMAR) tests/grammar/target/classes

# Spark and data of the end-to-end tests, in the user's cache directory.
spark: plugin
	$(UNFUSE) setup --spark 4.3 --spark 3.5 --tpch 1 --tpch 0.2

# The module's tests run on Spark 3.5 from Maven Central and on the jars of the installed PySpark 4.
test-java: spark
	$(MVN) verify -Dspark4.jars="$$(echo "$$($(UNFUSE) setup --spark 4.3 | head -1)"/venv/lib/python*/site-packages/pyspark/jars)"

# Unit, property, snapshot and fuzz tests; the end-to-end tests have their own target.
test-rust: $(JAR) $(PAGE)
	cargo test --release --locked --workspace --exclude unfuse-tests

# The report in the system's Chromium, headless.
test-page: build unfuse-bench chromium
	cd report/page && npm test --silent

.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	  || { echo "Chromium is missing: install it (Debian: apt-get install chromium)"; exit 1; }

# Instructions of fixed work against bench/gate.toml, under valgrind.
test-gate: build unfuse-bench
	@command -v valgrind >/dev/null || { echo "valgrind is missing: install it (Debian: apt-get install valgrind)"; exit 1; }
	target/release/unfuse-bench gate

# Every interleaving of small programs over the code map, which is built on loom's atomics for it.
test-loom:
	RUSTFLAGS="$$RUSTFLAGS --cfg loom" cargo test --locked --release --package unfuse-codemap --lib --target-dir target/loom -- models

# Its tests once more, interpreted: undefined behaviour and data races. They look at the clock and at files.
# Stacked borrows allow all references to atomics anything, but visit every word of the map to find that out.
test-miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "miri is missing: rustup toolchain install nightly --component miri --component rust-src"; exit 1; }
	MIRIFLAGS="$$MIRIFLAGS -Zmiri-disable-isolation -Zmiri-disable-stacked-borrows" cargo +nightly miri test --locked --package unfuse-codemap --target-dir target/miri

# The programs for aarch64 under emulation: PARTS are unit, timer and perf (tests/aarch64/run.sh).
test-aarch64: tools $(JAR) $(PAGE)
	@tests/aarch64/run.sh $(PARTS)

# End-to-end tests that compare samples with measured CPU time or count what happened. Many of them use one CPU or wait.
test-shared: spark
	cargo test --release --locked --workspace --test shared --test hostile --no-fail-fast -- --test-threads=2

# Those in which a query is slow for one reason, which nothing else must add to.
test-alone: spark
	cargo test --release --locked --workspace --test alone --no-fail-fast -- --test-threads=1

# The whole workspace decides the features of dependencies: with the tests' features nothing is compiled twice.
.PHONY: unfuse-bench
unfuse-bench:
	cargo build --release --locked --quiet --workspace --bin unfuse-bench

# Each page says the command that makes it.
bench: build unfuse-bench
	target/release/unfuse-bench pages --again

# The examples in documents, on real Spark (minutes); EXAMPLES="skew blame" runs these only.
.PHONY: examples
examples: build
	docs/examples/record.py $(UNFUSE) $(EXAMPLES)

# The event logs that tests read, of real runs. Only for changes of fixtures/job.py: times differ each time.
.PHONY: event-logs
event-logs: build
	analysis/eventlog/tests/fixtures/make.sh $(UNFUSE)

clean:
	cargo clean
	rm -rf spark-patches/target tests/grammar/target report/page/dist report/page/node_modules

$(JAR): $(JAVA_SOURCES) | tools
	$(MVN) package -DskipTests
	@touch $@

$(GRAMMAR): tests/grammar/pom.xml $(shell find tests/grammar/src -type f 2>/dev/null) | tools
	mvn -q -B -f tests/grammar/pom.xml compile
	@touch $@

$(PAGE): $(PAGE_SOURCES) $(PAGE_PACKAGES)
	cd report/page && node build.mjs

# npm writes this file last, so it stands for all packages.
$(PAGE_PACKAGES): report/page/package.json report/page/package-lock.json | tools
	cd report/page && npm ci --silent --no-audit --no-fund
	@touch $@

# Says what is missing and how to get it, before a build fails with something less clear.
.PHONY: tools
tools:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.95 or newer (rustup.rs)"; exit 1; }
	@command -v javac >/dev/null || { echo "a JDK is missing: install JDK 17 or newer (Debian: apt-get install openjdk-17-jdk)"; exit 1; }
	@command -v mvn >/dev/null || { echo "Maven is missing: install it (Debian: apt-get install maven)"; exit 1; }
	@command -v python3 >/dev/null || { echo "Python 3 is missing: install it (Debian: apt-get install python3 python3-venv)"; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "Node is missing: install Node 18 or newer with npm (Debian: apt-get install nodejs npm)"; exit 1; }
