# TFRC in ns-2.35: writes one row of ns2_tfrc.csv, which `sh ns2_tfrc.sh > ns2_tfrc.csv` makes.
#
#     ns ns2_tfrc.tcl lossy P SEED            20 flows over a link that loses packets with probability P
#     ns ns2_tfrc.tcl RED|DropTail PPS SEED   8 TCP and 8 TFRC flows over 10 Mb/s, and PPS datagrams of
#                                             100 bytes a second with Poisson gaps
#
# All packets of TCP and TFRC have 1000 bytes on the wire. Figures are of the last WINDOW seconds.

lassign $argv queue load seed
set WARMUP 20
set WINDOW 300
set ns [new Simulator]
ns-random $seed
set starts [new RNG]
$starts seed [expr 5000 + $seed]

# TFRC in the state of RFC 5348 as far as ns-2 can: a discount of at least 0.25.
Agent/TFRC set packetSize_ 1000
Agent/TFRC set useHeaders_ false
Agent/TFRCSink set minDiscountRatio_ 0.25

proc connect {from to sender receiver fid} {
    global ns
    $ns attach-agent $from $sender
    $ns attach-agent $to $receiver
    $ns connect $sender $receiver
    $sender set fid_ $fid
}

if {$queue == "lossy"} {
    # The timeout in the equation is 4 R, as in RFC 5348; ns-2's own is that of a TCP.
    Agent/TFRC set minrto_ 0.4
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $b 10Gb 50ms DropTail
    $ns queue-limit $a $b 10000
    set loss [new ErrorModel]
    $loss set rate_ $load
    $loss unit pkt
    $loss ranvar [new RandomVariable/Uniform]
    $loss drop-target [new Agent/Null]
    $ns lossmodel $loss $a $b
    for {set i 0} {$i < 20} {incr i} {
        set sender($i) [new Agent/TFRC]
        connect $a $b $sender($i) [new Agent/TFRCSink] $i
        $ns at [$starts uniform 0 1] "$sender($i) start"
    }
    proc sent {} {
        global sender
        set sum 0
        for {set i 0} {$i < 20} {incr i} { incr sum [$sender($i) set ndatapack_] }
        return $sum
    }
    $ns at $WARMUP { set before [sent] }
    $ns at [expr $WARMUP + $WINDOW] {
        puts [format "%s,%s,%s,,%.2f,," $queue $load $seed [expr ([sent] - $before) / 20.0 / $WINDOW]]
        exit 0
    }
    $ns run
}

Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ true
Queue/RED set adaptive_ 0
Queue/RED set wait_ false
Queue/RED set linterm_ 10
Queue/RED set thresh_ 10
Queue/RED set maxthresh_ 33
Queue/RED set q_weight_ 0.002
Queue/RED set mean_pktsize_ 1000
# The timeout in the equation is counted in ticks of 100 ms: three of them with round trips of 50 to
# 150 ms, 4 R at 75 ms.

set A [$ns node]
set B [$ns node]
foreach {side hub} [list l $A r $B] {
    for {set i 0} {$i < 3} {incr i} {
        set n($side$i) [$ns node]
        $ns duplex-link $n($side$i) $hub 100Mb 2ms DropTail
        $ns queue-limit $n($side$i) $hub 10000
        $ns queue-limit $hub $n($side$i) 10000
    }
}
$ns simplex-link $A $B 10Mb 20ms $queue
$ns simplex-link $B $A 10Mb 20ms DropTail
# DropTail holds one packet less than its limit.
$ns queue-limit $A $B [expr {$queue == "DropTail" ? 51 : 50}]
$ns queue-limit $B $A 10000
set flows [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $A $B] $flows

for {set i 0} {$i < 16} {incr i} {
    if {$i < 8} {
        set agent [new Agent/TCP/Sack1]
        $agent set packetSize_ 960
        $agent set window_ 100000
        connect $n(l[expr $i % 3]) $n(r[expr $i % 3]) $agent [new Agent/TCPSink/Sack1] $i
        set source [new Application/FTP]
        $source attach-agent $agent
    } else {
        set source [new Agent/TFRC]
        connect $n(l[expr $i % 3]) $n(r[expr $i % 3]) $source [new Agent/TFRCSink] $i
    }
    $ns at [$starts uniform 0 10] "$source start"
}
if {$load > 0} {
    set agent [new Agent/UDP]
    connect $n(l0) $n(r0) $agent [new Agent/Null] 16
    set source [new Application/Traffic/Exponential]
    $source set packetSize_ 100
    $source set burst_time_ 0
    $source set idle_time_ [expr 1.0 / $load]
    $source set rate_ 1Gb
    $source attach-agent $agent
    $ns at 0.0 "$source start"
}

# Arrivals and drops of TCP and TFRC.
proc counts {} {
    global flows
    array set sum {tcp,a 0 tcp,d 0 tfrc,a 0 tfrc,d 0}
    foreach flow [$flows flows] {
        set fid [$flow set flowid_]
        if {$fid < 16} {
            set kind [expr {$fid < 8 ? "tcp" : "tfrc"}]
            incr sum($kind,a) [$flow set parrivals_]
            incr sum($kind,d) [$flow set pdrops_]
        }
    }
    return [list $sum(tcp,a) $sum(tcp,d) $sum(tfrc,a) $sum(tfrc,d)]
}
$ns at $WARMUP { set before [counts] }
$ns at [expr $WARMUP + $WINDOW] {
    foreach name {ta td fa fd} now [counts] then $before { set $name [expr double($now - $then)] }
    puts [format "%s,%s,%s,%.2f,%.2f,%.4f,%.4f" $queue $load $seed \
        [expr ($ta - $td) / 8 / $WINDOW] [expr ($fa - $fd) / 8 / $WINDOW] [expr $td / $ta] [expr $fd / $fa]]
    exit 0
}
$ns run
