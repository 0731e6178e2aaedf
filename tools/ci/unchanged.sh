#!/usr/bin/env bash
# usage: unchanged.sh COMMAND...
# Runs the command and fails, showing the difference, when it changed, added or
# removed a file that git tracks or would track. Uncommitted work is no problem:
# the state before is compared with the state after.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"

state() {
  git ls-files -z -co --exclude-standard | sort -zu |
    while IFS= read -r -d '' f; do [[ -f $f ]] && printf '%s\0' "$f"; done |
    xargs -0 sha256sum
}

before=$(state)
"$@"
after=$(state)
if changed=$(diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u) && [[ -n $changed ]]; then
  printf 'generated files were not current; run make gen and commit:\n%s\n' "$changed" >&2
  git --no-pager diff --stat -- $changed >&2 || true
  exit 1
fi
