#!/bin/sh
# Runs with the new root as its argument, before it is packed.
set -eu
root=$1

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf python3 "$root/usr/bin/python"
ln -sf vim.tiny "$root/usr/bin/vim"
# The libraries' own tests are a tenth of their size.
find "$root/usr/lib/python3/dist-packages" -type d -name tests -prune -exec rm -rf {} +
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/var/cache/debconf/*
