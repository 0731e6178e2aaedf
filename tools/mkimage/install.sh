#!/bin/sh
# The last step of mmdebstrap, with the new root as its argument: installs what the recipe's lock
# files name, runs customize.sh, and removes what only the build needed. mkimage sets
# MKIMAGE_DIR   the recipe's folder
# MKIMAGE_PIP   its lock file of Python packages, or nothing
# MKIMAGE_NPM   its lock file of Node packages, or nothing
# MKIMAGE_BUILD the Debian packages to remove at the end, or nothing
set -eu
root=$1
temp=/tmp/mkimage

# inside runs a command in the new root. A host whose proxy has a certificate authority of its
# own passes that on; the file does not stay.
inside() {
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=$temp LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" PYTHONHASHSEED=0 \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
    PIP_CERT=$temp/ca.pem NODE_EXTRA_CA_CERTS=$temp/ca.pem \
    npm_config_cache=$temp/npm npm_config_audit=false npm_config_fund=false \
    npm_config_update_notifier=false npm_config_build_from_source=true \
    npm_config_nodedir=/usr/include/nodejs "$@"
}

if [ -n "$MKIMAGE_PIP$MKIMAGE_NPM" ]; then
  mkdir -p "$root$temp"
  cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root$temp/ca.pem"
fi
if [ -n "$MKIMAGE_PIP" ]; then
  cp "$MKIMAGE_DIR/$MKIMAGE_PIP" "$root$temp/pip.txt"
  # A user who cannot write to the environment still installs packages into their home.
  inside python3 -m venv --system-site-packages /opt/venv
  inside /opt/venv/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-compile \
    --no-input --only-binary :all: --require-hashes -r $temp/pip.txt
  inside /opt/venv/bin/pip check
  # Byte code that refers to its source by hash, since the times of the files will change.
  inside find /opt/venv -name __pycache__ -type d -prune -exec rm -rf {} +
  inside python3 -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib || true
fi
if [ -n "$MKIMAGE_NPM" ]; then
  mkdir -p "$root/opt/npm"
  cp "$MKIMAGE_DIR/package.json" "$root/opt/npm/package.json"
  cp "$MKIMAGE_DIR/$MKIMAGE_NPM" "$root/opt/npm/package-lock.json"
  # customize.sh runs the install scripts that are needed, by name.
  inside npm ci --prefix /opt/npm --omit=dev --ignore-scripts
fi
if [ -f "$MKIMAGE_DIR/customize.sh" ]; then
  . "$MKIMAGE_DIR/customize.sh"
fi
if [ -n "$MKIMAGE_BUILD" ]; then
  inside apt-mark auto $MKIMAGE_BUILD >/dev/null
  inside apt-get autoremove --purge --yes --quiet
fi
# What the next start or the next `apt-get update` writes again, most of it with the time of the build.
rm -rf "$root$temp" "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* \
  "$root"/var/cache/debconf/* "$root"/var/cache/ldconfig/* "$root"/var/lib/dpkg/*-old
