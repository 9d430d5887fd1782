#!/usr/bin/env bash
# Makes a Debian package of the gateway: the program, which needs nothing else, and a unit for systemd.
#
#   scripts/deb.sh PROGRAM FOLDER
set -euo pipefail
program=$(realpath "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer="The Bluewater authors"
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 "$program" "$root/usr/bin/bluewater-gateway"
strip "$root/usr/bin/bluewater-gateway"
install -D -m 644 packaging/bluewater-gateway@.service -t "$root/usr/lib/systemd/system"
doc=$root/usr/share/doc/bluewater-gateway man=$root/usr/share/man/man1
install -d -m 755 "$doc" "$man" "$root/usr/share/lintian/overrides" "$root/etc/bluewater" "$root/DEBIAN"
sed 's/^$/./; s/^/ /' LICENSE-MIT | cat packaging/debian/copyright - > "$doc/copyright"
gzip -9n < packaging/bluewater-gateway.1 > "$man/bluewater-gateway.1.gz"
cp packaging/debian/overrides "$root/usr/share/lintian/overrides/bluewater-gateway"
gzip -9n > "$doc/changelog.gz" <<END
bluewater-gateway ($version) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- $maintainer <>  $(date --utc --rfc-email --date="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")
END
cat > "$root/DEBIAN/control" <<END
Package: bluewater-gateway
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: net
Priority: optional
Description: real packets through any queue discipline
 Forwards between two interfaces through a queue discipline of the Bluewater
 library: CAKE, FQ-CoDel, PIE, DualPI2, BLUE, RED and others.
END
install -m 755 packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN"
mkdir -p "$folder"
file=$folder/bluewater-gateway_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$file" > /dev/null
echo "$file"
