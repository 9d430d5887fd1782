# Two customers and their IPv6, up through a tree of classes: both at a time, one alone, a stranger. Between them what
# `ctl show` tells.
. ./hosts.sh
nsenter -t $left -n sh -c '
    ip addr add 10.9.0.11/24 dev eth0; ip route add 10.9.0.22 dev eth0 src 10.9.0.11
    ip addr add 10.9.0.12/24 dev eth0; ip route add 10.9.0.23 dev eth0 src 10.9.0.12'
nsenter -t $right -n sh -c 'ip addr add 10.9.0.22/24 dev eth0; ip addr add 10.9.0.23/24 dev eth0'
show() { "$gateway" ctl $run show --classes; }
show
bulk 10.9.0.2 3s & other=$!
bulk 10.9.0.22 3s
wait $other
show
bulk fd09::2 3s
show
bulk 10.9.0.23 1s
show
finish
