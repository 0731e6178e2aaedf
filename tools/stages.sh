#!/usr/bin/env bash
# usage: stages.sh TARGET...
# Makes the targets one after the other and prints how long each took. Images are
# assembled beside the stages before them, since that waits for packages most of the time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

make --no-print-directory images &
images=$!
trap 'kill "$images" 2>/dev/null || true' EXIT

summary=
for target in "$@"; do
  start=$SECONDS
  [[ $target != images ]] || wait "$images"
  make --no-print-directory "$target"
  summary+=$(printf '%s %ds' "$target" $((SECONDS - start)))$'\n'
  printf 'make: %s took %d s\n' "$target" $((SECONDS - start))
done
printf '\nmake: %d s in all\n%s' "$SECONDS" "$summary"
