# The first process of the server's machine: sh -c … server ADDRESS
set -e
mount --make-rprivate /
for dir in /run /var/lib/glusterd /var/log/glusterfs; do
  mkdir -p "$dir"
  mount -t tmpfs tmpfs "$dir"
done
ip link set lo up
ip addr add "$1/32" dev lo
glusterd --no-daemon --log-level=WARNING
exit $? # not exec: this shell takes in the programs that glusterd leaves behind
