# Two hosts in namespaces of their own, a gateway between them: lan - gateway - wan. To be sourced.
# $1 is the gateway's program, $2 where its log goes, the rest its options.
set -eu
gateway=$1 log=$2
shift 2
unshare -n sleep 60 & left=$!
unshare -n sleep 60 & right=$!
trap 'kill $left $right ${run-} ${sink-} 2>/dev/null || true' EXIT
here=$(readlink /proc/self/ns/net)
for host in $left $right; do
    while [ "$(readlink /proc/$host/ns/net)" = "$here" ]; do sleep 0.05; done
done
ip link add lan type veth peer name eth0 netns $left
ip link add wan type veth peer name eth0 netns $right
for end in "$left 1" "$right 2"; do
    nsenter -t "${end% *}" -n sh -c "
        echo 1 > /proc/sys/net/ipv4/tcp_ecn
        ip addr add 10.9.0.${end#* }/24 dev eth0; ip addr add fd09::${end#* }/64 dev eth0 nodad
        ip link set eth0 up"
done
for host in $left $right; do nsenter -t $host -n ip link set eth0 mtu ${MTU:-1500}; done
for port in lan wan; do ip link set $port mtu ${MTU:-1500} up; done
"$gateway" run --lan lan --wan wan --log "$log" "$@" & run=$!
nsenter -t $right -n "$gateway" sink & sink=$!
while kill -0 $run 2>&-; do
    test -s "$log" && break
    sleep 0.05
done
sleep 0.3
bulk() {
    nsenter -t $left -n "$gateway" bulk "$1" --flows 2 --time "$2" --congestion reno
}
finish() {
    kill -INT $run
    wait $run
    kill $sink
}
