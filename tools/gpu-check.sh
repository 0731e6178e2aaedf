#!/usr/bin/env bash
# Verifies on a real NVIDIA GPU what the tests can only verify with stand-ins:
# what the plugin says of it, that its library holds programs to their part of
# the memory, that memory is attributed to processes, and what that costs. It
# says what it verified, what it could not, and on what card. Settings of the
# GPU stay as they are. Fails when something is not as it should be.
# On a machine without Go, GPU_CHECK_BUILT names what tools/gpu-check/build.sh built.
set -euo pipefail

list() { # what nvidia-smi knows: FIELDS
  nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null
}

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo 'gpu-check: there is no NVIDIA GPU on this machine: nothing was verified.'
  exit 0
fi

cd "${BASH_SOURCE[0]%/*}/.."
work=$(mktemp -d)
pids=()
cleanup() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

verified=0 failed=0 skipped=0
ok() { verified=$((verified + 1)); printf 'verified  %s\n' "$*"; }
bad() { failed=$((failed + 1)); printf 'FAILED    %s\n' "$*"; }
skip() { skipped=$((skipped + 1)); printf 'skipped   %s\n' "$*"; }
check() { # DESCRIPTION COMMAND...: verified when it succeeds
  local what=$1
  shift
  if "$@"; then ok "$what"; else bad "$what"; fi
}
report() { # NAME STATUS FILE: the lines of one of the programs
  local line
  while read -r line; do
    case $line in
      'ok '*) ok "${line#ok }" ;;
      'FAILED '*) bad "${line#FAILED }" ;;
      *) printf '          %s\n' "$line" ;;
    esac
  done <"$3"
  grep -q '^ok\|^FAILED' "$3" && (($2 < 2)) || bad "$1 ended with status $2"
}

read -r uuid < <(list uuid)
IFS=, read -r model driver memory < <(list name,driver_version,memory.total)
card="$model, driver${driver},${memory} MiB"
echo "gpu-check: on $card ($(list uuid | wc -l) GPUs)"
limit=$((4 << 30))
((memory > 6144)) || limit=$((memory / 2 << 20))

if [[ ${GPU_CHECK_BUILT:-} ]]; then
  cp -r "$GPU_CHECK_BUILT/." "$work/"
else
  echo '          building'
  tools/gpu-check/build.sh "$work" 2>"$work/build.log" || { cat "$work/build.log"; exit 1; }
fi
export CUDA_VISIBLE_DEVICES=$uuid

# What the plugin says.
if ! "$work/bin/gpu-check" "$work/bin/nvidia" devices >"$work/devices"; then
  bad 'the plugin lists its devices'
else
  sed 's/^/          /' "$work/devices"
  check "the plugin lists every GPU that nvidia-smi lists, by uuid" \
    diff <(cut -d' ' -f1 "$work/devices" | sort) <(list uuid | sort)
  told=$(awk -v id="$uuid" '$1 == id {print int($2 / 1048576)}' "$work/devices")
  check "the plugin's memory of the GPU is nvidia-smi's: $told MiB" test "$told" = "$((memory))"
  usable=$(awk -v id="$uuid" '$1 == id {print $4}' "$work/devices")
  check 'the GPU can be given away' test "$usable" = true
fi
if "$work/bin/berth-accelerator-conformance" "$work/bin/nvidia" >"$work/conformance" 2>&1; then
  ok "conformance: $(tail -1 "$work/conformance")"
else
  bad "conformance: $(tail -1 "$work/conformance")"
  grep -i '^fail' "$work/conformance" || true
fi

# The library: a directory is what a container would see of it.
container() {
  mkdir -p "$work/in/$1"
  cp "$work/libberthlimit.so" "$work/in/$1/"
  echo "$uuid $limit" >"$work/in/$1/limits"
  truncate -s 160K "$work/in/$1/usage"
}
under() { # CONTAINER COMMAND...
  local library=$work/in/$1/libberthlimit.so
  shift
  LD_PRELOAD=$library "$@"
}
run() { # NAME COMMAND...: one that prints checks
  local name=$1 status=0
  shift
  container "$name"
  under "$name" timeout 300 "$@" >"$work/$name.out" 2>&1 || status=$?
  report "$name" "$status" "$work/$name.out"
}
run driver "$work/driver" check "$limit"

container smi
shown=$(under smi nvidia-smi -i "$uuid" --query-gpu=memory.total --format=csv,noheader,nounits) || shown=nothing
check "nvidia-smi shows the limit: $shown MiB" test "$shown" = "$((limit >> 20))"

hold() { # CONTAINER BYTES ANSWER: a process that holds memory until its input ends
  local answer
  coproc HOLD { under "$1" "$work/driver" hold "$2" 2>&1; }
  pids+=("$HOLD_PID")
  holder=$(pgrep -P "$HOLD_PID" | head -1 || true)
  holder=${holder:-$HOLD_PID}
  read -r -t 60 answer <&"${HOLD[0]}" || answer=silent
  [[ $answer == "$3" ]]
}
container shared
if hold shared $((limit / 4 * 3)) held; then
  first=$holder
  answer=$(under shared "$work/driver" hold $((limit / 2)) </dev/null)
  check 'a second process of the container is refused what the first one holds' test "$answer" = refused

  if held=$("$work/bin/gpu-check" "$work/bin/nvidia" memory "$uuid" "$first" 2>"$work/attribution"); then
    check "the plugin attributes to the process what it holds: $((held >> 20)) MiB for $((limit / 4 * 3 >> 20)) and its context" \
      test "$held" -ge $((limit / 4 * 3)) -a "$held" -le $((limit / 4 * 3 + (2 << 30)))
  elif [[ $(readlink /proc/self/ns/pid) != 'pid:[4026531836]' ]]; then
    skip "attribution to processes: here are not the process numbers of the host ($(cat "$work/attribution"))"
  else
    bad "attribution: $(cat "$work/attribution")"
  fi

  { kill -9 "$first" "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null || true
  pids=()
  answer=refused
  for _ in $(seq 50); do
    answer=$(under shared "$work/driver" hold $((limit / 2)) </dev/null)
    [[ $answer == held ]] && break
    sleep 0.1
  done
  check 'what a killed process held can be had again' test "$answer" = held
else
  bad 'a process can hold three quarters of the limit'
fi

# Programs as people have them.
if command -v nvcc >/dev/null; then
  if nvcc -cudart static -o "$work/runtime" tools/gpu-check/programs/runtime.cu >"$work/nvcc.log" 2>&1; then
    run runtime "$work/runtime" "$limit"
  else
    bad "nvcc compiles the program: $(tail -1 "$work/nvcc.log")"
  fi
else
  skip "a program of CUDA's runtime: nvcc is not installed"
fi
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  run torch python3 tools/gpu-check/programs/pytorch.py "$limit"
else
  skip 'PyTorch: it is not installed, or does not see the GPU'
fi

# What it costs.
container cost
for size in 4096 2097152; do
  plain=$("$work/driver" pair 20000 $size) || plain=
  with=$(under cost "$work/driver" pair 20000 $size) || with=
  if [[ $plain && $with ]]; then
    ok "overhead of an allocation of $size bytes and its free: $plain ns without, $with ns with the library"
  else
    bad "overhead of an allocation of $size bytes"
  fi
done

# MPS: a server beside other programs, which changes no setting of the GPU.
if command -v nvidia-cuda-mps-control >/dev/null && (($(id -u) == 0)); then
  processors=$("$work/driver" processors 0)
  status=0
  "$work/bin/gpu-check" "$work/bin/nvidia" mps "$uuid" 0.25 \
    "$work/driver" share $((memory / 4 << 20)) $((processors / 4)) >"$work/mps.out" 2>&1 || status=$?
  report MPS "$status" "$work/mps.out"
  check 'the MPS server ends with its last share' test -z "$(pgrep -r D,R,S -f nvidia-cuda-mps || true)"
else
  skip 'MPS: nvidia-cuda-mps-control is not installed, or the user is not root'
fi
skip 'MIG: it needs a setting of the GPU to be changed'

echo "gpu-check: $verified verified, $failed failed, $skipped skipped, on $card"
((failed == 0))
