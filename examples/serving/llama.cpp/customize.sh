#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
mkdir -p "$root$temp/llama"
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root$temp/ca.pem"
cp "$MKIMAGE_DIR"/*.sh "$MKIMAGE_DIR"/*.txt "$root$temp/llama/"
inside sh $temp/llama/source.sh $temp/llama/source
inside sh $temp/llama/build.sh $temp/llama/source /usr/local/bin/llama-server
