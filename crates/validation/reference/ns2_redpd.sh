#!/bin/sh
# Makes ns2_redpd.csv with ns-2.35 (Debian's packages ns2 and ns2-examples): sh ns2_redpd.sh > ns2_redpd.csv
# Or ns2_redpd_release.csv: sh ns2_redpd.sh release > ns2_redpd_release.csv
# Or ns2_redpd_below.csv, what the filter drops in the runs of Fig. 22: sh ns2_redpd.sh below > ns2_redpd_below.csv
# Or ns2_redpd_declared.csv, the test of Fig. 16 in more seeds: sh ns2_redpd.sh declared > ns2_redpd_declared.csv
if [ "$1" = below ]; then
    echo rtt_ms,seed,packets,filtered
    for seed in 1 2; do
        for rtt in 10 20 30; do ns ns2_redpd.tcl below RED-PD $rtt 0 $seed; done
    done
    exit
fi
if [ "$1" = declared ]; then
    echo seed,declared_s
    for seed in $(seq 6 45); do
        ns ns2_redpd.tcl 16 RED-PD 40 1 $seed | awk -F, '{ printf "%s,%.2f\n", $5, $9 - 50 }'
    done
    exit
fi
if [ "$1" = release ]; then
    echo seed,back_80_s,back_85_s,back_90_s,back_95_s,released_s
    for seed in $(seq 40); do ns ns2_redpd.tcl release RED-PD 40 0 $seed 1; done
    exit
fi
echo figure,queue,rtt_ms,test,seed,number,ambient,mbps,declared_s,cut_s,released_s
run() { ns ns2_redpd.tcl "$@"; }
for seed in 1 2; do
    for figure in 14 15; do
        for test in 0 1; do run $figure RED-PD 40 $test $seed; done
    done
done
for figure in 14 15; do run $figure RED 40 0 1; done
for seed in 1 2 3 4 5; do
    for number in 1@1.5 1@2 2@2; do run 11 RED-PD 40 0 $seed $number; done
    for p in 0.01 0.05 0.1; do
        for gamma in 0.25 1 1.5 2 4 8; do run 13 RED-PD 40 0 $seed $gamma@$p; done
    done
    for test in 0 1; do run 16 RED-PD 40 $test $seed; done
    for number in 0.7 0.9 1.2; do run bytes RED-PD 40 0 $seed $number; done
    for number in 1.4@0.01 1.4@0.05; do run bytes-p RED-PD 40 0 $seed $number; done
    for rtt in 80 170; do run 22 RED-PD $rtt 0 $seed; done
done
# Lists of a small R are many, and Tcl is slow.
for seed in 1 2; do
    run bytes-p RED-PD 40 0 $seed 1.4@0.1
    for rtt in 1 10 20 30 40 60 120; do run 22 RED-PD $rtt 0 $seed; done
done
for queue in RED RED-PD; do
    for number in 1 2 4 8 12 16; do run 20 $queue 60 0 1 $number; done
    for number in 5cbr 5tcp; do run 19 $queue 40 0 1 $number; done
done
# More seeds, made later.
for seed in 1 2 3 4 5; do
    for gamma in 0.25 1 1.5 2 4 8; do run 13 RED-PD 40 0 $seed $gamma@0.03; done
done
for seed in 2 3 4 5; do
    for queue in RED RED-PD; do
        for number in 5cbr 5tcp; do run 19 $queue 40 0 $seed $number; done
    done
done
for seed in 2 3 4; do
    for queue in RED RED-PD; do
        for number in 1 2 4 8; do run 20 $queue 60 0 $seed $number; done
    done
done
for seed in 2 3; do
    for queue in RED RED-PD; do
        for number in 12 16; do run 20 $queue 60 0 $seed $number; done
    done
done
