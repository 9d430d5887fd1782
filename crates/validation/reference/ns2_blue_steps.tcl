# BLUE in ns-2.35 under the steps of Feng02's Fig. 6: prints one row of ns2_blue_steps.csv.
#
#     ns ns2_blue_steps.tcl ACCESS BUFFER L WITHIN SEED
#
# 200 connections more every 20 s, up to 600, of 45 Mb/s for 60 s; SACK with ECN and without ECN timeouts; B4 of
# Table II (100 ms, 0.02 and 0.002). It needs ns2_classes.so in the directory it is run in (ns2_classes.sh).
#
# ACCESS   delay of an access link in ms, or mixed: 10, 15, 20, 25 and 30 by the node. The link has 10 ms.
# BUFFER   packets.      L       per cent of it, 0 for none.
# WITHIN   s in which the 200 of a step begin.
#
# Connections are established in the first second, with one packet each, as those of the experiment are: a SYN
# is not ECN-capable. The columns: intervals of 100 ms, of 600, in which the queue overflowed, and those of the
# second halves of the steps among them; p_m at the end of each step; the use of the link in each step, the
# first 2 s left out.

lassign $argv access buffer room within seed
load ./ns2_classes.so Ns2_classes
remove-all-packet-headers
add-packet-header IP TCP Flags RTP
set ns [new Simulator]
ns-random [expr 100 + $seed]
set setup [new RNG]
$setup seed [expr 5000 + $seed]

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set ecn_ 1
foreach {name value} [list freeze_ 0.1 increment_ 0.02 decrement_ 0.002 p_ 0 marks_ 0 lost_ 0 \
    long_ [expr int($room * $buffer / 100.0)]] { Queue/Blue set $name $value }

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
$ns simplex-link $A $B 45Mb 10ms Blue
$ns simplex-link $B $A 45Mb 10ms DropTail
$ns queue-limit $A $B $buffer
$ns queue-limit $B $A 10000

for {set i 0} {$i < 600} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1/NoEcnTimeout]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $left([expr int([$setup uniform 0 5])]) $tcp($i)
    $ns attach-agent $right([expr int([$setup uniform 0 5])]) $sink
    $ns connect $tcp($i) $sink
    $tcp($i) set fid_ $i
    $ns at [$setup uniform 0 1] "$tcp($i) advanceby 2"
    set source [new Application/FTP]
    $source attach-agent $tcp($i)
    $ns at [expr 2 + $i / 200 * 20 + [$setup uniform 0 $within]] "$source start"
}

set queue [[$ns link $A $B] queue]
set monitor [$ns monitor-queue $A $B ""]
set full 0
set late 0
set lost 0
set levels ""
set used ""
proc interval {k} {
    global queue full late lost levels
    set now [$queue set lost_]
    if {$now > $lost} {
        incr full
        if {($k - 1) % 200 >= 100} { incr late }
    }
    set lost $now
    if {$k % 200 == 0} { append levels "[format %.3f [$queue set p_]] " }
}
proc sent {} { global monitor; $monitor set bdepartures_ }
$ns at 2 { set lost [$queue set lost_] }
for {set k 1} {$k <= 600} {incr k} { $ns at [expr 2 + $k / 10.0] "interval $k" }
foreach {from to} {4 22 22 42 42 62} {
    $ns at $from { set bytes [sent] }
    $ns at [expr $to - 1e-6] "append used \"\[format %.4f \[expr (\[sent\] - \$bytes) * 8 / 45e6 / ($to - $from)]] \""
}
$ns at 62.001 {
    puts "$access,$buffer,$room,$within,$seed,$full,$late,[string trim $levels],[string trim $used]"
    exit 0
}
$ns run
