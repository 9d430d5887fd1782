# Stochastic fair queueing with RED in each queue, in ns-2.35, as in Feng02's Table III and Fig. 16: prints one row
# of ns2_sfq_red.csv.
#
#     ns ns2_sfq_red.tcl ECN_TIMEOUTS W_Q MIN_RTO RATE SEED
#
# 400 connections (SACK, ECN) and a flow of RATE Mb/s that is ECN-capable and does not answer share 45 Mb/s; 10 ms on
# every link. 46 queues of 9 packets take turns, each flow in one by chance; each is ns-2's RED, thresholds of 2 and 8
# packets, max_p = 1, packets above max_th marked. It needs ns2_classes.so in the directory it is run in
# (ns2_classes.sh).
#
# ECN_TIMEOUTS  1: as ns-2 has it, a sender whose window is one packet waits for its timer after an ECN echo. 0: not.
# MIN_RTO       s, the least timeout.
#
# The columns, of 100 s from 20 s on: Jain's index of the connections, the greatest and the median of what one
# gets, of a fair share (1/401 of the link); how many per cent of them get less than a half and than four fifths of
# it, of all, and of those outside of the flow's queue; what is lost of the connections and of the flow, Mb/s.

lassign $argv ecn_timeouts w_q min_rto rate seed
source [file join [file dirname [info script]] ns2_feng.tcl]
begin $seed 1
senders 1 $min_rto
red $w_q 2 8
network Bins
set link [$ns link $A $B]
set bins [$link queue]
for {set i 0} {$i < 46} {incr i} {
    set red [new Queue/RED]
    $red set limit_ 9
    $red link [$link set link_]
    $red reset
    $red drop-target [$link set drophead_]
    $bins bin $red
}
set agent [expr {$ecn_timeouts ? "Agent/TCP/Sack1" : "Agent/TCP/Sack1/NoEcnTimeout"}]
for {set i 0} {$i <= 400} {incr i} {
    if {$i == 400} {
        set udp [new Agent/UDP]
        pair $i $udp [new Agent/Null]
    } else {
        connection $i $agent
    }
    set bin($i) [expr int([$setup uniform 0 46])]
    $bins flow $i $bin($i)
    if {$i == 400} {
        $ns at [$setup uniform 0 1] "[datagrams $udp $rate 1] start"
    } else {
        established $i
        $ns at [$setup uniform 1 2] "[ftp $i] start"
    }
}

set monitor [$ns makeflowmon Fid]
$ns attach-fmon $link $monitor 0
proc counts {} {
    global tcp monitor
    set all {}
    for {set i 0} {$i < 400} {incr i} { lappend all [$tcp($i) set ack_] }
    set cbr 0
    foreach flow [$monitor flows] { if {[$flow set flowid_] == 400} { set cbr [$flow set bdrops_] } }
    list $all [$monitor set bdrops_] $cbr
}
$ns at 20 { set before [counts] }
$ns at 120 {
    set now [counts]
    lassign $before then drops_then cbr_then
    lassign $now got drops cbr
    set fair [expr 45e6 / 401]
    set sum 0.0; set squares 0.0; set shares {}; set half 0; set most 0; set half_other 0; set most_other 0; set other 0
    for {set i 0} {$i < 400} {incr i} {
        set share [expr ([lindex $got $i] - [lindex $then $i]) * 8000.0 / 100 / $fair]
        lappend shares $share
        set sum [expr $sum + $share]
        set squares [expr $squares + $share * $share]
        incr half [expr $share < 0.5]
        incr most [expr $share < 0.8]
        if {$bin($i) != $bin(400)} {
            incr other
            incr half_other [expr $share < 0.5]
            incr most_other [expr $share < 0.8]
        }
    }
    set shares [lsort -real $shares]
    puts [format "%s,%s,%s,%s,%s,%.4f,%.3f,%.3f,%.2f,%.2f,%.2f,%.2f,%.3f,%.3f" $ecn_timeouts $w_q $min_rto $rate $seed \
        [expr $sum * $sum / (400 * $squares)] [lindex $shares end] [lindex $shares 199] \
        [expr $half / 4.0] [expr $most / 4.0] [expr 100.0 * $half_other / $other] [expr 100.0 * $most_other / $other] \
        [expr ($drops - $drops_then - $cbr + $cbr_then) * 8e-8] [expr ($cbr - $cbr_then) * 8e-8]]
    exit 0
}
$ns run
