#!/usr/bin/env bash
# Walks through a running platform with bin/berth alone, as any user could:
# folder, upload, batch session with half an accelerator, result, charge.
# Settings: see README.md beside this file.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=demo-digits
session=demo-digits-$(date +%H%M%S)
image=${DEMO_IMAGE:-python:3.11}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/berth-demo.XXXXXX")
made_folder='' logged_in=''
export PATH="$PWD/bin:$PATH" BERTH_CONFIG="$tmp/config.yaml"

bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

step() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$bold" "${*@Q}" "$plain" | tr -d "'"; }
run() { show "$@"; "$@"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

cleanup() {
  local code=$?
  trap - EXIT
  if [[ -n $made_folder && -z ${KEEP:-} ]]; then
    step 'Clean up (KEEP=1 keeps the folder)'
    berth session rm --wait "$session" >/dev/null 2>&1 || true # only after a failure does it live
    run berth folder delete --yes "$folder" || code=1
  fi
  if [[ -n $logged_in ]]; then
    run berth logout || code=1
  fi
  rm -rf "$tmp"
  exit "$code"
}
trap cleanup EXIT

# field FILE NAME prints a text of a flat JSON object.
field() { sed -n 's/.*"'"$2"'"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p' "$1" | head -n 1; }

# first_login prints the file with the first login that `berthd up` leaves
# until its password has been changed.
first_login() {
  local dir
  for dir in ${BERTH_DATA:+"$BERTH_DATA"} var data; do
    if [[ -r $dir/first-login.json ]]; then
      printf '%s\n' "$dir/first-login.json"
      return
    fi
  done
}

login() {
  if [[ -n ${BERTH_TOKEN:-} ]]; then
    [[ -n ${BERTH_URL:-} ]] || fail 'BERTH_TOKEN needs BERTH_URL beside it'
    return
  fi
  local file email=${BERTH_EMAIL:-} url=${BERTH_URL:-}
  file=$(first_login)
  if [[ -n $file && -z $url ]]; then url=$(field "$file" url); fi
  if [[ -n $file && -z $email && -z ${BERTH_PASSWORD:-} ]]; then
    email=$(field "$file" email)
    BERTH_PASSWORD=$(field "$file" password)
    printf '(with the first login from %s)\n' "$file"
  fi
  unset BERTH_URL # one server, the one we log in to
  show berth login $url ${email:+--email "$email"}
  BERTH_PASSWORD=${BERTH_PASSWORD:-} berth login $url ${email:+--email "$email"} --name demo --expires 1
  logged_in=yes
}

# check compares what the session wrote with the labels that we have here.
check() {
  local measured claimed
  measured=$(gzip -dc "demo/digits.csv.gz" | awk -F, '
    FNR == NR { if (FNR > 1) label[FNR - 1] = $1; next }
    FNR == 1  { next }
    !($1 in label) || label[$1] != $2 { print "row " $1 " has another label"; bad = 1; exit }
    { n++; if ($2 == $3) right++ }
    END { if (!bad) printf "%.4f", n ? right / n : 0 }' - "$1/predictions.csv")
  claimed=$(sed -n 's/.*"accuracy"[^0-9]*\([0-9.]*\).*/\1/p' "$1/result.json")
  printf 'accuracy: %s as counted here, %s as result.json says\n' "$measured" "$claimed"
  awk -v a="$measured" -v b="$claimed" 'BEGIN { d = a - b; exit !(a + 0 > 0.9 && d * d < 1e-6) }' ||
    fail "the result is not what it should be (more than 0.9, and both the same)"
}

# charged waits until the accelerator's slot-seconds are on the account.
charged() {
  local deadline=$((SECONDS + 60)) usage
  until usage=$(berth session show "$session" -o json) && [[ $usage == *'"slotSeconds"'* ]]; do
    ((SECONDS < deadline)) || fail "nothing was charged for $session within a minute"
    sleep 1
  done
  show berth session show "$session"
  berth session show "$session" | grep -E '^(Name|Status|Exit code|Resources|Charged):'
  run berth usage
}

[[ -x bin/berth ]] || fail 'bin/berth is not built; run: make build'

step 'Log in'
login
run berth whoami

step 'What the cluster has'
run berth agent ls
run berth image ls

step 'A folder for data and script'
if berth folder files "$folder" >/dev/null 2>&1; then
  printf 'folder %s is there; it is used and kept\n' "$folder"
else
  run berth folder create "$folder"
  made_folder=yes
fi
run berth folder put "$folder" "demo/digits.csv.gz" "demo/train.py"
run berth folder files "$folder"

step 'Train on one CPU and half an accelerator, following the log'
code=0
run berth run "$image" --name "$session" --cpu 1 --mem 1g --gpu 0.5 \
  -v "$folder:/home/work/data" -- python3 /home/work/data/train.py || code=$?
printf 'exit code: %d\n' "$code"
((code == 0)) || fail "the session failed; see: berth session show $session"

step 'Fetch the result and check it here'
run berth folder get "$folder:result.json" "$tmp"
run berth folder get "$folder:predictions.csv" "$tmp"
cat "$tmp/result.json"
check "$tmp"

step 'What it cost'
charged

printf '\n%sAll of it worked.%s\n' "$bold" "$plain"
