#!/usr/bin/env bash
# Makes a Debian package of the gateway: the program, which needs nothing else, and a unit for systemd.
#
#   scripts/deb.sh PROGRAM FOLDER
set -euo pipefail
program=$(realpath "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 "$program" "$root/usr/bin/bluewater-gateway"
install -D -m 644 packaging/bluewater-gateway@.service -t "$root/usr/lib/systemd/system"
install -D -m 644 LICENSE-APACHE LICENSE-MIT -t "$root/usr/share/doc/bluewater-gateway"
install -d -m 755 "$root/etc/bluewater" "$root/DEBIAN"
cat > "$root/DEBIAN/control" <<END
Package: bluewater-gateway
Version: $version
Architecture: $architecture
Maintainer: The Bluewater authors
Section: net
Priority: optional
Description: real packets through any queue discipline
 Forwards between two interfaces through a queue discipline of the Bluewater
 library: CAKE, FQ-CoDel, PIE, DualPI2, BLUE, RED and others.
END
for script in postinst postrm; do
  cat > "$root/DEBIAN/$script" <<END
#!/bin/sh
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
END
  chmod 755 "$root/DEBIAN/$script"
done
mkdir -p "$folder"
file=$folder/bluewater-gateway_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$file" > /dev/null
echo "$file"
