# RED and BLUE in ns-2.35 on Fig. 5 of Feng02: prints one row of ns2_fig5.csv.
#
#     ns ns2_fig5.tcl CONFIGURATION BUFFER ACCESS SOURCES SEED
#
# 1000 sources that are on for 2 s and off for 3 s in the mean (Pareto, shape 1.5) over 45 Mb/s; SACK, ECN without
# ECN timeouts; measured for 100 s after 100 s. It needs ns2_classes.so in the directory it is run in
# (ns2_classes.sh), which has BLUE and such a sender.
#
# CONFIGURATION  R1 to R4 of Table I (thresholds of 20 and 80 % of the buffer, max_p = 1, packets above max_th
#                marked), B1 to B4 of Table II.      BUFFER  packets.
# ACCESS         delay of an access link in ms, or mixed: 10, 15, 20, 25 and 30 by the node. The link has 10 ms.
# SOURCES        withdraw: all they want while on, nothing while off. A number: so many kb/s while on, and what
#                could not be sent in time stays in the send buffer.
#
# Connections are established in the first second, with one packet each: a SYN is not ECN-capable.

lassign $argv configuration buffer access app seed
load ./ns2_classes.so Ns2_classes
remove-all-packet-headers
add-packet-header IP TCP Flags RTP
set ns [new Simulator]
ns-random [expr 100 + $seed]
set setup [new RNG]
$setup seed [expr 5000 + $seed]
set periods [new RNG]
$periods seed [expr 9000 + $seed]

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set ecn_ 1
array set configurations {
    R1 0.0002  R2 0.002  R3 0.02  R4 0.2
    B1 {0.01 0.0025}  B2 {0.1 0.0025}  B3 {0.01 0.02}  B4 {0.1 0.02}
}
if {[string match R* $configuration]} {
    set queue RED
    Queue/RED set q_weight_ $configurations($configuration)
    Queue/RED set bytes_ false
    Queue/RED set queue_in_bytes_ false
    Queue/RED set gentle_ false
    Queue/RED set adaptive_ 0
    Queue/RED set drop_tail_ true
    Queue/RED set linterm_ 1
    Queue/RED set setbit_ true
    Queue/RED set mean_pktsize_ 1000
    Queue/RED set wait_ false
    Queue/RED set mark_p_ 2
    Queue/RED set thresh_ [expr 0.2 * $buffer]
    Queue/RED set maxthresh_ [expr 0.8 * $buffer]
} else {
    set queue Blue
    lassign $configurations($configuration) freeze step
    Queue/Blue set freeze_ $freeze
    Queue/Blue set increment_ $step
    Queue/Blue set decrement_ [expr $step / 10]
    Queue/Blue set p_ 0
    Queue/Blue set marks_ 0
}

set A [$ns node]
set B [$ns node]
foreach i {0 1 2 3 4} mixed {10 15 20 25 30} {
    set left($i) [$ns node]
    set right($i) [$ns node]
    set delay [expr {$access == "mixed" ? $mixed : $access}]
    foreach {from to} [list $left($i) $A $B $right($i)] {
        $ns duplex-link $from $to 100Mb ${delay}ms DropTail
        $ns queue-limit $from $to 10000
        $ns queue-limit $to $from 10000
    }
}
$ns simplex-link $A $B 45Mb 10ms $queue
$ns simplex-link $B $A 45Mb 10ms DropTail
$ns queue-limit $A $B $buffer
$ns queue-limit $B $A 10000

# Pareto of this mean with shape 1.5, s.
proc period {mean} {
    global periods
    expr {$mean / 3.0 * pow(1.0 - [$periods uniform 0 1], -1 / 1.5)}
}
proc on {i} {
    global ns tcp
    $tcp($i) advanceby 100000000
    $ns at [expr [$ns now] + [period 2]] "off $i"
}
proc off {i} {
    global ns tcp
    $tcp($i) advance [$tcp($i) set maxseq_]
    $ns at [expr [$ns now] + [period 3]] "on $i"
}
for {set i 0} {$i < 1000} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1/NoEcnTimeout]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $left([expr int([$setup uniform 0 5])]) $tcp($i)
    $ns attach-agent $right([expr int([$setup uniform 0 5])]) $sink
    $ns connect $tcp($i) $sink
    $tcp($i) set fid_ $i
    $ns at [$setup uniform 0 1] "$tcp($i) advanceby 2"
    set start [$setup uniform 1 2]
    if {$app == "withdraw"} {
        $ns at $start "on $i"
    } else {
        set source [new Application/Traffic/Pareto]
        $source set packetSize_ 1000
        $source set rate_ ${app}kb
        $source set burst_time_ 2s
        $source set idle_time_ 3s
        $source set shape_ 1.5
        $source attach-agent $tcp($i)
        $ns at $start "$source start"
    }
}

set monitor [$ns monitor-queue $A $B ""]
set integral [$monitor get-pkts-integrator]
proc counts {} {
    global monitor integral ns
    $integral newpoint [$ns now] [$monitor set pkts_]
    list [$monitor set parrivals_] [$monitor set pdrops_] [$monitor set bdepartures_] [$integral set sum_]
}
$ns at 101 { set before [counts] }
$ns at 201 {
    foreach name {arrivals drops bytes packets} now [counts] then $before {
        set $name [expr double($now) - $then]
    }
    puts [format "%s,%s,%s,%s,%s,%.7f,%.6f,%.2f" $configuration $buffer $access $app $seed \
        [expr $drops / $arrivals] [expr $bytes * 8 / 45e6 / 100] [expr $packets / 100]]
    exit 0
}
$ns run
