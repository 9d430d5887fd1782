# HRC's network with BLUE or RED in ns-2: its queue's trace, from which ns2_hrc_blue.py makes a row.
#
#     ns ns2_hrc_blue.tcl AQM TCP DELAY RATE SEED FILE
#
# Ten TCP flows (Tahoe, Reno, Newreno, Sack1) and one flow of RATE Mb/s (flow 99) share 1 Mb/s of DELAY ms
# each way, with Blue (Feng-ns; ns-2.35 does not have it) or RED with 50 and 100 of 150 packets.

lassign $argv aqm tcp delay rate seed file
set ns [new Simulator]
ns-random [expr 100 + $seed]
set starts [new RNG]
$starts seed [expr 5000 + $seed]
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ false
Queue/RED set adaptive_ 0
Queue/RED set wait_ false
Queue/RED set linterm_ 10
Queue/RED set thresh_ 50
Queue/RED set maxthresh_ 100
Queue/RED set q_weight_ 0.002
Queue/RED set mean_pktsize_ 1000
if {$aqm == "Blue"} {
    Queue/Blue set increment 0.02
    Queue/Blue set decrement 0.002
    Queue/Blue set dhold-time 10ms
    Queue/Blue set ihold-time 10ms
    Queue/Blue set setbit false
}
Agent/TCP set window_ 50
Agent/TCP set packetSize_ 960

foreach node {left a b right} { set $node [$ns node] }
$ns duplex-link $left $a 100Mb 5ms DropTail
$ns simplex-link $a $b 1Mb [set delay]ms $aqm
$ns simplex-link $b $a 1Mb [set delay]ms DropTail
$ns duplex-link $b $right 100Mb 5ms DropTail
foreach {from to} [list $left $a $b $a $b $right] { $ns queue-limit $from $to 10000 }
$ns queue-limit $a $b 150
if {$aqm == "Blue"} { [[$ns link $a $b] queue] link [[$ns link $a $b] set link_] }
set trace [open $file w]
$ns trace-queue $a $b $trace

for {set i 0} {$i < 10} {incr i} {
    set source($i) [expr {$tcp == "Tahoe" ? [new Agent/TCP] : [new Agent/TCP/$tcp]}]
    set sink($i) [expr {$tcp == "Sack1" ? [new Agent/TCPSink/Sack1] : [new Agent/TCPSink]}]
    $source($i) set fid_ $i
    $ns attach-agent $left $source($i)
    $ns attach-agent $right $sink($i)
    $ns connect $source($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $source($i)
    $ns at [$starts uniform 0 1] "$ftp($i) start"
}
set udp [new Agent/UDP]
set null [new Agent/Null]
$udp set fid_ 99
$ns attach-agent $left $udp
$ns attach-agent $right $null
$ns connect $udp $null
$udp set packetSize_ 10000
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 1000
$cbr set interval_ [expr 0.008 / $rate]
$cbr attach-agent $udp
$ns at [$starts uniform 0 1] "$cbr start"
$ns at 120 { flush $trace; close $trace; exit 0 }
$ns run
