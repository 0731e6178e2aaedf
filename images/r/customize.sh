#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf vim.tiny "$root/usr/bin/vim"
# The kernel of every user. R finds jupyter, which installs it, in /opt/venv.
inside env PATH=/opt/venv/bin:/usr/bin:/bin R --vanilla --quiet -e \
  'IRkernel::installspec(user = FALSE, prefix = "/opt/venv")'
