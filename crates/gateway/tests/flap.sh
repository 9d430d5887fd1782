# Interfaces go down and come back while TCP sends between two hosts.
. ./hosts.sh
bulk 10.9.0.2 3s & sending=$!
for interface in wan lan; do
    sleep 0.7
    ip link set $interface down
    sleep 0.3
    ip link set $interface up
done
wait $sending
bulk 10.9.0.2 1s
finish
