#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root.

mkdir -p "$root/etc" "$root/tmp" "$root/root" "$root/proc" "$root/sys" "$root/dev" "$root/home/work"
chmod 1777 "$root/tmp"
find "$root/usr/share" -mindepth 1 -delete

for applet in $(chroot "$root" /bin/busybox --list); do
  [ -e "$root/bin/$applet" ] || ln -s /bin/busybox "$root/bin/$applet"
done

echo 'root:x:0:0:root:/root:/bin/sh
work:x:1000:1000:work:/home/work:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:
work:x:1000:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
chown -R 1000:1000 "$root/home/work"
