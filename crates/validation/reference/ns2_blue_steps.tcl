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
source [file join [file dirname [info script]] ns2_feng.tcl]
begin $seed 1
senders 1
foreach {name value} [list freeze_ 0.1 increment_ 0.02 decrement_ 0.002 p_ 0 marks_ 0 lost_ 0 \
    long_ [expr int($room * $buffer / 100.0)]] { Queue/Blue set $name $value }
network Blue $access
$ns queue-limit $A $B $buffer

for {set i 0} {$i < 600} {incr i} {
    connection $i Agent/TCP/Sack1/NoEcnTimeout
    established $i
    $ns at [expr 2 + $i / 200 * 20 + [$setup uniform 0 $within]] "[ftp $i] start"
}

set queue [[$ns link $A $B] queue]
watch
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
