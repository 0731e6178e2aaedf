#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf vim.tiny "$root/usr/bin/vim"

# code-server's own postinstall.sh downloads the packages of VS Code as well. Their lock files are
# in its package, so the hash of that covers them.
vscode=/opt/npm/node_modules/code-server/lib/vscode
for dir in $vscode $vscode/extensions; do
  inside npm ci --prefix $dir --omit=dev --ignore-scripts --legacy-peer-deps
done
inside node $vscode/extensions/postinstall.mjs >/dev/null
ln -s node_modules "$root$vscode/node_modules.asar"
ln -s code-linux.sh "$root$vscode/bin/remote-cli/code-server"
ln -s browser-linux.sh "$root$vscode/bin/helpers/browser.sh"

# Native modules. kerberos, for proxies that ask for it, is left out.
inside npm rebuild --prefix /opt/npm argon2
for module in @vscode/spdlog native-watchdog node-pty; do
  inside sh -c "cd $vscode/node_modules/$module && node-gyp rebuild"
done
mkdir -p "$root$vscode/node_modules/@vscode/ripgrep/bin"
ln -s /usr/bin/rg "$root$vscode/node_modules/@vscode/ripgrep/bin/rg"

# What only the build or another system needs.
find "$root/opt/npm" -depth \( -path '*/build/Release/obj.target' -o -path '*/build/Release/.deps' \
  -o -path '*/build-tmp-*' -o -path '*/node-pty/prebuilds' -o -path '*/node-pty/third_party' \
  -o -name 'windows-process-tree' -o -name '*-musl' \) -exec rm -rf {} +
find "$root/opt/npm" -type f \( -name '*.map' -o -name '*win32*.node' \) -delete
