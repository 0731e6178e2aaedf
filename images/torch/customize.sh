#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf vim.tiny "$root/usr/bin/vim"
