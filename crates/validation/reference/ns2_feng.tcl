# What the scripts for the BLUE papers' network share: `source` it; a script calls what it needs, in this order.
#
# 45 Mb/s between A and B, five nodes on each side of it; a connection goes from one of those on the left to one on
# the right, by chance.

# A simulator with the packet headers that are used, all of whose chance comes of SEED. With CLASSES also what
# ns2_classes.so has, in the directory it is run in (ns2_classes.sh).
proc begin {seed {classes 0}} {
    global ns setup periods
    if {$classes} { load ./ns2_classes.so Ns2_classes }
    remove-all-packet-headers
    add-packet-header IP TCP Flags RTP
    set ns [new Simulator]
    ns-random [expr 100 + $seed]
    set setup [new RNG]
    $setup seed [expr 5000 + $seed]
    set periods [new RNG]
    $periods seed [expr 9000 + $seed]
}

# What every sender has; 0.2 s is ns-2's least timeout.
proc senders {ecn {min_rto 0.2}} {
    Agent/TCP set packetSize_ 1000
    Agent/TCP set window_ 100000
    Agent/TCP set ecn_ $ecn
    Agent/TCP set minrto_ $min_rto
}

# RED of the paper's Table I: max_p = 1, thresholds in packets; ECN-capable packets above max_th are marked.
proc red {w_q min_th max_th {ecn 1}} {
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
    Queue/RED set thresh_ $min_th
    Queue/RED set maxthresh_ $max_th
}

# ACCESS: the delay of an access link in ms, or mixed: 10, 15, 20, 25 and 30 by the node. The link has 10 ms.
proc network {queue {access 10}} {
    global ns A B left right
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
    $ns queue-limit $B $A 10000
}

# SOURCE on a node of the left and SINK on one of the right, by chance.
proc pair {i source sink} {
    global ns setup left right
    $ns attach-agent $left([expr int([$setup uniform 0 5])]) $source
    $ns attach-agent $right([expr int([$setup uniform 0 5])]) $sink
    $ns connect $source $sink
    $source set fid_ $i
}
proc connection {i agent} {
    global tcp
    set tcp($i) [new $agent]
    pair $i $tcp($i) [new Agent/TCPSink/Sack1]
}

# A connection is established by a packet of its own before its traffic: a SYN is not ECN-capable.
proc established {i} {
    global ns setup tcp
    $ns at [$setup uniform 0 1] "$tcp($i) advanceby 2"
}

# Sources of a connection: one that always has data; one that sends KBPS kb/s while on and keeps what it could not.
proc ftp {i} {
    global tcp
    set source [new Application/FTP]
    $source attach-agent $tcp($i)
    return $source
}
proc pareto {i kbps} {
    global tcp
    set source [new Application/Traffic/Pareto]
    $source set packetSize_ 1000
    $source set rate_ ${kbps}kb
    $source set burst_time_ 2s
    $source set idle_time_ 3s
    $source set shape_ 1.5
    $source attach-agent $tcp($i)
    return $source
}

# All that it can send while on, nothing new while off: the connection ends at what was sent. Pareto periods of these
# means with shape 1.5, s.
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

# Datagrams of 1000 bytes at MBPS; with RANDOM gaps of half to one and a half times the mean.
proc datagrams {udp mbps {random 0}} {
    $udp set packetSize_ 1000
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 1000
    $source set rate_ ${mbps}Mb
    $source set random_ $random
    $source attach-agent $udp
    return $source
}

# The queue before the link: packets that came, packets lost, bytes that left, and the sum of its length over time.
proc watch {} {
    global ns A B monitor integral
    set monitor [$ns monitor-queue $A $B ""]
    set integral [$monitor get-pkts-integrator]
}
proc counts {} {
    global monitor integral ns
    $integral newpoint [$ns now] [$monitor set pkts_]
    list [$monitor set parrivals_] [$monitor set pdrops_] [$monitor set bdepartures_] [$integral set sum_]
}
