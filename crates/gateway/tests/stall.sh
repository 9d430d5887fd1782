# 6000 datagrams come while the gateway is stopped; one before, so that the hosts know each other.
. ./hosts.sh
datagrams() {
    nsenter -t $left -n bash -c \
        "dd if=/dev/zero bs=100 count=$1 status=none > /dev/udp/10.9.0.2/9"
}
datagrams 1
sleep 0.5
kill -STOP $run
datagrams 6000
kill -CONT $run
sleep 1.5
finish
