# Two hosts with nothing of their own to say, a gateway `$name` between them whose program `$g` may be replaced:
# $1 is a folder, $2 the gateway's program, the rest its options. To be sourced.
at=$1 g=$1/gateway name=$(basename "$1")
cp "$2" "$g"
shift 2
export XDG_RUNTIME_DIR=$at
ip link set lo up
unshare -n sleep 60 >&- 2>&- & left=$!
unshare -n sleep 60 >&- 2>&- & right=$!
trap 'for pid in $left $right $(pidof "$g"); do kill -9 $pid 2>&-; done; rm -f "$g" "$g.good"' EXIT
here=$(readlink /proc/self/ns/net)
for host in $left $right; do
    while [ "$(readlink /proc/$host/ns/net)" = "$here" ]; do sleep 0.05; done
done
side() {
    ip link add $1 type veth peer name eth0 netns $2
    nsenter -t $2 -n sh -c "
        echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6
        ip link set eth0 address 02:00:00:00:00:0$3; ip addr add 10.9.0.$3/24 dev eth0
        ip link set eth0 up; ip neigh replace 10.9.0.$4 lladdr 02:00:00:00:00:0$4 dev eth0"
    echo 1 > /proc/sys/net/ipv6/conf/$1/disable_ipv6
    ip link set $1 up
}
side lan $left 1 2
side wan $right 2 1
gateway() {
    "$g" run --lan lan --wan wan --name $name --log $at/log "$@" & run=$!
    until "$g" ctl $name show >&- 2>&-; do sleep 0.05; kill -0 $run || exit 10; done
}
gateway "$@"
field() { "$g" ctl $name show | grep -o "\"$1\":[^,}]*" | cut -d: -f2; }
departed() { field departures | head -n 1; }
upgrade() { "$g" ctl $name upgrade; }
# Once nothing is left of the last upgrade.
settled() { until [ "$(field handover)" = null ]; do sleep 0.05; done; }
burst() { nsenter -t $left -n bash -c "dd if=/dev/zero bs=1000 count=$1 status=none > /dev/udp/10.9.0.2/9"; }
# Packets are forwarded; else exits with $1.
flows() {
    before=$(departed)
    burst 3
    for i in $(seq 200); do [ $(departed) -gt $before ] && return; sleep 0.05; done
    exit $1
}
# Ends it, with its name.
end() {
    kill -INT $(field pid)
    for i in $(seq 200); do [ -e $at/bluewater/$name.sock ] || return 0; sleep 0.05; done
    exit 29
}
