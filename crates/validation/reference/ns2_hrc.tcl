# HRC's network with RED in ns-2.35: writes one row of ns2_hrc.csv, which `sh ns2_hrc.sh > ns2_hrc.csv` makes.
#
#     ns ns2_hrc.tcl TCP RATE SEED TCP_FLOWS UDP_FLOWS
#
# TCP flows (Reno, Newreno, Sack1) and flows of RATE Mb/s each share 1 Mb/s, RED with 50 and 100 of 150
# packets. The report's RED was that of ns-2. From 20 to 120 s, sampled every 10 ms: the mean of RED's average
# and of the queue that the last packet to come had found (curq_), for how much of the time either is below 100,
# and the queue at most that, and how large the average becomes; and what is received, in Mb/s of payload.

lassign $argv tcp rate seed tcps udps
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
Agent/TCP set window_ 50
Agent/TCP set packetSize_ 960

foreach node {left a b right} { set $node [$ns node] }
$ns duplex-link $left $a 100Mb 5ms DropTail
$ns simplex-link $a $b 1Mb 10ms RED
$ns simplex-link $b $a 1Mb 10ms DropTail
$ns duplex-link $b $right 100Mb 5ms DropTail
foreach {from to} [list $left $a $b $a $b $right] { $ns queue-limit $from $to 10000 }
$ns queue-limit $a $b 150
set red [[$ns link $a $b] queue]

for {set i 0} {$i < $tcps} {incr i} {
    set source($i) [new Agent/TCP/$tcp]
    set sink($i) [expr {$tcp == "Sack1" ? [new Agent/TCPSink/Sack1] : [new Agent/TCPSink]}]
    $ns attach-agent $left $source($i)
    $ns attach-agent $right $sink($i)
    $ns connect $source($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $source($i)
    $ns at [$starts uniform 0 1] "$ftp($i) start"
}
for {set i 0} {$i < $udps} {incr i} {
    set udp($i) [new Agent/UDP]
    set null($i) [new Agent/LossMonitor]
    $ns attach-agent $left $udp($i)
    $ns attach-agent $right $null($i)
    $ns connect $udp($i) $null($i)
    $udp($i) set packetSize_ 10000
    set cbr($i) [new Application/Traffic/CBR]
    $cbr($i) set packetSize_ 1000
    $cbr($i) set interval_ [expr 0.008 / $rate]
    $cbr($i) attach-agent $udp($i)
    $ns at [$starts uniform 0 1] "$cbr($i) start"
}

array set sum {n 0 average 0 queue 0 average_below 0 queue_below 0 queue_up_to 0}
set most 0
proc sample {} {
    global ns red sum most
    set average [$red set ave_]
    set queue [$red set curq_]
    incr sum(n)
    set sum(average) [expr $sum(average) + $average]
    set sum(queue) [expr $sum(queue) + $queue]
    incr sum(average_below) [expr $average < 100]
    incr sum(queue_below) [expr $queue < 100]
    incr sum(queue_up_to) [expr $queue <= 100]
    set most [expr max($most, $average)]
    $ns at [expr [$ns now] + 0.01] sample
}
proc received {} {
    foreach {of count} [list null $::udps sink $::tcps] {
        set bytes 0
        for {set i 0} {$i < $count} {incr i} { incr bytes [[set ::${of}($i)] set bytes_] }
        lappend sums $bytes
    }
    return $sums
}
$ns at 20 { set before [received]; sample }
$ns at 120 {
    set row [list red $tcp $rate $seed $tcps $udps]
    foreach name {average queue average_below queue_below queue_up_to} { lappend row [format %.4f [expr double($sum($name)) / $sum(n)]] }
    lappend row [format %.4f $most]
    foreach a $before b [received] { lappend row [format %.4f [expr ($b - $a) * 8e-8]] }
    puts [join $row ,]
    exit 0
}
$ns run
