#!/usr/bin/env bash
# usage: unit.sh
# Prints the packages with tests that need no database, container or plugin suite, as far
# as their imports show. These are the tests of `make check`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=$(go list -m)
go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
  awk -v m="$module" -v services="^$module/(internal/(testenv|testvm|service)|manager/|agent/runtime/|e2e/|storage$|storage/(volume|storagetest)|ent$|ent/)" '
    $1 ~ m "/(e2e|agent/network|plugins/accelerator/nvidia)(/|$)" { next }
    {
      needs = NF < 2
      for (i = 2; i <= NF; i++) if ($i ~ services && $i != m "/internal/testenv/wait") needs = 1
      if (!needs) print $1
    }'
