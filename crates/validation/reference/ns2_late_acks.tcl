# RED and BLUE in ns-2.35 on Fig. 13 of Feng02, before hosts that delay acknowledgements: prints one row of
# ns2_late_acks.csv.
#
#     ns ns2_late_acks.tcl QUEUE CONNECTIONS ACK_MS SEED
#
# 10 Mb/s with room for 33 packets of 1500 bytes; SACK, ECN without ECN timeouts; measured for 50 s after 40 s. It
# needs ns2_classes.so in the directory it is run in (ns2_classes.sh).
#
# QUEUE   RED, ns-2's own, which signals nothing to a packet that finds fewer than two waiting; RED/Short, which has
#         not that rule; Blue.      ACK_MS  how long an acknowledgement waits, each connection by a timer of its own.

lassign $argv queue connections wait seed
source [file join [file dirname [info script]] ns2_feng.tcl]
begin $seed 1
senders 1
Agent/TCP set packetSize_ 1460
Agent/TCPSink/Sack1/DelAck set interval_ [expr $wait / 1000.0]
red 0.002 6.667 26.667
Queue/RED set mean_pktsize_ 1500
foreach {name value} {freeze_ 0.05 increment_ 0.01 decrement_ 0.001 p_ 0 marks_ 0 lost_ 0 long_ 0} {
    Queue/Blue set $name $value
}
foreach node {left A B right} { set $node [$ns node] }
foreach {from to} [list $left $A $B $right] {
    $ns duplex-link $from $to 100Mb 0.1ms DropTail
    $ns queue-limit $from $to 10000
    $ns queue-limit $to $from 10000
}
$ns simplex-link $A $B 10Mb 1ms $queue
$ns simplex-link $B $A 10Mb 1ms DropTail
$ns queue-limit $A $B 33
$ns queue-limit $B $A 10000

for {set i 0} {$i < $connections} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1/NoEcnTimeout]
    set sink($i) [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $left $tcp($i)
    $ns attach-agent $right $sink($i)
    $ns connect $tcp($i) $sink($i)
    $tcp($i) set fid_ $i
    established $i
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$setup uniform 1 2] "$ftp start"
}
set monitor [$ns monitor-queue $A $B ""]
proc now {} {
    global monitor
    return [list [$monitor set parrivals_] [$monitor set pdrops_] [$monitor set bdepartures_]]
}
$ns at 40 { set before [now] }
$ns at 90 {
    foreach name {arrivals drops bytes} then $before now [now] { set $name [expr double($now) - $then] }
    puts "$queue,$connections,$wait,$seed,[format %.3f,%.4f [expr $bytes * 8 / 5e6] [expr 100 * $drops / $arrivals]]"
    exit 0
}
$ns run
