# RED and BLUE in ns-2.35 on Fig. 5 of Feng02, and on Fig. 11: prints one row of ns2_fig5.csv, of ns2_fig11.csv.
#
#     ns ns2_fig5.tcl CONFIGURATION BUFFER ACCESS SOURCES SEED ?CONNECTIONS?
#
# 1000 sources that are on for 2 s and off for 3 s in the mean (Pareto, shape 1.5) over 45 Mb/s; SACK, ECN without
# ECN timeouts; measured for 100 s after 100 s. It needs ns2_classes.so in the directory it is run in
# (ns2_classes.sh), which has BLUE and such a sender.
#
# CONFIGURATION  R1 to R4 of Table I (thresholds of 20 and 80 % of the buffer, max_p = 1, packets above max_th
#                marked), B1 to B4 of Table II.      BUFFER  packets.
# ACCESS         delay of an access link in ms, or mixed: 10, 15, 20, 25 and 30 by the node. The link has 10 ms.
# SOURCES        withdraw: all they want while on, nothing while off. A number: so many kb/s while on, and what
#                could not be sent in time stays in the send buffer.
#
# CONNECTIONS    of Fig. 11: so many, and ns-2's own sender, which has ECN timeouts.
#
# Connections are established in the first second, with one packet each: a SYN is not ECN-capable.

lassign $argv configuration buffer access app seed connections
set count 1000
set agent Agent/TCP/Sack1/NoEcnTimeout
if {$connections != ""} {
    set count $connections
    set agent Agent/TCP/Sack1
}
source [file join [file dirname [info script]] ns2_feng.tcl]
begin $seed 1
senders 1
array set configurations {
    R1 0.0002  R2 0.002  R3 0.02  R4 0.2
    B1 {0.01 0.0025}  B2 {0.1 0.0025}  B3 {0.01 0.02}  B4 {0.1 0.02}
}
if {[string match R* $configuration]} {
    set queue RED
    red $configurations($configuration) [expr 0.2 * $buffer] [expr 0.8 * $buffer]
} else {
    set queue Blue
    lassign $configurations($configuration) freeze step
    Queue/Blue set freeze_ $freeze
    Queue/Blue set increment_ $step
    Queue/Blue set decrement_ [expr $step / 10]
    Queue/Blue set p_ 0
    Queue/Blue set marks_ 0
    Queue/Blue set long_ 0
    Queue/Blue set lost_ 0
}
network $queue $access
$ns queue-limit $A $B $buffer

for {set i 0} {$i < $count} {incr i} {
    connection $i $agent
    established $i
    set start [$setup uniform 1 2]
    if {$app == "withdraw"} {
        $ns at $start "on $i"
    } else {
        $ns at $start "[pareto $i $app] start"
    }
}

watch
$ns at 101 { set before [counts] }
$ns at 201 {
    foreach name {arrivals drops bytes packets} now [counts] then $before {
        set $name [expr double($now) - $then]
    }
    puts [format "%s,%.7f,%.6f,%.2f" [join [concat $configuration $buffer $access $app $seed $connections] ,] \
        [expr $drops / $arrivals] [expr $bytes * 8 / 45e6 / 100] [expr $packets / 100]]
    exit 0
}
$ns run
