# TCP through a VXLAN tunnel between two hosts, whose kernels leave super-packets and checksums to be
# done to whoever is behind them.
. ./hosts.sh
for end in "$left 1 2" "$right 2 1"; do
    set -- $end
    nsenter -t $1 -n sh -c "
        ip link add vx0 type vxlan id 42 local 10.9.0.$2 remote 10.9.0.$3 dstport 4789 udpcsum
        ip addr add 10.8.0.$2/24 dev vx0; ip addr add fd08::$2/64 dev vx0 nodad
        ip link set vx0 up"
done
sleep 0.5
bulk 10.8.0.2 2s
bulk fd08::2 2s
finish
