# RED-PD in ns-2.35: writes one row of ns2_redpd.csv, which `sh ns2_redpd.sh > ns2_redpd.csv` makes, or of
# ns2_redpd_release.csv (`sh ns2_redpd.sh release > ns2_redpd_release.csv`), or of ns2_redpd_below.csv
# (`sh ns2_redpd.sh below > ns2_redpd_below.csv`).
#
#     ns ns2_redpd.tcl FIGURE QUEUE R TEST SEED [NUMBER]
#
# The filter is in the ns binary. What identifies flows and moves their probabilities is the authors'
# program in Tcl, in tcl/ex/red-pd of ns-2's examples (Debian's package ns2-examples); RED_PD names the
# directory. Networks and traffic are those of our experiments on the figures. QUEUE is RED (the filter
# does nothing) or RED-PD, R the target round-trip time in ms, TEST 1 with the authors' test of
# responsiveness. NUMBER: flows of a kind (20), congested links and the long flow (19: 5cbr, 1tcp),
# sending rate over f(R, p) and p (13: 4@0.01), flows and the multiple of f(R, p) below which the first
# is cut down (11: 2@1.5; release, of the same runs: flows), rate of each flow in Mb/s (bytes), packets of the flows with small packets over
# f(R, p) and p (bytes-p: 1.4@0.01). The runs of below are those of 22. Figures 11, 13, release and bytes-p have the fixed drop rate p of the
# authors' scripts, and no flow beside those named.

lassign $argv figure queue R test seed number
set examples [expr {[info exists env(RED_PD)] ? $env(RED_PD) : "/usr/share/doc/ns2/examples/tcl/ex/red-pd"}]
set testIdent_ 0
set verbosity_ 2
set listMode_ multi
set unresponsive_test_ $test
set target_rtt_ [expr $R / 1000.0]
source $examples/monitoring.tcl
source $examples/helper.tcl

# Of what the program tells only this is kept: when it declares a flow unresponsive (of Fig. 16 the
# constant-rate flow), and, in Figs. 11 and 16, when it releases the flow that lowered its rate at 250 s.
set declared ""
set released ""
REDPDSim instproc vprint args {
    global declared released figure
    $self instvar ns_
    set now [$ns_ now]
    set watched [expr {$figure in {11 release} ? 1 : 10}]
    set its [expr {[lindex [lindex $args 1] end] == $watched}]
    if {[string match *Declaring* $args] && $declared == "" && ($its || $figure != 16)} { set declared $now }
    if {[string match *Unmonitoring* $args] && $released == "" && $its && $now > 250} { set released $now }
}
REDPDSim instproc vprint-nonewline args {}
REDPDSim instproc printListOfLists args {}

# The program sets its counters back after each list; these go on. Drops of RED come to its monitor alone.
Class Counted -superclass REDPDSim
Counted instproc init args {
    global program
    set program $self
    $self array set sum {arrivals 0 drops 0 filtered 0}
    eval $self next $args
}
Counted instproc now {} {
    $self instvar redpdflowmon_ sum
    set a [expr $sum(arrivals) + [$redpdflowmon_ set parrivals_]]
    set d [expr $sum(drops) + [$redpdflowmon_ set pdrops_]]
    return [list $a $d [expr $sum(filtered) + [$redpdflowmon_ set mon_epdrops_]]]
}
Counted instproc keep {} {
    $self instvar sum
    lassign [$self now] sum(arrivals) sum(drops) sum(filtered)
}
Counted instproc do_detect {} { $self keep; $self next }
Counted instproc sched-print-stats time { $self keep; $self next $time }

set ns [new Simulator]
ns-random [expr 100 + $seed]
set starts [new RNG]
$starts seed [expr 5000 + $seed]
Queue/RED set bytes_ [string match bytes* $figure]
Queue/RED set queue_in_bytes_ [string match bytes* $figure]
Queue/RED set gentle_ true
Queue/RED set adaptive_ 0
Queue/RED set wait_ false
Queue/RED set linterm_ 10
Queue/RED set thresh_ 10
Queue/RED set maxthresh_ 33
Queue/RED set q_weight_ 0.002
Queue/RED set mean_pktsize_ 1000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set window_ 50
Agent/TFRC set packetSize_ 1000
Agent/TFRC set useHeaders_ false
Agent/TFRCSink set minDiscountRatio_ 0.25

# A congested link from a to b, with RED-PD's program; its own monitor of what arrives and leaves.
proc congested {a b rate delay} {
    global ns queue links
    $ns simplex-link $a $b $rate ${delay}ms RED/PD MEDROP EDROP
    $ns simplex-link $b $a $rate ${delay}ms DropTail
    $ns queue-limit $a $b 50
    $ns queue-limit $b $a 10000
    set link [$ns link $a $b]
    set red [$link queue]
    set program [new Counted $ns $red [$red makeflowmon $link] $link 0 [expr {$queue == "RED-PD"}]]
    lappend links [$program monitor-link]
    return $red
}
proc access {node hub delay} {
    global ns
    $ns duplex-link $node $hub 1000Mb ${delay}ms DropTail
    $ns queue-limit $node $hub 10000
    $ns queue-limit $hub $node 10000
}
set fid 0
proc flow {kind from to {rate 0} {size 1000}} {
    global ns fid starts
    incr fid
    switch $kind {
        tcp { set source [new Agent/TCP/Sack1]; set sink [new Agent/TCPSink/Sack1]; $source set packetSize_ 960 }
        tfrc { set source [new Agent/TFRC]; set sink [new Agent/TFRCSink] }
        cbr { set source [new Agent/UDP]; set sink [new Agent/Null]; $source set packetSize_ 10000 }
    }
    $source set fid_ $fid
    $sink set fid_ $fid
    $ns attach-agent $from $source
    $ns attach-agent $to $sink
    $ns connect $source $sink
    if {$kind == "tcp"} {
        set agent $source
        set source [new Application/FTP]
        $source attach-agent $agent
    } elseif {$kind == "cbr"} {
        set agent $source
        set source [new Application/Traffic/CBR]
        $source set packetSize_ $size
        $source set interval_ [expr $size * 8 / ($rate * 1e6)]
        $source set random_ 0
        $source attach-agent $agent
    }
    $ns at [$starts uniform 0 10] "$source start"
    return $source
}
# Nodes on both sides of one congested link, in pairs with these access delays.
proc pairs {delays delay {rate 10Mb}} {
    global ns left right
    set a [$ns node]
    set b [$ns node]
    set i 0
    foreach access $delays {
        set left($i) [$ns node]
        set right($i) [$ns node]
        access $left($i) $a $access
        access $right($i) $b $access
        incr i
    }
    return [congested $a $b $rate $delay]
}

# A link that drops each packet with the probability p and none by RED; f(R, p) in Mb/s of packets of
# 1000 bytes.
proc fixed {p} {
    global target_rtt_
    # Before the program is made, which asks for it then: its lists go by this p, not by a measured one.
    Queue/RED/PD set P_testFRp_ $p
    set red [pairs {2} 20 1000Mb]
    foreach name {limit_ thresh_ maxthresh_} { $red set $name 1000000 }
    return [expr 0.008 * sqrt(1.5 / $p) / $target_rtt_]
}
# A source with this interval sends `multiple` times as much from 50 to 250 s.
proc rises {source from multiple} {
    global ns
    $ns at 50 "$source set interval_ [expr $from / $multiple]"
    $ns at 250 "$source set interval_ $from"
}

set from 190
set to 390
set below 1.5e6
set step 1
switch $figure {
    11 - release {
        lassign [split $number @] flows multiple
        set f [fixed 0.01]
        if {$multiple == ""} { set multiple 1 }
        set below [expr 0.99e6 * $multiple * $f]
        set step 0.5
        for {set i 0} {$i < $flows} {incr i} {
            set source [flow cbr $left(0) $right(0) [expr $f / 4]]
            rises $source [expr 0.032 / $f] [expr {$i ? 8 : 16}]
        }
        set from 20
        set to 350
    }
    13 {
        lassign [split $number @] gamma p
        set f [fixed $p]
        flow cbr $left(0) $right(0) [expr $gamma * $f]
    }
    14 {
        pairs {2} 20
        foreach rate {0.1 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5} { flow cbr $left(0) $right(0) $rate }
    }
    15 - 16 {
        pairs {2.5 7.5 12.5} 10
        for {set i 0} {$i < 9} {incr i} { flow tcp $left([expr $i / 3]) $right([expr $i / 3]) }
        if {$figure == 15} {
            foreach i {0 1 2} rate {5 3 1} { flow cbr $left($i) $right($i) $rate }
        } else {
            rises [flow cbr $left(0) $right(0) 0.25] 0.032 16
            set from 20
            set to 350
        }
    }
    19 {
        set links_ [string index $number 0]
        for {set i 0} {$i <= $links_} {incr i} { set r($i) [$ns node] }
        for {set i 0} {$i < $links_} {incr i} {
            congested $r($i) $r([expr $i + 1]) 10Mb 5
            foreach k {0 1 2 3} delay {2.5 7.5 12.5 17.5} {
                set s($i.$k) [$ns node]
                set d($i.$k) [$ns node]
                access $s($i.$k) $r($i) $delay
                access $d($i.$k) $r([expr $i + 1]) $delay
            }
        }
        set a [$ns node]
        set b [$ns node]
        access $a $r(0) [expr (40 - 5 * $links_) / 2.0]
        access $b $r($links_) [expr (40 - 5 * $links_) / 2.0]
        flow [string range $number 1 end] $a $b 1
        for {set i 0} {$i < $links_} {incr i} {
            foreach k {0 0 1 1 2 2 3 3} { flow tcp $s($i.$k) $d($i.$k) }
            foreach k {0 3} { flow cbr $s($i.$k) $d($i.$k) 5 }
        }
        set from 20
        set to 220
    }
    20 {
        pairs {2.5 25} 10
        foreach i {0 1} {
            for {set k 0} {$k < $number} {incr k} { flow tcp $left($i) $right($i) }
            for {set k 0} {$k < $number} {incr k} { flow tfrc $left($i) $right($i) }
        }
        set from 20
        set to 220
    }
    22 - below {
        pairs {5 15 25 35} 10
        foreach i {0 1 2 3} flows {2 2 2 8} {
            for {set k 0} {$k < $flows} {incr k} { flow tcp $left($i) $right($i) }
        }
        set from 20
        set to 220
    }
    bytes - bytes-p {
        if {$figure == "bytes"} {
            pairs {2} 20
            set rate $number
        } else {
            lassign [split $number @] packets p
            set rate [expr $packets * [fixed $p] / 2]
        }
        foreach size {1000 500} {
            for {set k 0} {$k < 8} {incr k} { flow cbr $left(0) $right(0) $rate $size }
        }
        set from 20
        set to 220
    }
}

# Packets that came to the last congested link, were dropped there, and were dropped by its filter; and
# the bytes of each flow that left it.
proc counts {} {
    global links program fid
    for {set i 1} {$i <= $fid} {incr i} { set bytes($i) 0 }
    foreach flow [[lindex $links end] flows] { set bytes([$flow set flowid_]) [$flow set bdepartures_] }
    set all {}
    for {set i 1} {$i <= $fid} {incr i} { lappend all $bytes($i) }
    return [concat [$program now] [list $all]]
}
# For figures 11 and 16: the end of the first step in which the watched flow, the first or the last, gets
# less than `below` bits a second.
set cut ""
proc look {before} {
    global ns cut fid below step figure
    set bytes [lindex [counts] 3]
    set now [lindex $bytes [expr {$figure == 11 ? 0 : $fid - 1}]]
    if {$before != "" && $cut == "" && ($now - $before) * 8 / $step < $below && [$ns now] > 51 + $step} { set cut [$ns now] }
    $ns at [expr [$ns now] + $step] "look $now"
}
if {$figure == 11 || $figure == 16} { $ns at 51 { look "" } }
# For release: the end of the first second, of those that end each half second from 251.5 s on, in which
# the first flow gets these shares of what it sends again.
array set back {0.8 "" 0.85 "" 0.9 "" 0.95 ""}
proc look_back {earlier before} {
    global ns back f
    set now [lindex [lindex [counts] 3] 0]
    foreach share [array names back] {
        if {$earlier != "" && $back($share) == "" && ($now - $earlier) * 8 >= $share * 0.25e6 * $f} {
            set back($share) [expr [$ns now] - 250]
        }
    }
    $ns at [expr [$ns now] + 0.5] [list look_back $before $now]
}
if {$figure == "release"} { $ns at 250.5 { look_back "" "" } }

$ns at $from { set before [counts] }
$ns at $to {
    foreach {name value} {came 0 dropped 1 filtered 2} {
        set $name [expr [lindex [counts] $value] - [lindex $before $value]]
    }
    set ambient [expr double($dropped - $filtered) / max(1, $came - $filtered)]
    set bytes [lindex $before 3]
    set bytes_ [lindex [counts] 3]
    set rates {}
    foreach a $bytes b $bytes_ { lappend rates [format %.4f [expr ($b - $a) * 8e-6 / ($to - $from)]] }
    if {$figure == "release"} {
        set times {}
        foreach share {0.8 0.85 0.9 0.95} { lappend times $back($share) }
        puts "$seed,[join $times ,],[format %.2f [expr {$released - 250}]]"
        exit 0
    }
    if {$figure == "below"} {
        puts "$R,$seed,$came,$filtered"
        exit 0
    }
    set times [list $declared $cut $released]
    puts "$figure,$queue,$R,$test,$seed,$number,[format %.5f $ambient],[join $rates { }],[join $times ,]"
    exit 0
}
$ns run
