#!/bin/sh
# Builds ns2_classes.so, which `load ./ns2_classes.so Ns2_classes` adds to Debian's ns-2.35 as it is:
#
#     sh ns2_classes.sh SOURCE INCLUDE
#
# SOURCE   the source of ns-2.35, of which the headers and two files are used: Debian's ns2_2.35+dfsg.orig.tar.xz.
# INCLUDE  the headers of Debian's libotcl1-dev and libtclcl1-dev (`dpkg-deb -x`: usr/include). Tcl's are
#          taken from tcl8.6-dev.
#
# Agent/TCP/Sack1/NoEcnTimeout is ns-2's tcp-sack1.cc under another name, with one line otherwise: an ECN echo leaves
# a window of one packet at the least and the timeout as it is, as the BLUE paper says of its first experiments.
# ns-2 leaves half of one, so that the sender waits for its timer, and doubles the timeout from the second echo in
# a row on. Queue/RED/Short is ns-2's red.cc, which signals packets also where fewer than two wait.
set -eu
here=$(dirname "$0")
src=$1 include=$2
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cat >"$work/autoconf.h" <<'END'
#define STDC_HEADERS 1
#define SIZEOF_LONG 8
#define HAVE_INT64 1
#define HAVE_STL 1
#define HAVE_SNPRINTF 1
END
sed -e 's/Sack1TcpAgent/NoTimeoutAgent/g; s/Sack1TcpClass/NoTimeoutClass/; s/class_sack/class_no_timeout/' \
    -e 's,"Agent/TCP/Sack1","Agent/TCP/Sack1/NoEcnTimeout",' \
    -e '/^static class NoTimeoutClass/a\	public: using TclClass::bind;' \
    -e 's/^\t\tecn(tcph->seqno());/		ecn_backoff_ = 0, ecn(tcph->seqno()), ecn_backoff_ = 0, cwnd_ = cwnd_ < 1 ? 1 : double(cwnd_);/' "$src/tcp/tcp-sack1.cc" >"$work/classes.cc"
[ "$(grep -c 'ecn_backoff_ = 0, ecn(tcph' "$work/classes.cc")" = 1 ]
sed -e 's/REDQueue/ShortRedQueue/g; s/ns_red_h/ns_short_red_h/g' "$src/queue/red.h" >"$work/short_red.h"
sed -e 's/REDQueue/ShortRedQueue/g; s/REDClass/ShortRedClass/g; s/class_red/class_short_red/g; s/rcsid/red_rcsid/' \
    -e 's,"Queue/RED","Queue/RED/Short",; s/"red.h"/"short_red.h"/' \
    -e 's/^static class ShortRedClass : public TclClass {/& public: using TclClass::bind;/' \
    -e 's/if (qavg >= edp_.th_min && qlen > 1) {/if (qavg >= edp_.th_min) {/' "$src/queue/red.cc" >>"$work/classes.cc"
[ "$(grep -c 'if (qavg >= edp_.th_min) {' "$work/classes.cc")" = 1 ]
cat "$here/ns2_classes.cc" >>"$work/classes.cc"
set -- -I"$work" -I"$src" -I"$include" -I"$include/tclcl" -I/usr/include/tcl8.6
for part in common tcp queue tools trace mac sctp mobile routing classifier link apps; do set -- "$@" -I"$src/$part"; done
g++ -O2 -w -fpermissive -shared -fPIC -DTCP_DELAY_BIND_ALL -DNO_TK -DUSE_SINGLE_ADDRESS_SPACE -DUSE_INTERP_RESULT \
    -DCPP_NAMESPACE=std "$@" "$work/classes.cc" -o ns2_classes.so
