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
source [file join [file dirname [info script]] ns2_feng.tcl]
set agent Agent/TCP/Sack1
if {[string match noecnto* $variant]} { append agent /NoEcnTimeout }
begin $seed [string match noecnto* $variant]
set ecn [expr {$queue == "RED" && $variant != "noecn"}]
senders $ecn
if {$queue == "RED"} { red $w_q [expr 0.2 * $buffer] [expr 0.8 * $buffer] $ecn }
Queue/SFQ set maxqueue_ $buffer
network $queue
$ns queue-limit $A $B $buffer

for {set i 0} {$i < $flows} {incr i} {
    connection $i $agent
    set start [$setup uniform 0 1]
    if {[string match *_pre $variant]} {
        $ns at $start "$tcp($i) advanceby 2"
        set start [$setup uniform 1 2]
    }
    switch $app {
        ftp { $ns at $start "[ftp $i] start" }
        ftponoff { $ns at $start "on $i" }
        pareto { $ns at $start "[pareto $i 1000] start" }
    }
}

if {$mbps != ""} {
    set udp [new Agent/UDP]
    set received [new Agent/LossMonitor]
    pair $flows $udp $received
    $ns at [$setup uniform 0 1] "[datagrams $udp $mbps] start"
}

watch
proc counts_and_acks {} {
    global acked flows tcp
    for {set i 0} {$i < $flows} {incr i} { lappend acked($i) [$tcp($i) set ack_] }
    counts
}
$ns at [expr $duration - $window] { set before [counts_and_acks] }
$ns at $duration {
    foreach name {arrivals drops bytes packets} now [counts_and_acks] then $before {
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
