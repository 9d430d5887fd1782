# A host, here, with a network beyond it: 203.0.113.1 is its router and name server, 198.51.100.1 beyond.
# $1 is the gateway; the rest is what `sh` does here.
set -e
gateway=$1
shift
unshare -n sleep 60 &
beyond=$!
trap 'kill $beyond' EXIT
while [ "$(readlink /proc/$beyond/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add eth0 type veth peer name eth0 netns $beyond
ip link set lo up
ip addr add 203.0.113.2/24 dev eth0
ip link set eth0 up
ip route add default via 203.0.113.1
nsenter -t $beyond -n sh -c '
    ip link set lo up
    ip addr add 203.0.113.1/24 dev eth0
    ip addr add 198.51.100.1/32 dev lo
    ip link set eth0 up'
nsenter -t $beyond -n python3 internet.py serve &
serving=$!
trap 'kill $beyond $serving' EXIT
sleep 0.3
gateway=$gateway sh -c "$*"
