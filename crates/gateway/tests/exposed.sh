# A host, here, whose ports lan and wan the gateway $1 forwards between; a neighbour at each; and a network
# behind a third interface, mgmt. $2 says whether the neighbour of lan can reach the host meanwhile: `shut`
# or `open`. The rest is options. With $RENAME, a file for what the gateway says, lan has another name meanwhile.
set -u
gateway=$1 expected=$2
shift 2
for i in 1 2 3; do unshare -n sleep 60 & eval "host$i=\$!"; done
trap 'kill $host1 $host2 $host3 ${run-} 2>/dev/null' EXIT
here=$(readlink /proc/self/ns/net)
for host in $host1 $host2 $host3; do
    while [ "$(readlink /proc/$host/ns/net)" = "$here" ]; do sleep 0.05; done
done
ip link set lo up
ip link add lan address 02:00:00:00:00:01 type veth peer name eth0 netns $host1
ip link add wan type veth peer name eth0 netns $host2
ip link add mgmt type veth peer name eth0 netns $host3
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 2 > /proc/sys/net/ipv6/conf/lan/accept_ra
echo 0 > /proc/sys/net/ipv6/conf/lan/router_solicitations
ip addr add 10.66.0.1/24 dev mgmt
at() { host=$1; shift; nsenter -t "$host" -n "$@"; }
# Addresses are there at once, not when nobody else turns out to have them.
at $host1 sh -c "echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad"
for i in lan wan mgmt; do
    echo 0 > /proc/sys/net/ipv6/conf/$i/accept_dad
    ip link set $i up
done
for end in "$host1 10.9.0.1" "$host2 10.9.0.2" "$host3 10.66.0.2"; do
    at ${end% *} sh -c "ip link set lo up; ip addr add ${end#* }/24 dev eth0; ip link set eth0 up"
done
at $host3 ip route add 10.9.0.0/24 via 10.66.0.1
at $host1 ip route add 10.66.0.0/24 dev eth0
ip route add 10.9.0.1/32 dev lan

# What the neighbour of lan reaches: each probe says its name.
reached() {
    at $host1 python3 echo.py raw fe80::ff:fe00:1%eth0 >/dev/null && echo link-local
    at $host1 ip neigh flush dev eth0
    at $host1 python3 echo.py raw 10.66.0.1 >/dev/null && echo address
    at $host1 ip neigh replace 10.66.0.2 lladdr 02:00:00:00:00:01 dev eth0
    at $host1 python3 echo.py raw 10.66.0.2 >/dev/null && echo routed
    at $host1 python3 -c '
import socket, struct
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
prefix = socket.inet_pton(socket.AF_INET6, "2001:db8:bad::")
option = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 600, 600, 0) + prefix
body = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 600, 0, 0) + option
source = socket.inet_pton(socket.AF_INET6, "fe80::ff:fe00:9")
to = socket.inet_pton(socket.AF_INET6, "ff02::1")
pseudo = source + to + struct.pack("!II", len(body), 58)
total = sum(struct.unpack("!%dH" % (len(pseudo + body) // 2), pseudo + body))
while total >> 16:
    total = (total & 0xFFFF) + (total >> 16)
body = body[:2] + struct.pack("!H", 0xFFFF ^ total) + body[4:]
header = struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + source + to
raw.send(bytes.fromhex("333300000001020000000009 86dd") + header + body)'
    sleep 0.2
    ip -6 addr show dev lan | grep -q 2001:db8:bad && echo advertised
    ip -6 addr flush dev lan to 2001:db8:bad::/64
    ip -6 route flush dev lan proto ra
    true
}
all="link-local address routed advertised"
# What is to be reached may take some time on a busy machine.
check() {
    for k in 1 2 3 4 5; do
        found=$(reached | tr '\n' ' ')
        test "$found" = "$2" && return
        test -n "$2" || break
    done
    echo "$1: reached: $found, not $2"
    exit 1
}
check "without a gateway" "$all "
"$gateway" run --lan lan --wan wan --rate 100mbit --name exposed-$$ "$@" 2> "${RENAME:-/dev/stderr}" & run=$!
for i in $(seq 100); do "$gateway" ctl exposed-$$ show >&- 2>&- && break; sleep 0.05; done
# Of an altname the checks go on as before.
if test -n "${RENAME-}"; then
    ip link set lan name elsewhere && ip link property add dev elsewhere altname lan || exit 77
    for i in $(seq 100); do grep -q "is called elsewhere" "$RENAME" && break; sleep 0.05; done
    cat "$RENAME" >&2
fi
test $expected = open && check "while it runs" "$all " || check "while it runs" ""
at $host1 python3 echo.py raw 10.9.0.2 >/dev/null || { echo "nothing goes through"; exit 1; }
kill -KILL $run
wait $run
sleep 0.3
check "once it is killed" "$all "
