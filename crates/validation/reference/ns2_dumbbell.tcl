# RED, drop-tail or stochastic fair queueing in ns-2.35 on the network of the BLUE paper with 10 ms on
# every link: prints one row of ns2_dumbbell_seeds.csv.
#
#     ns ns2_dumbbell.tcl VARIANT QUEUE W_Q FLOWS BUFFER APP SECONDS WINDOW SEED [MBPS]
#
# With MBPS a flow of datagrams of 1000 bytes at this rate goes among them: behind the row stand, in Mb/s of the
# whole run, what came of the datagrams, and what the link carried and the queue dropped of the connections
# (ns2_cbr_and_tcp_seeds.csv).
#
# VARIANT  std: connections begin with a SYN in the first second. std_pre: they are established, with
#          one packet, in the first second, and their traffic begins in the second after it.
#          noecn: as std, without ECN. noecnto, noecnto_pre: as std and std_pre, and a sender whose window
#          is one packet does not wait for its timer after an ECN echo; they need ns2_classes.so in the
#          directory they are run in, which ns2_classes.sh builds.
# QUEUE    RED, DropTail or SFQ.      BUFFER  packets.
# APP      ftp: always something to send. ftponoff: nothing new while off, Pareto periods of 2 s and
#          3 s. pareto: 1 Mb/s while on, and what could not be sent stays in the send buffer.
# SECONDS  of the run, of which the last WINDOW are measured.

lassign $argv variant queue w_q flows buffer app duration window seed mbps
remove-all-packet-headers
add-packet-header IP TCP Flags RTP
set agent Agent/TCP/Sack1
if {[string match noecnto* $variant]} {
    load ./ns2_classes.so Ns2_classes
    append agent /NoEcnTimeout
}
set ns [new Simulator]
ns-random [expr 100 + $seed]
set setup [new RNG]
$setup seed [expr 5000 + $seed]
set periods [new RNG]
$periods seed [expr 9000 + $seed]

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
set ecn [expr {$queue == "RED" && $variant != "noecn"}]
Agent/TCP set ecn_ $ecn
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ false
Queue/RED set adaptive_ 0
Queue/RED set drop_tail_ true
Queue/RED set linterm_ 1
Queue/RED set setbit_ $ecn
Queue/RED set mean_pktsize_ 1000
Queue/RED set wait_ false
Queue/RED set mark_p_ 2
Queue/RED set q_weight_ $w_q
Queue/RED set thresh_ [expr 0.2 * $buffer]
Queue/RED set maxthresh_ [expr 0.8 * $buffer]

Queue/SFQ set maxqueue_ $buffer

set A [$ns node]
set B [$ns node]
for {set i 0} {$i < 5} {incr i} {
    set left($i) [$ns node]
    set right($i) [$ns node]
    foreach {from to} [list $left($i) $A $B $right($i)] {
        $ns duplex-link $from $to 100Mb 10ms DropTail
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
    # Nothing is left to send: the connection ends at what was sent.
    $tcp($i) advance [$tcp($i) set maxseq_]
    $ns at [expr [$ns now] + [period 3]] "on $i"
}

for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new $agent]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $left([expr int([$setup uniform 0 5])]) $tcp($i)
    $ns attach-agent $right([expr int([$setup uniform 0 5])]) $sink
    $ns connect $tcp($i) $sink
    $tcp($i) set fid_ $i
    set start [$setup uniform 0 1]
    if {[string match *_pre $variant]} {
        $ns at $start "$tcp($i) advanceby 2"
        set start [$setup uniform 1 2]
    }
    switch $app {
        ftp {
            set source [new Application/FTP]
            $source attach-agent $tcp($i)
            $ns at $start "$source start"
        }
        ftponoff { $ns at $start "on $i" }
        pareto {
            set source [new Application/Traffic/Pareto]
            $source set packetSize_ 1000
            $source set rate_ 1Mb
            $source set burst_time_ 2s
            $source set idle_time_ 3s
            $source set shape_ 1.5
            $source attach-agent $tcp($i)
            $ns at $start "$source start"
        }
    }
}

if {$mbps != ""} {
    set udp [new Agent/UDP]
    $udp set packetSize_ 1000
    $udp set fid_ $flows
    set received [new Agent/LossMonitor]
    $ns attach-agent $left([expr int([$setup uniform 0 5])]) $udp
    $ns attach-agent $right([expr int([$setup uniform 0 5])]) $received
    $ns connect $udp $received
    set datagrams [new Application/Traffic/CBR]
    $datagrams set packetSize_ 1000
    $datagrams set rate_ [set mbps]Mb
    $datagrams attach-agent $udp
    $ns at [$setup uniform 0 1] "$datagrams start"
}

set monitor [$ns monitor-queue $A $B ""]
set integral [$monitor get-pkts-integrator]
proc counts {} {
    global monitor integral ns
    $integral newpoint [$ns now] [$monitor set pkts_]
    global acked flows tcp
    for {set i 0} {$i < $flows} {incr i} { lappend acked($i) [$tcp($i) set ack_] }
    list [$monitor set parrivals_] [$monitor set pdrops_] [$monitor set bdepartures_] [$integral set sum_]
}
$ns at [expr $duration - $window] { set before [counts] }
$ns at $duration {
    foreach name {arrivals drops bytes packets} now [counts] then $before {
        set $name [expr double($now) - $then]
    }
    set sum 0.0
    set squares 0.0
    set starved 0
    for {set i 0} {$i < $flows} {incr i} {
        set packets_of [expr double([lindex $acked($i) 1] - [lindex $acked($i) 0])]
        set sum [expr $sum + $packets_of]
        set squares [expr $squares + $packets_of * $packets_of]
        incr starved [expr $packets_of == 0]
    }
    puts -nonewline [format "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.6f,%.6f,%.3f,%.6f,%d" $variant $queue $w_q $flows $buffer $app \
        $duration $window $seed [expr $drops / $arrivals] [expr $bytes * 8 / 45e6 / $window] \
        [expr $packets / $window] [expr $sum * $sum / ($flows * $squares)] $starved]
    if {$mbps != ""} {
        set datagrams_got [expr [$received set bytes_] * 8e-6 / $duration]
        set datagrams_lost [expr [$received set nlost_] * 1000 * 8e-6 / $duration]
        puts -nonewline [format ",%.5f,%.4f,%.4f" $datagrams_got \
            [expr [$monitor set bdepartures_] * 8e-6 / $duration - $datagrams_got] \
            [expr [$monitor set bdrops_] * 8e-6 / $duration - $datagrams_lost]]
    }
    puts ""
    exit 0
}
$ns run
