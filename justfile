# The stages of CI have one definition: .ci/run.

# list the recipes
default:
    @just --list

# build ./trbench
build:
    go build -o trbench ./cmd/trbench

# all tests
test *args:
    go test ./... {{ args }}

# the race detector on the packages with goroutines
race:
    .ci/run race

# formatting, vet and linters; golangci-lint where it is installed
lint:
    .ci/run format vet
    @if command -v golangci-lint >/dev/null; then golangci-lint run; else .ci/run lint; fi

# format all files, and write docs/cli as the commands are now
fmt:
    gofmt -w .
    go test ./cmd/trbench/command -run TestCLIReference -update

# run every fuzz target for a while
fuzz time="10s":
    #!/usr/bin/env bash
    set -euo pipefail
    for package in $(go list ./...); do
        for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
            go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime {{ time }}
        done
    done

# benchmarks that match, ten runs, as benchstat reads them
bench pattern="." package="./...":
    go test -run '^$' -bench '{{ pattern }}' -benchmem -count 10 {{ package }}

# the figures of the headline and of a sweep, into runs/
figures: build
    ./trbench run --out runs/headline
    ./trbench sweep --out runs/sweep

# what CI runs
ci:
    .ci/run
