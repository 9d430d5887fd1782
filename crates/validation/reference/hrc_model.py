"""HRC's network once more, to see whether what we find in it is ours or the algorithms'.

Ten TCP flows and one flow of constant rate share 1 Mb/s and a buffer of 150 packets, with RED,
BLUE or A-CHOKe as HRC §2 describes them. Nothing here is shared with the simulator: Python's
standard library alone, floating-point seconds, one file. It makes hrc_model.csv:
python3 hrc_model.py > hrc_model.csv
and, of A-CHOKe with one and with five flows of constant rate (Fig. 16), hrc_model_flows.csv:
python3 hrc_model.py flows > hrc_model_flows.csv

A row is a run: mean packets queued of the constant-rate flow and of all, mean of RED's average,
share of the time for which that average is below max_th, Mb/s of the constant-rate flow and of
TCP; all but the first ``warmup`` seconds. Of several flows of constant rate, all together; their
last column is the share of TCP's packets that came and did not leave.
"""

import heapq
import itertools
import random
import sys

LINK = 1e6
PACKET = 8000.0
SERVICE = PACKET / LINK
BUFFER = 150
MIN_TH, MAX_TH, MAX_P, WEIGHT = 50, 100, 0.1, 0.002
UDP = -1


class Red:
    """Floyd and Jacobson 1993, Fig. 2: everything is dropped above max_th."""

    def __init__(self, draws=None):
        self.average, self.count, self.idle, self.draws = 0.0, -1, 0.0, draws

    def arrive(self, flow, queue, now):
        """Whether an arriving packet may enter."""
        if queue:
            self.average += WEIGHT * (len(queue) - self.average)
        else:
            self.average *= (1 - WEIGHT) ** max(0.0, (now - self.idle) / SERVICE)
        if self.average < MIN_TH:
            self.count = -1
            return True
        if self.draws and self.matches(flow, queue):
            return False
        if self.average >= MAX_TH:
            self.count = 0
            return False
        self.count += 1
        p = MAX_P * (self.average - MIN_TH) / (MAX_TH - MIN_TH)
        p = p / (1 - self.count * p) if self.count * p < 1 else 1.0
        if random.random() < p:
            self.count = 0
            return False
        return True

    def matches(self, flow, queue):
        """A-CHOKe (HRC §2): as many packets are drawn as the region says; a match drops both."""
        region = int((self.average - MIN_TH) / (MAX_TH - MIN_TH) * self.draws) + 1
        for _ in range(2 * min(region, self.draws)):
            if not queue:
                return False
            place = random.randrange(len(queue))
            if queue[place][0] == flow:
                del queue[place]
                return True
        return False

    def full(self, _):
        """It may, and found no room: nothing to learn."""

    def empty(self, now):
        """The link went idle."""
        self.idle = now


class Blue:
    """HRC §2: p_m by overflow and idleness, at most once in freeze_time."""

    def __init__(self):
        self.p, self.last, self.average = 0.0, 0.0, 0.0

    def arrive(self, *_):
        """Whether an arriving packet may enter."""
        return random.random() >= self.p

    def move(self, by, now):
        """Moves p_m, unless it has just been moved."""
        if now - self.last > 0.01:
            self.p, self.last = min(1.0, max(0.0, self.p + by)), now

    def full(self, now):
        """A packet was lost."""
        self.move(0.02, now)

    def empty(self, now):
        """The link went idle."""
        self.move(-0.002, now)


class Tcp:
    """Reno or NewReno: RFC 2581, 2582 and 2988, an acknowledgement for each packet."""

    def __init__(self, net, flow, new):
        self.net, self.flow, self.new = net, flow, new
        self.cwnd, self.ssthresh = 1.0, 50.0
        self.next = self.acked = self.top = self.dup = self.recover = 0
        self.fast, self.srtt, self.var, self.rto, self.timed, self.clock = (
            False,
            None,
            0.0,
            3.0,
            None,
            0,
        )
        self.got, self.expected = set(), 0

    def send(self, now, number):
        """Sends a packet."""
        if self.timed is None and number >= self.top:
            self.timed = (number, now)
        self.top = max(self.top, number + 1)
        self.net.at(now + self.net.way, "arrive", (self.flow, number))

    def fill(self, now):
        """Sends what the window allows."""
        while self.next < self.acked + min(50, int(self.cwnd)):
            self.send(now, self.next)
            self.next += 1

    def arm(self, now):
        """Sets the timer anew."""
        self.clock += 1
        self.net.at(now + self.rto, "timeout", (self.flow, self.clock))

    def data(self, number):
        """The receiver's answer."""
        self.got.add(number)
        while self.expected in self.got:
            self.got.discard(self.expected)
            self.expected += 1
        return self.expected

    def ack(self, now, number):
        """An acknowledgement has come."""
        if number > self.acked:
            if self.timed and number > self.timed[0]:
                sample = now - self.timed[1]
                if self.srtt is None:
                    self.srtt, self.var = sample, sample / 2
                else:
                    self.var += (abs(sample - self.srtt) - self.var) / 4
                    self.srtt += (sample - self.srtt) / 8
                self.timed = None
                self.rto = max(1.0, self.srtt + 4 * self.var)
            news, self.acked = number - self.acked, number
            self.next = max(self.next, number)
            if self.fast and self.new and number < self.recover:
                self.cwnd = max(1.0, self.cwnd - news + 1)
                self.send(now, number)
            elif self.fast:
                self.fast, self.cwnd = False, self.ssthresh
            elif self.cwnd < self.ssthresh:
                self.cwnd += 1
            else:
                self.cwnd += 1 / self.cwnd
            self.dup = 0
            self.arm(now)
        else:
            self.dup += 1
            if self.dup == 3 and not self.fast and number >= self.recover:
                self.lose()
                self.fast, self.cwnd = True, self.ssthresh + 3
                self.send(now, number)
                self.arm(now)
            elif self.fast:
                self.cwnd += 1
        self.fill(now)

    def lose(self):
        """Halves the threshold."""
        flight = min(self.cwnd, self.next - self.acked)
        self.ssthresh, self.recover, self.timed = max(2.0, flight / 2), self.top, None

    def timeout(self, now, clock):
        """The timer has run out, if it is the last one that was set."""
        if clock == self.clock:
            self.lose()
            self.cwnd, self.fast, self.dup, self.next = 1.0, False, 0, self.acked
            self.rto = min(64.0, 2 * self.rto)
            self.arm(now)
            self.fill(now)


class Net:
    """One run."""

    def __init__(
        self, manager, rate, seed, round_trip=0.04, new=False, duration=120.0, warmup=20.0, flows=1
    ):
        random.seed(seed)
        self.events, self.order, self.way = [], itertools.count(), round_trip / 2
        self.queue, self.busy, self.manager = [], False, manager
        self.tcp = [Tcp(self, flow, new) for flow in range(10)]
        for tcp in self.tcp:
            self.at(random.random(), "start", (tcp.flow, 0))
        self.gap = PACKET / rate
        for flow in range(flows):
            self.at(random.random(), "udp", (UDP - flow, 0))
        self.came = 0
        self.warmup, self.duration = warmup, duration
        self.area, self.out, self.mine = (
            {"udp": 0.0, "all": 0.0, "average": 0.0, "below": 0.0},
            [0, 0],
            0,
        )
        self.since = warmup

    def at(self, time, what, who):
        """Puts an event into the list."""
        heapq.heappush(self.events, (time, next(self.order), what, who))

    def account(self, now):
        """Adds up what has been since the last event."""
        if now > self.warmup:
            span = now - self.since
            self.area["udp"] += span * self.mine
            self.area["all"] += span * len(self.queue)
            self.area["average"] += span * self.manager.average
            self.area["below"] += span * (self.manager.average < MAX_TH)
            self.since = now

    def run(self):
        """Runs all events; the last columns of a row."""
        while self.events:
            now, _, what, (flow, number) = heapq.heappop(self.events)
            if now > self.duration:
                break
            self.account(now)
            if what == "start":
                self.tcp[flow].arm(now)
                self.tcp[flow].fill(now)
            elif what == "udp":
                self.at(now + self.gap, "udp", (flow, 0))
                self.enqueue(now, flow, 0)
            elif what == "arrive":
                self.came += now > self.warmup
                self.enqueue(now, flow, number)
            elif what == "served":
                self.out[flow <= UDP] += now > self.warmup
                if flow > UDP:
                    self.at(now + self.way, "ack", (flow, self.tcp[flow].data(number)))
                self.serve(now)
            elif what == "ack":
                self.tcp[flow].ack(now, number)
            else:
                self.tcp[flow].timeout(now, number)
            self.mine = (
                sum(p[0] <= UDP for p in self.queue)
                if what in ("udp", "arrive", "served")
                else self.mine
            )
        time = self.duration - self.warmup
        return [x / time for x in self.area.values()] + [
            x * PACKET / time / 1e6 for x in reversed(self.out)
        ]

    def enqueue(self, now, flow, number):
        """A packet comes to the queue."""
        if self.manager.arrive(flow, self.queue, now):
            if len(self.queue) < BUFFER:
                self.queue.append((flow, number))
                if not self.busy:
                    self.serve(now)
            else:
                self.manager.full(now)

    def serve(self, now):
        """The transmitter takes a packet, if there is one."""
        self.busy = bool(self.queue)
        if self.busy:
            self.at(now + SERVICE, "served", self.queue.pop(0))
        else:
            self.manager.empty(now)


def flows():
    """Makes hrc_model_flows.csv: ``mbps`` is what each flow of constant rate sends; TCP is Reno."""
    print("flows,mbps,seed,udp_packets,packets,average,below_max_th,udp_mbps,tcp_mbps,tcp_loss")
    for rate in (2, 4, 8):
        for number, each in ((1, rate), (5, rate), (5, rate / 5)):
            for seed in (1, 2, 3, 4, 5):
                net = Net(Red(draws=5), each * 1e6, seed, duration=220.0, flows=number)
                row = net.run()
                row.append(1 - net.out[0] / net.came)
                print(f"{number},{each},{seed}," + ",".join(f"{x:.4g}" for x in row))
                sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["flows"]:
        flows()
        sys.exit()
    print(
        "discipline,rate_mbps,tcp,rtt_ms,seed,udp_packets,packets,average,below_max_th,udp_mbps,tcp_mbps"
    )
    make = {"red": Red, "blue": Blue, "a-choke": lambda: Red(draws=5)}
    for (tcp, rtt), name in itertools.product([("reno", 40), ("newreno", 40), ("reno", 270)], make):
        for rate, seed in itertools.product((0.8, 2, 4, 8), (1, 2, 3, 4, 5)):
            row = Net(make[name](), rate * 1e6, seed, rtt / 1e3, tcp == "newreno").run()
            print(f"{name},{rate},{tcp},{rtt},{seed}," + ",".join(f"{x:.4g}" for x in row))
            sys.stdout.flush()
