#!/usr/bin/env bash
# usage: debian.sh [test|ceph|gluster|samba|gateways]
# Installs what Berth needs from Debian 12 and is not there yet: what it takes to build
# and run, and with an argument what tests need too. Nothing is started: databases run
# as private children of berthd, never as services.
set -euo pipefail

packages=(
  ca-certificates git make         # fetch and build
  gcc libc6-dev pkg-config libseccomp-dev  # runc is the one cgo program
  postgresql-15 redis-server       # private children of berthd up
  mmdebstrap                       # container images out of Debian packages
  e2fsprogs                        # mkfs.ext4 for scratch disks
)
if [[ ${1:-} ]]; then
  packages+=(
    protobuf-compiler                # make gen
    python3-grpcio python3-protobuf  # the Python example of an accelerator plugin
    iproute2                         # ip
    user-mode-linux xfsprogs         # kernels and disks of make test-vm
    btrfs-progs                      # mkfs.btrfs for tests of limits
    strace                           # tests that downloads are sent by the kernel
    litmus rclone openssh-client     # WebDAV and SFTP clients
    openssh-sftp-server              # what SFTP is measured beside
    openssh-server                   # the server that the runner's SSH is compared with
    dropbear-bin putty-tools lftp sshfs rsync  # SSH clients
    python3-paramiko python3-asyncssh xauth    # SSH clients, and X11 forwarding
    python3-venv                     # OpenAI's client in Python, from PyPI
    chromium fonts-dejavu-core       # browser tests
    prometheus                       # promtool, and the Prometheus of the monitoring test
  )
fi
if [[ ${1:-} == ceph ]]; then # make test-ceph: 300 MB that nothing else needs
  packages+=(ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse ceph-common)
fi
if [[ ${1:-} == gluster ]]; then # make test-gluster
  packages+=(glusterfs-server glusterfs-client)
fi
if [[ ${1:-} == samba ]]; then # make test-smb
  packages+=(samba samba-vfs-modules)
fi
if [[ ${1:-} == gateways ]]; then # make bench-gateways
  packages+=(nginx-light haproxy)
fi

say() { printf 'setup: %s\n' "$*"; }

# missing prints the packages of the list that dpkg does not call installed.
missing() {
  local have p
  have=" $(dpkg-query -W -f='${Package}:${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
  for p in "${packages[@]}"; do
    [[ $have == *" $p:installed "* ]] || printf '%s\n' "$p"
  done
}

need_tool() { # NAME WHY
  command -v "$1" >/dev/null || { say "$1 is missing: $2" >&2; exit 1; }
}

# no_autostart keeps the packages' install scripts from starting services, for
# as long as this script runs, and PostgreSQL's from making a system cluster.
no_autostart() {
  if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    say "no system PostgreSQL cluster will be made (/etc/postgresql-common/createcluster.conf)"
  fi
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
}

# not_at_boot undoes what a freshly installed server package enables.
not_at_boot() {
  if [[ " $* " == *" redis-server "* ]] && command -v systemctl >/dev/null; then
    systemctl disable redis-server.service >/dev/null 2>&1 || true
  fi
  if [[ " $* " == *" glusterfs-server "* ]] && command -v systemctl >/dev/null; then
    systemctl disable glusterd.service >/dev/null 2>&1 || true
  fi
  if [[ " $* " == *" samba "* ]] && command -v systemctl >/dev/null; then
    systemctl disable smbd.service nmbd.service samba-ad-dc.service >/dev/null 2>&1 || true
  fi
  if [[ " $* " == *" haproxy "* ]] && command -v systemctl >/dev/null; then
    systemctl disable haproxy.service >/dev/null 2>&1 || true
  fi
  if [[ " $* " == *" nginx-light "* ]] && command -v systemctl >/dev/null; then
    systemctl disable nginx.service >/dev/null 2>&1 || true
  fi
}

need_tool go "install Go 1.26 or newer (https://go.dev/dl)"
need_tool npm "install Node.js 20 or newer"
need_tool dpkg-query "make setup knows Debian 12; elsewhere install by hand: ${packages[*]}"

mapfile -t todo < <(missing)
if ((${#todo[@]} == 0)); then
  exit 0
fi
if ((EUID != 0)); then
  say "missing: ${todo[*]}" >&2
  say "run as root: make setup" >&2
  exit 1
fi

say "installing ${todo[*]}"
export DEBIAN_FRONTEND=noninteractive
no_autostart
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${todo[@]}" >/dev/null
not_at_boot "${todo[@]}"
say "done"
