#!/bin/sh
# Builds the kernel that linux_accecn.py and linux_*.py --kernel run: Linux for user mode, with virtual time
# of its own and the queue disciplines that Debian's has not, from Debian's package of the sources. What its
# queue disciplines draw comes from python/bluewater/kernel/guest/draws.h.
#
#     linux_build.sh FOLDER    makes FOLDER/linux
#
# Needs what `bluewater kernel` needs, and linux-source-7.2, which is fetched into FOLDER unless its .deb
# lies there (apt's settings are those of APT_CONFIG).
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
version=7.2
# shellcheck disable=SC2144
[ -e linux-source-${version}_*.deb ] || apt-get download linux-source-$version
dpkg-deb --fsys-tarfile linux-source-${version}_*.deb |
	tar -xOf - ./usr/src/linux-source-$version.tar.xz >linux-source-$version.tar.xz
nice -n 5 "$here/../../../.venv/bin/python" -c "
from pathlib import Path
from bluewater.kernel.build import build
build(Path('linux-source-$version.tar.xz'), Path('.'))
"
cp build/linux .
