#!/bin/sh
# Makes ns2_tfrc.csv with ns-2.35 (Debian's package ns2): sh ns2_tfrc.sh > ns2_tfrc.csv
echo queue,load,seed,tcp_pps,tfrc_pps,tcp_loss,tfrc_loss
for seed in 1 2 3; do
    for p in 0.001 0.003 0.01 0.03 0.1; do
        ns ns2_tfrc.tcl lossy $p $seed
    done
    for load in 0 125; do
        ns ns2_tfrc.tcl DropTail $load $seed
        ns ns2_tfrc.tcl RED $load $seed
    done
done
