#!/bin/sh
# Makes ns2_hrc.csv with ns-2.35 (Debian's package ns2): sh ns2_hrc.sh > ns2_hrc.csv
echo discipline,tcp,rate_mbps,seed,tcp_flows,udp_flows,average,packets,average_below_max_th,packets_below_max_th,packets_up_to_max_th,average_most,udp_mbps,tcp_mbps
for seed in 1 2 3 4 5; do
    for flows in "1 1" "10 1" "10 5"; do
        for rate in 1 1.5 2 3 4 6 8; do ns ns2_hrc.tcl Reno $rate $seed $flows; done
    done
done
