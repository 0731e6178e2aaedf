#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf vim.tiny "$root/usr/bin/vim"
install -m 755 "$MKIMAGE_DIR/desktop" "$root/usr/local/bin/desktop"
install -m 644 "$MKIMAGE_DIR/index.html" "$root/usr/share/novnc/index.html"
