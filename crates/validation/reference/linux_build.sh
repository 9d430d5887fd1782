#!/bin/sh
# Builds the kernel that linux_drawn.py and linux_*.py --kernel run: Linux for user mode, with virtual time
# of its own and the queue disciplines that Debian's has not, from Debian's package of the sources. What its
# queue disciplines draw comes from linux_draws.c.
#
#     linux_build.sh FOLDER [JOBS]    makes FOLDER/linux
#
# Needs Debian's packages build-essential, flex, bison, bc, xz-utils, and linux-source-7.2, which is
# fetched into FOLDER unless its .deb lies there (apt's settings are those of APT_CONFIG).
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
version=7.2
# shellcheck disable=SC2144
[ -e linux-source-${version}_*.deb ] || apt-get download linux-source-$version
if [ ! -d source ]; then
	mkdir -p unpacking
	dpkg-deb --fsys-tarfile linux-source-${version}_*.deb |
		tar -xOf - ./usr/src/linux-source-$version.tar.xz |
		tar -xJf - -C unpacking --strip-components=1
	mv unpacking source
fi
# Where a discipline asks the kernel for random numbers it gets ours.
cp "$here/linux_draws.c" source/net/sched/draws.c
grep -q draws.o source/net/sched/Makefile || {
	echo 'obj-y += draws.o'
	for name in dualpi2 pie fq_pie red choke cake; do
		printf 'CFLAGS_sch_%s.o +=' $name
		for call in get_random_u32 get_random_u64 get_random_bytes get_random_u16; do
			printf ' -D%s=draw_%s' $call ${call#get_random_}
		done
		echo
	done
} >>source/net/sched/Makefile
# A look at the clock takes 1 ns, not 256: a packet would come that much late.
sed -i 's/update_time_rel(TIMER_MULTIPLIER)/update_time_rel(1)/' source/arch/um/kernel/time.c
cd source
make ARCH=um allnoconfig KCONFIG_ALLCONFIG="$here/linux_config"
for line in $(grep -v '=n$' "$here/linux_config"); do
	grep -qx "$line" .config || { echo "not as asked for: $line" >&2 && exit 1; }
done
nice -n 5 make ARCH=um -j"${2:-2}" linux
cp linux ..
