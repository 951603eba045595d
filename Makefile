# make demo   builds, streams 4 GiB each way through lhssh and lhsshd, compares with stock programs
# make test   every test
# make bench  the tables of docs/perf.md, on this machine
# make figures the pictures of docs/figures, on this machine (an hour; it should be idle)
# make check  what CI checks besides the tests
# make setup  Debian packages and the Python peers (the other targets do this themselves)
# make install  the five programs, in release, to PREFIX (docs/install.md)

CARGO ?= cargo
# Tests and the programs that the interop tests start share one profile, so that the crypto
# library, two minutes of C and assembly, is compiled once.
PROFILE ?= dev
BIN_DIR = $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
INSTALL ?= install
# What is built is looked for in target/, wherever else the caller's own builds go.
unexport CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR
# What is installed, and the packages that these programs are built from.
PROGRAMS = lhssh lhsshd lhscp lhsftp lhsftp-server
PACKAGES = client server copy sftp-client sftp-server
# A workspace of its own; it shares what is compiled already.
FUZZ = --manifest-path dev/fuzz/Cargo.toml --target-dir target
# Explores schedules. A filter that fits no test would pass, so they are counted first.
SCHEDULES = $(CARGO) test --profile $(PROFILE) --package engine --features shuttle,none --lib schedules

.PHONY: all programs install uninstall packages setup demo test bench figures check clean
all:
	$(CARGO) build --release

programs:
	$(CARGO) build --release --locked $(PACKAGES:%=--package %)

install: programs
	$(INSTALL) -d $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 755 $(PROGRAMS:%=target/release/%) $(DESTDIR)$(BINDIR)

uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(BINDIR)/%)

packages:
	scripts/setup

setup: packages
	scripts/venv

# No Python: no venv.
demo: packages
	$(CARGO) build --release --bins
	scripts/demo

test: setup
	$(CARGO) build --profile $(PROFILE) --workspace --bins
	LONGHAUL_BIN_DIR=target/$(BIN_DIR) $(CARGO) xtask test --profile $(PROFILE)
	$(SCHEDULES) -- --list | grep -c ': test$$'
	$(SCHEDULES)
	$(CARGO) test $(FUZZ)

bench: setup
	$(CARGO) build --release --bins
	target/release/lhbench pipe
	target/release/lhbench link
	target/release/lhbench copy
	target/release/lhbench crypt

figures: setup
	$(CARGO) build --release --bins
	target/release/lhbench figures --out target/figures
	cp target/figures/*.svg docs/figures/

check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --package client --package server --no-default-features -- -D warnings
	$(CARGO) fmt --manifest-path dev/fuzz/Cargo.toml --check
	$(CARGO) clippy $(FUZZ) --all-targets -- -D warnings
	$(CARGO) xtask all
	scripts/deny

clean:
	$(CARGO) clean
