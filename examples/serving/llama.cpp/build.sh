#!/bin/sh
# usage: build.sh SOURCE PROGRAM
# Compiles llama-server out of the source that source.sh got, for any x86-64 or ARM processor of the last years and
# without accelerators. It needs g++, cmake and ninja, and takes about 6 minutes on 2 cores.
set -eu
source=$1 program=$2
cmake -S "$source" -B "$source/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
  -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
nice -n 10 ninja -C "$source/build" -j "${JOBS:-2}" llama-server
install -D -s "$source/build/bin/llama-server" "$program"
