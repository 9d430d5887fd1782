# TCP between two hosts, and then the gateway is killed.
. ./hosts.sh
bulk 10.9.0.2 1s
sleep 0.3
kill -KILL $run
! wait $run
kill $sink
