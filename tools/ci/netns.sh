#!/bin/sh
# usage: netns.sh PROGRAM [ARG...]
# Runs a program in a network namespace of its own, with a loopback interface alone:
# its agents change no interface of the host, nor do those of others change one here.
exec unshare --net sh -c 'ip link set lo up && exec "$@"' _ "$@"
