#!/bin/sh
# Makes ns2_redpd_tfrc.csv: what the authors' own script for Figs. 20 and 21 of Mahajan01 gives, with ten seeds.
#
#     sh ns2_redpd_tfrc.sh > ns2_redpd_tfrc.csv
#
# The runs are those of tfrc/tfrc.sh in tcl/ex/red-pd of ns-2's examples (Debian's package ns2-examples; RED_PD
# names the directory, if it is another): 8 to 32 flows in all, a quarter of them of each kind, 500 s; the sums
# are those of tfrc/tfrc.pl there, over 490 s. Digits differ from one run of the script to the next, as it draws the
# starts by its seed and the rest by the clock.
examples=${RED_PD:-/usr/share/doc/ns2/examples/tcl/ex/red-pd}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cp -r "$examples"/. "$work"
cd "$work" || exit
echo queue,flows,seed,tcp_30_mbps,tfrc_30_mbps,tcp_120_mbps,tfrc_120_mbps,drop_rate
for seed in 1 2 3 4 5 6 7 8 9 10; do
    for flows in 8 12 16 20 24 28 32; do
        for enable in 0 1; do
            ns red-pd.tcl one netTFRC TFRC enable $enable rtt 0.060 flows $flows verbose 1 time 500 seed $seed >told 2>errors
            awk -v seed=$seed -v flows=$flows -v enable=$enable '
                $4 != 0 && $2 == 490 { if ($4 <= flows / 2) { if ($4 % 2) a += $6; else b += $6 } else if ($4 % 2) c += $6; else d += $6 }
                END { printf "%s,%d,%d,%.4f,%.4f,%.4f,%.4f", (enable ? "RED-PD" : "RED"), flows, seed, b * 8 / 490e6, a * 8 / 490e6, d * 8 / 490e6, c * 8 / 490e6 }
            ' one.netTFRC.TFRC.$enable.flows
            awk '/curr/ { lost += $11; came += $13 } END { printf ",%.5f\n", came ? lost / came : 0 }' told
        done
    done
done
