#!/bin/sh
# usage: source.sh FOLDER
# Puts the source of llama.cpp into FOLDER, from PyPI and checked by its hash. It needs python3 with venv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=$1
mkdir -p "$to"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
python3 -m venv "$temp/venv"
PATH=$temp/venv/bin:$PATH
pip="pip --quiet --disable-pip-version-check --no-input"
$pip install --no-deps --only-binary :all: --require-hashes -r "$here/backend.txt"
$pip download --no-deps --no-binary :all: --no-build-isolation --require-hashes -d "$temp" -r "$here/source.txt"
tar xzf "$temp"/llama_cpp_python-*.tar.gz -C "$to" --strip-components 3 --wildcards '*/vendor/llama.cpp/*'
