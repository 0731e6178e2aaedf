#!/usr/bin/env bash
# usage: build.sh FOLDER
# Builds the programs of `make gpu-check` into the folder. They also run on another machine
# with a C library that is as new.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "$1/bin"
CGO_ENABLED=1 go build -ldflags '-s -w' -o "$1/bin/nvidia" ./plugins/accelerator/nvidia
go build -ldflags '-s -w' -o "$1/bin/" ./cmd/berth-accelerator-conformance ./tools/gpu-check
plugins/accelerator/nvidia/limit/lib/build.sh "$1/libberthlimit.so"
cc -O2 -o "$1/driver" tools/gpu-check/programs/driver.c -ldl
