# One connection of ns-2.35's Sack1 whose packets have scripted fates: prints when which packet comes to the link that
# gives them, in s, and its number. The network is that of ns2_feng.tcl with one pair of nodes.
#
#     ns ns2_fates.tcl SECONDS SEED FATES
#
# FATES    a letter a packet, from the SYN on, in the order of sending: s sent, m marked, d dropped. All packets behind
#          them are sent. A SYN is not ECN-capable, and is not marked.
#
# The clock of 10 ms has a phase, which ns-2 draws: the connection starts so much before 1.003 s, and times are
# printed as much later, as if it had none.

lassign $argv seconds seed fates
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set ecn_ 1
Agent/TCP set minrto_ 0.2
foreach node {L A B R} { set $node [$ns node] }
$ns duplex-link $L $A 100Mb 10ms DropTail
$ns duplex-link $A $B 45Mb 10ms DropTail
$ns duplex-link $B $R 100Mb 10ms DropTail
foreach {from to} [list $L $A $A $B $B $R] {
    $ns queue-limit $from $to 100000
    $ns queue-limit $to $from 100000
}

# What marks stands first, and counts all packets; what drops counts as many behind it.
foreach {letter marks} {d 0 m 1} {
    set list {}
    for {set k 0} {$k < [string length $fates]} {incr k} {
        if {[string index $fates $k] == $letter} { lappend list $k }
    }
    if {[llength $list] == 0} continue
    set model [new ErrorModel/List]
    $model unit pkt
    $model set markecn_ $marks
    eval $model droplist $list
    $model drop-target [new Agent/Null]
    $ns lossmodel $model $A $B
}

set tcp [new Agent/TCP/Sack1]
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $L $tcp
$ns attach-agent $R $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

# (SEED is above 0, as 0 means another each time.) The phase is the first number that is drawn when ns-2 begins.
$defaultRNG seed $seed
set phase [expr 0.01 * [$defaultRNG uniform 0 1]]
set out [open "| awk -v phase=$phase {/^r/ {printf \"%.6f %d\\n\", \$2 + phase, \$11}}" w]
$ns trace-queue $L $A $out
$ns at [expr 1.003 - $phase] "$ftp start"
$ns at $seconds { close $out; exit 0 }
$defaultRNG seed $seed
$ns run
