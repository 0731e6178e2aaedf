#!/bin/sh
# build.sh FILE compiles the library. It says -O2 because dlsym must end in a
# jump (see hook.c), and names glibc's older libraries so that it loads there too.
set -eu
cd "$(dirname "$0")"
exec "${CC:-cc}" -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror \
  -o "$1" ./*.c -Wl,-Bsymbolic -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0
