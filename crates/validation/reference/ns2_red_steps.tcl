# RED in ns-2.35 under the steps of Feng02's Fig. 9: prints one row of ns2_red_steps.csv.
#
#     ns ns2_red_steps.tcl ACCESS BUFFER MAX_TH SEED [MIN_RTO [QUEUE]]
#
# 200 connections more every 20 s, up to 1000, of 45 Mb/s for 100 s; SACK with ECN and, as ns-2 has them, ECN
# timeouts; R2 of Table I (w_q = 0.002, max_p = 1, packets above max_th marked).
#
# ACCESS   delay of an access link in ms, or mixed: 10, 15, 20, 25 and 30 by the node. The link has 10 ms.
# BUFFER   packets (of 1040 bytes).      MAX_TH  per cent of it; min_th is a quarter of that.
# MIN_RTO  s, the least timeout; 0.2, as in ns-2, where it is not given.
# QUEUE    RED, ns-2's, or RED/Short, which signals packets also where fewer than two wait: it needs ns2_classes.so in
#          the directory it is run in (ns2_classes.sh).
#
# Connections are established in the first second, with one packet each, as those of the experiment are: a SYN
# is not ECN-capable. The columns: loss of all packets, of those in the first 2 s of a step, of those in
# second halves, and use of the link.

lassign $argv access buffer max_th seed min_rto queue
if {$min_rto == ""} { set min_rto 0.2 }
if {$queue == ""} { set queue RED }
source [file join [file dirname [info script]] ns2_feng.tcl]
begin $seed [expr {$queue != "RED"}]
senders 1 $min_rto
red 0.002 [expr $max_th * $buffer / 400.0] [expr $max_th * $buffer / 100.0]
network $queue $access
$ns queue-limit $A $B $buffer

for {set i 0} {$i < 1000} {incr i} {
    connection $i Agent/TCP/Sack1
    established $i
    $ns at [expr 2 + $i / 200 * 20 + [$setup uniform 0 1]] "[ftp $i] start"
}

watch
array set sum {all,came 0 all,lost 0 start,came 0 start,lost 0 late,came 0 late,lost 0}
proc part {name} {
    global monitor sum before
    set now [list [$monitor set parrivals_] [$monitor set pdrops_]]
    foreach what {came lost} new $now old $before {
        set sum($name,$what) [expr $sum($name,$what) + $new - $old]
        set sum(all,$what) [expr $sum(all,$what) + $new - $old]
    }
    set before $now
}
proc loss {name} { global sum; format %.6f [expr double($sum($name,lost)) / $sum($name,came)] }
array set sum {middle,came 0 middle,lost 0}
$ns at 2 {
    set before [list [$monitor set parrivals_] [$monitor set pdrops_]]
    set bytes [$monitor set bdepartures_]
}
for {set step 0} {$step < 5} {incr step} {
    set t [expr 2 + 20 * $step]
    $ns at [expr $t + 2] { part start }
    $ns at [expr $t + 10] { part middle }
    $ns at [expr $t + 19.999] { part late }
}
$ns at 102 {
    puts "$access,$buffer,$max_th,$seed,$min_rto,$queue,[loss all],[loss start],[loss late],[format %.5f [expr ([$monitor set bdepartures_] - $bytes) * 8 / 45e6 / 100]]"
    exit 0
}
$ns run
