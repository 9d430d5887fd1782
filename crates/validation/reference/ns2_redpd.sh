#!/bin/sh
# Makes ns2_redpd.csv with ns-2.35 (Debian's packages ns2 and ns2-examples): sh ns2_redpd.sh > ns2_redpd.csv
echo figure,queue,rtt_ms,test,seed,number,ambient,mbps,declared_s,cut_s
for seed in 1 2; do
    ns ns2_redpd.tcl 14 RED-PD 40 0 $seed
    ns ns2_redpd.tcl 14 RED-PD 40 1 $seed
    ns ns2_redpd.tcl 15 RED-PD 40 0 $seed
    ns ns2_redpd.tcl 15 RED-PD 40 1 $seed
done
for figure in 14 15; do
    ns ns2_redpd.tcl $figure RED 40 0 1
done
