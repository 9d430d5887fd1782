"""Definitions of the metrics, shared by reports and documentation."""

METRICS = {
    "loss": "Packets dropped at the managed queue, for any cause, divided by the packets that "
    "arrived there, both from the end of the warm-up to the end of the run. If more were dropped "
    "than arrived, the divisor is the packets that left.",
    "mark rate": "Packets whose CE bit the queue set, divided by the packets that arrived.",
    "utilisation": "Bits that left the queue on the link, divided by the link's capacity over "
    "the measured time.",
    "throughput": "Bits that left the queue on the link a second, headers and retransmissions "
    "included.",
    "goodput": "Bits of data delivered in order to a receiver a second, each counted once.",
    "idle periods": "How often the link stood idle with an empty queue; idle fraction is the share "
    "of the measured time.",
    "queue length": "Packets or bytes in the queue, weighted by time; the packet in transmission "
    "is not in it.",
    "queueing delay": "Time from a packet's arrival at the queue to the start of its transmission, "
    "over the packets that departed.",
    "Jain index": "Fairness of the goodputs of the bulk flows that cross a queue, (Σx)² / (n·Σx²): "
    "1 if all are equal, 1/n if one flow has everything.",
    "p_m": "BLUE's marking probability, sampled.",
    "p_b, p_a": "RED's marking probability before and after spacing, "
    "p_a = p_b / (1 − count·p_b), sampled.",
    "± (spread)": "Half the width of the 95 % t-interval of the mean over seeds.",
    "band in a plot": "From the least to the greatest over seeds; the line is their mean.",
    "decision hash": "A digest over every drop, mark and departure of a run. The same scenario, "
    "seed and version give the same digits on every machine.",
}
