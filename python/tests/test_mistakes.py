"""Mistakes that users make: each is refused, in their words, and never with a traceback.

A case is a command line and what its message has to contain: the file or option, key and value as
typed, what is allowed, and what was probably meant.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bluewater
from bluewater.cli import app
from bluewater.errors import InputError

MY = """\
duration = "4s"
warmup = "1s"

[network]
preset = "dumbbell"
rate = "10mbit"

[[queue]]
aqm = "blue"
buffer = "100p"

[[traffic]]
flows = 6
transport = "sack"
start = "0s..1s"
ecn = true
"""

LINKS = """\
duration = "4s"
[[link]]
from = "a"
to = "b"
rate = "10mbit"
delay = "5ms"
[[queue]]
link = "a->b"
aqm = "red"
buffer = "100p"
[[traffic]]
transport = "sack"
from = ["a"]
to = ["b"]
"""

OWN = """\
from bluewater.aqm import Aqm
class Asks(Aqm):
    def on_arrival(self, now, packet, queue):
        return 1.0 if packet.sojourn > 1 else None
class Text(Aqm):
    def on_overflow(self, now, packet, queue):
        return "drop"
class Much(Aqm):
    def on_arrival(self, now, packet, queue):
        return 1.5
class Few(Aqm):
    def on_arrival(self, packet, queue):
        return None
class Late(Aqm):
    def on_arival(self, now, packet, queue):
        return None
"""

DECLARED = """\
from bluewater.aqm import Aqm, duration, number
class Clock(Aqm):
    gain = number(0.1, "Gain.", low=0, high=1)
    period = duration("20ms", "Period.", low="1ms", high="1s")
    def on_arrival(self, now, packet, queue):
        return None
class Wide(Aqm):
    gain = number(5, "Gain.", low=0, high=1)
"""

CONTROLS = """\
from bluewater.control import Controller
class Late(Controller):
    def on_akc(self, a):
        return None
class Few(Controller):
    def on_ack(self):
        return None
"""

FILES: dict[str, str | bytes] = {
    "my.toml": MY,
    "sweep.toml": f'{MY}[sweep]\naqm = {{ key = "queue.0.aqm", values = ["red", "blue"] }}\n',
    "axis.toml": f'{MY}[sweep]\naqm = {{ key = "queue.0.aqn", values = ["red"] }}\n',
    "empty-axis.toml": f'{MY}[sweep]\naqm = {{ key = "queue.0.aqm", values = [] }}\n',
    "links.toml": LINKS,
    "itself.toml": LINKS.replace('to = ["b"]', 'to = ["a"]'),
    "apart.toml": LINKS.replace('to = ["b"]', 'to = ["d"]')
    + '[[link]]\nfrom = "c"\nto = "d"\nrate = "1mbit"\ndelay = "5ms"\n',
    "no-node.toml": LINKS.replace('to = ["b"]', 'to = ["c"]'),
    "own.py": OWN,
    "declared.py": DECLARED,
    "control.py": CONTROLS,
    "broken.py": "class Mine(:\n",
    "y.yaml": "duration: 4s\nnetwork:\n  preset: dumbbell\n",
    "y.yml": "# a comment\n- duration: 4s\n",
    "j.json": '{"duration": "4s"}\n',
    "page.html": "<html></html>\n",
    "prog.py": "import os\n",
    "bytes.toml": b"\xff\xfe\x00",
    "empty.toml": "",
    "words.txt": "hello world\n",
    "unquoted.toml": "duration = 4s\n",
    "word.toml": f"quue = quue\n{MY}",
    "bare.toml": f"quue\n{MY}",
    "capital.toml": MY.replace("true", "True"),
    "double.toml": MY.replace("[network]", "[[network]]"),
    "twice.toml": 'duration = "4s"\nduration = "5s"\n',
    "text.pcap": "no capture\n",
    "decimal.mahi": "1.0\n2.0\n",
    "packets.parquet": b"PAR1\xff",
    "other.log": '{"log": "of something else"}\n',
    "some.pcapng": b"\n\r\r\n\x1c\0\0\0M<+\x1a\1\0\0\0" + b"\xff" * 8 + b"\x1c\0\0\0",
    "some.pcap": b"\xd4\xc3\xb2\xa1\2\0\4\0" + b"\0" * 8 + b"\xff\xff\0\0\1\0\0\0",
}
"""What lies in the folder."""

SETTINGS = """
duration=10 | my.toml: duration = 10 | 20ms | with its unit
duration=ten | duration = "ten" | a time
duration=0s | duration = "0s" | more than 0s
duration=-4s | duration = "-4s" | a time
duration= | duration = ""
warmup=4s | warmup = "4s" | less than the duration of 4s
seed=-1 | seed = -1 | a whole number, 0 … 18446744073709551615
seed=abc | seed = "abc" | a whole number
seed=1.5 | seed = 1.5 | a whole number
title=5 | title = 5 | text in quotes
network.rate=10 | network.rate = 10 | a rate | with its unit
network.rate=10mbps | "10mbps" | mbit for bits, MB/s for bytes
network.rate=10MB | "10MB" | 10mbit for bits, or 10MB/s for bytes?
network.rate=1GB | "1GB" | 1gbit for bits, or 1GB/s for bytes?
network.rate=10Mbyte | "10Mbyte" | 10MB/s?
network.rate=10m | "10m" | 10mbit?
network.rate=0mbit | "0mbit" | at least 1bit
network.rate=true | network.rate = true | a rate
network.delay=5m | network.delay = "5m" | 5ms?
network.delay=5 | network.delay = 5 | a time
network.preset=dumbell | network.preset = "dumbell" | did you mean `dumbbell`?
network.preset=star | network.preset = "star" | chain
network.presets=feng | network.presets | unknown key | did you mean `preset`?
network.bandwidth=1mbit | network.bandwidth = "1mbit" | unknown key | did you mean `rate`?
network.latency=5ms | unknown key | did you mean `delay`?
network.rtt=50ms | network.rtt = "50ms" | unknown key | `access_delay`
network.bottlenecks=0 | network.bottlenecks = 0 | 1 … 10000
network.buffer=100p | unknown key | `buffer` is a key of [[queue]]
queue.0.aqm=reed | queue[0].aqm = "reed" | did you mean `red`?
queue.0.aqm=RED | queue[0].aqm = "RED" | did you mean `red`?
queue.0.aqm=fq_codel | "fq_codel" | did you mean `fq-codel`?
queue.0.aqm=pfifo | "pfifo" | `droptail`
queue.0.aqm=5 | queue[0].aqm = 5 | text in quotes
queue.0.buffer=100 | queue[0].buffer = 100 | with its unit
queue.0.buffer=100kb | "100kb" | kB for 1000 bytes, KiB for 1024
queue.0.buffer=0p | "0p" | 1p …
queue.0.buffer=100packet | "100packet" | 100p?
queue.0.buffer=100pkts | "100pkts" | 100p?
queue.0.buffer=0bdp | "0bdp" | (one packet)
queue.0.limit=100p | queue[0].limit | unknown key | did you mean `buffer`?
queue.0.qdisc=red | unknown key | did you mean `aqm`?
queue.0.rate=1mbit | unknown key | `rate` is a key of [network]
queue.0.increment=0.1 | unknown key | params = { increment
queue.0.target=5ms | unknown key | `target` is a parameter of ared, codel, pie | not of blue
queue.0.params.incremnt=0.1 | queue[0].params.incremnt = 0.1 | did you mean `increment`?
queue.0.params.increment=2 | queue[0].params.increment = 2 | 0 … 1
queue.0.params.increment=abc | "abc" | a number
queue.0.params.target=5ms | queue[0].params.target | blue has | parameter of ared, codel, pie
queue.0.params=5 | queue[0].params = 5 | a table, as { key = value }
queue.1.aqm=red | queue.1.aqm | 0 … 0 | counted from 0
queue.aqm=red | queue.aqm | counted from 0
queue=red | queue = "red" | in brackets
queue.0.link=A->C | "A->C" | did you mean `A->B`?
queue.0.prefilter=redpd | "redpd" | did you mean `red-pd`?
traffic.0.flows=0 | traffic[0].flows = 0 | at least 1
traffic.0.flows=-3 | traffic[0].flows = -3 | a whole number, 0 … 4294967295
traffic.0.flows=abc | traffic[0].flows = "abc" | a whole number
traffic.0.flows=1.5 | traffic[0].flows = 1.5 | a whole number
traffic.0.flows=99999999 | 99999999 | at most 4000000
traffic.0.transport=tcp | "tcp" | TCP is `sack`, `cubic`
traffic.0.transport=cubik | "cubik" | did you mean `cubic`?
traffic.0.transport=CUBIC | "CUBIC" | did you mean `cubic`?
traffic.0.transport=bbr2 | "bbr2" | `bbr` is version 3
traffic.0.transport=udp | "udp" | `cbr`
traffic.0.start=2 | traffic[0].start = 2 | an instant
traffic.0.start=3s..9s | "3s..9s" | a range that ends by 4s
traffic.0.start=5s | "5s" | less than 4s
traffic.0.start=2s..1s | "2s..1s" | ends before it begins
traffic.0.stop=0s | "0s" | more than 0s
traffic.0.ecn=yes | traffic[0].ecn = "yes" | true or false
traffic.0.ecn=1 | traffic[0].ecn = 1 | true or false
traffic.0.rtt=20ms | traffic[0].rtt = "20ms" | unknown key | `access_delay`
traffic.0.rate=1mbit | traffic[0].rate | for cbr | leave it out
traffic.0.packet=10B | "10B" | 40B … 65535B
traffic.0.packet=1500 | traffic[0].packet = 1500 | with its unit
traffic.0.mss=1500B | unknown key | did you mean `packet`?
traffic.0.app=web1 | "web1" | did you mean `web`?
traffic.0.app=pareto | traffic[0].on | needed by pareto
traffic.0.from=A | traffic[0].from = "A" | ["A"]
traffic.0.cc=cubic | unknown key | did you mean `transport`?
traffic.0.count=4 | unknown key | did you mean `flows`?
traffic.0.delay=4ms | unknown key | `delay` is a key of [network]
traffic.0.dscp=EFF | "EFF" | EF, AF41
traffic.0.preset=linus | "linus" | did you mean `linux`?
traffic.0.initial_window=0 | traffic[0].initial_window = 0 | 1 … 1000
measure.interval=0s | measure.interval = "0s" | at least
measure.intervall=5s | unknown key | did you mean `interval`?
measure.groups=true | measure.interval | needed by groups
interval=1s | interval = "1s" | unknown key | a key of [measure]
network.rate=10Mb | "10Mb" | 10mbit?
network.rate=1e7 | a rate | with its unit
network.rate=-1mbit | "-1mbit" | a rate such as
network.delay=0.02 | network.delay = 0.02 | with its unit
network.delay=-5ms | "-5ms" | a time such as
network.jitter=5ms | unknown key | `jitter` is a key of [[traffic]]
network.loss=1% | unknown key | `loss` is a key of [[link]]
network.queue=red | unknown key | `queue` is a table of its own: [[queue]]
queue.0.traffic=4 | unknown key | `traffic` is a table of its own: [[traffic]]
network.access_rate=fast | network.access_rate = "fast" | a rate such as
network=dumbbell | network = "dumbbell" | a table
queue.0.buffer=1Mb | "1Mb" | kB for 1000 bytes | mbit for bits
queue.0.buffer=1.5 | queue[0].buffer = 1.5 | with its unit
queue.0.buffer=-1p | "-1p" | a size such as
queue.0.buffer=100ms | "100ms" | a size such as 200kB
queue.0.buffer_size=100p | unknown key | did you mean `buffer`?
queue.0.ecn=true | unknown key | params = { ecn
queue.0.name=x | unknown key | a queue goes by the name of its link: `link`
queue.0.kind=blue | unknown key | did you mean `aqm`?
queue.0.type=blue | unknown key | did you mean `aqm`?
queue.0.w_q=0.1 | queue[0].w_q = 0.1 | `w_q` is a parameter of red, | not of blue
network.name=x | unknown key | did you mean `title` of the file
measure.interval=5s | measure.interval = "5s" | at most the duration of 4s
queue.0.aqm=fifo | "fifo" | `droptail`
queue.0.aqm=blue2 | "blue2" | did you mean `blue`?
queue.0.translated=both | "both" | host | peer
queue.0.params.ecn=yes | queue[0].params.ecn = "yes" | true or false
queue.0.params.freeze_time=100 | queue[0].params.freeze_time = 100 | add the unit
queue.0.params.freeze_time=-1ms | "-1ms" | a time such as
queue.0.prefilter_params.rate=1mbit | queue[0].prefilter | needed by its parameters
queue.-1.aqm=red | queue.-1.aqm | 0 … 0 | counted from 0
queue.x.aqm=red | 'x' | 0 … 0 | counted from 0
queues.0.aqm=red | queues | unknown key | did you mean `queue`?
traffic.1.flows=3 | traffic.1.flows | 0 … 0 | counted from 0
traffic.0.transport=bbrv3 | "bbrv3" | `bbr` is version 3
traffic.0.transport=reno2 | "reno2" | did you mean `reno`?
traffic.0.start=0 | traffic[0].start = 0 | an instant
traffic.0.start=-1s | "-1s" | a time such as
traffic.0.size=1MB | for finite, web only | leave it out
traffic.0.window=64 | traffic[0].window = 64 | with its unit
traffic.0.initial_window=ten | "ten" | a whole number
traffic.0.delayed_ack=yes | "yes" | a time such as
traffic.0.to=["Z"] | traffic[0].to | A, B | there is no node `Z`
traffic.0.file=x.pcap | for trace only | leave it out
traffic.0.gaps=poisson | for cbr only | leave it out
traffic.0.name=5 | traffic[0].name = 5 | text in quotes
traffic.0.transport=python:control.py:Nobody | 'Nobody' | Few, Late
traffic.0.transport=python:control.py | python:FILE:CLASS
traffic.0.transport=python:control.py:Late | control.py:3 | 'on_akc' | did you mean 'on_ack'?
traffic.0.transport=python:nosuch.py:C | nosuch.py | No such file
traffic.0.transport=python:own.py:Much | for `aqm`, not for `transport` | aqm = "python:own.py:Much"
queue.0.aqm=python:control.py:Late | for `transport`, not for `aqm`
measure.interval=1 | measure.interval = 1 | with its unit
measure.delay=true | unknown key | did you mean `delays`?
measure=true | measure = true | a table
sweep.rate=[1,2] | unknown key | `bluewater sweep FILE`
seed= | seed = "" | a whole number
seed=99999999999999999999 | a whole number
duration=1e3s | "1e3s" | a time such as
time=4s | time = "4s" | unknown key | did you mean `duration`?
queue.0.aqm=fairqueue | "fairqueue" | did you mean `fq`?
queue.0.aqm=l4s | "l4s" | did you mean `dualpi2`?
queue.0.aqm=tbf | "tbf" | a link shapes by itself, to its rate
queue.0.aqm=htb | "htb" | a link shapes by itself
queue.0.aqm=hfsc | "hfsc" | a link shapes by itself
queue.0.aqm=netem | "netem" | keys of a link, beside any discipline
queue.0.aqm=mq | "mq" | each link has one queue
queue.0.aqm=noqueue | "noqueue" | each link has one queue
queue.0.aqm=prio | "prio" | `diffserv`
queue.0.aqm=sqm | "sqm" | did you mean `cake`?
queue.0.aqm=wfq | "wfq" | did you mean `drr`?
queue.0.aqm=bfifo | "bfifo" | it is `droptail` here
queue.0.aqm=pfifo_fast | "pfifo_fast" | it is `droptail` here
queue.0.aqm=pfifo_head_drop | "pfifo_head_drop" | did you mean `drop-front`?
queue.0.aqm=sch_fq_codel | "sch_fq_codel" | did you mean `fq-codel`?
queue.0.aqm=ns3::CoDelQueueDisc | "ns3::CoDelQueueDisc" | did you mean `codel`?
queue.0.aqm=FifoQueueDisc | "FifoQueueDisc" | it is `droptail` here
queue.0.aqm=DropTailQueue | "DropTailQueue" | did you mean `droptail`?
queue.0.aqm=sbf | "sbf" | did you mean `sfb`?
queue.0.aqm=own.py:Much | "own.py:Much" | did you mean `python:own.py:Much`?
queue.0.aqm=own.py | "own.py" | name the class, too: `python:own.py:CLASS`
queue.0.aqm=python:own.py | "python:own.py" | name the class, too
queue.0.prefilter=tbf | "tbf" | it drops; a shaper is a key of a queue: `shaper = { rate = … }`
queue.0.params.limit=100 | queue[0].params.limit | its `buffer`, whatever the discipline
queue.0.params.nat=true | queue[0].params.nat | unless their queue is `translated`
queue.0.params.bandwidth=10mbit | queue[0].params.bandwidth | the rate is the link's
queue.0.params.avpkt=1000 | queue[0].params.avpkt | no such parameter
queue.0.params.minth=5p | queue[0].params.minth | blue has
queue.0.params.flows=1024 | queue[0].params.flows | blue has
queue.0.params.overhead=44 | queue[0].params.overhead | the link's
queue.0.params.mode=packet | "packet" | did you mean `packets`?
queue.0.params.preset=lnux | "lnux" | allowed
traffic.0.preset=lnux | "lnux" | did you mean `linux`?
traffic.0.transport=quic | "quic" | `quinn` or `noq`
traffic.0.transport=vegas | "vegas" | not built in | python:FILE:CLASS
traffic.0.transport=bic | "bic" | not built in
traffic.0.transport=ns3::TcpCubic | "ns3::TcpCubic" | did you mean `cubic`?
traffic.0.transport=TcpLinuxReno | "TcpLinuxReno" | did you mean `reno`?
traffic.0.transport=ftp | "ftp" | app "infinite" or "finite"
traffic.0.transport=iperf | "iperf" | `cubic`, with app "infinite"
traffic.0.transport=http | "http" | app = "web"
traffic.0.transport=voip | "voip" | did you mean `cbr`?
traffic.0.transport=webrtc | "webrtc" | did you mean `scream`?
traffic.0.transport=poisson | "poisson" | did you mean `cbr`?
traffic.0.transport=control.py:Late | "control.py:Late" | did you mean `python:control.py:Late`?
traffic.0.app=ftp | "ftp" | a download is `infinite`
traffic.0.app=bulk | "bulk" | a download is `infinite`
traffic.0.app=http | "http" | did you mean `web`?
traffic.0.app=onoff | "onoff" | go on and off
traffic.0.app=cbr | "cbr" | that is the key `transport`
traffic.0.from=["Q"] | traffic[0].from | there is no node `Q`
network.preset=parking-lot | "parking-lot" | did you mean `chain`?
foo=1 | foo = 1 | unknown key | duration, warmup
=1 | not a setting | KEY=VALUE
duration | --set = 'duration' | KEY=VALUE | network.rate=10mbit
"""
"""What is set of `my.toml`."""

COMMANDS = """
run missing.toml | missing.toml | No such file
run folder | folder | Is a directory
run y.yaml | y.yaml | YAML | scenarios are TOML
run y.yml | y.yml | YAML | scenarios are TOML
run j.json | j.json | JSON | scenarios are TOML
run page.html | page.html | HTML | scenarios are TOML
run prog.py | prog.py | Python | FILE.py:CLASS
run bytes.toml | bytes.toml | not UTF-8
run empty.toml | empty.toml | the key `duration` is missing
run words.txt | words.txt:1
run unquoted.toml | unquoted.toml:1 | text without quotes | duration = "4s"
run twice.toml | twice.toml:2 | the key `duration` stands twice
run word.toml | word.toml:1 | text without quotes | quue = "quue"
run bare.toml | bare.toml:1 | a key without a value | quue = …
run capital.toml | capital.toml:16 | true or false, in small letters
run double.toml | double.toml:4 | network | in single brackets: [network]
run my.toml --set queue.0.buffer=10GB | queue[0].buffer = "10GB" | 469762048B
compare droptail drr --buffer 10GB | --buffer = '10GB' | 469762048B
compare droptail --buffer 100000000p | --buffer = '100000000p' | 16777216p
run sweep.toml | sweep.toml:17 | `bluewater sweep FILE` runs it
run itself.toml | itself.toml:14 | traffic[0].to = ["a"] | from a to itself | different nodes
run apart.toml | apart.toml:14 | no route from a to d | connect the nodes
run no-node.toml | no-node.toml:14 | ["c"] | a, b
run my.toml --packets x.csv | x.csv | .parquet or .pcapng | write_csv
run my.toml --packets x.pcap | x.pcap | .parquet or .pcapng | Wireshark
run my.toml --packets - | -: packets are written as Parquet | as in packets.parquet
run my.toml --packets x.feather | x.feather | .parquet or .pcapng
run my.toml --packets folder | folder | where a file is needed
run my.toml --packets x.parquet --packets-flows a | --packets-flows = 'a' | 0-3,7
run my.toml --packets x.parquet --packets-time 5s | --packets-time = '5s' | 10s..12.5s
run my.toml --packets x.parquet --packets-time 3s..2s | --packets-time | ends before it begins
run my.toml --packets x.parquet --packets-flows 99 | --packets-flows = '99' | 0-5
run my.toml --packets x.parquet --packets-time 9s..10s | --packets-time = '9s..10s' | 0s..4s
run feng/fig5 | feng/fig5 | `bluewater reproduce feng/fig5`
run kept | kept | the folder of a run | `bluewater run kept/scenario.toml`
run 0123456789abcdef0123456789abcdef | the key of a run | results/runs/01/0123456789abcdef
run | missing argument 'file' | run --help`
run my.toml --set seed=1 --set seed=2 | seed is set twice | 'seed=2'
run my.toml --packets-every 2 | no file is named | --packets FILE
run my.toml --csv my.toml | my.toml | where a folder is needed
run my.toml --seed x | --seed
compare rad | 'rad' | did you mean 'red'?
compare RED | 'RED' | did you mean 'red'?
compare fq_codel | 'fq_codel' | did you mean 'fq-codel'?
compare pfifo | it is `droptail` here
compare red --rate 10MB | --rate = '10MB' | 10mbit for bits, or 10MB/s for bytes?
compare red --rate 10 | --rate = '10' | add the unit
compare red --rtt 20 | --rtt = '20' | 20ms
compare red --buffer 100 | --buffer = '100' | 100p
compare red --buffer 0p | --buffer = '0p' | 1p …
compare red --duration 10 | --duration = '10' | 20ms
compare red --duration 1ms | --duration = '1ms' | at least 100ms
compare red --duration 2s --warmup 3s | --warmup = '3s' | less than the duration of 2s
compare red --transport tcp | --transport | TCP is `sack`, `cubic`
compare red --transport cubix | --transport | did you mean 'cubic'?
compare red --against cubic:x | --against = 'cubic:x' | as in cubic:10
compare red --against udp:5mbit | 'udp' | datagrams at a rate are `cbr`
compare red --against cbr:5 | --against = 'cbr:5' | add the unit
compare red --seeds 1,1 | --seeds | all different
compare red --seeds a | --seeds = 'a' | 1,2,3 or 1-5
compare red --seeds 1 --reps 2 | --seeds cannot go with
compare red --seed 7 --seeds 2 | --seeds cannot go with --seed
compare red --on slrum | --on | did you mean 'slurm'?
compare red:max_p=2 | max_p = '2' | 0 … 1
compare red:maxp=0.1 | maxp = '0.1' | did you mean `max_p`?
compare red:max_p | 'red:max_p' | red:max_p=VALUE
compare red: | 'red:' | `bluewater explain red`
compare nosuch.py:Mine | nosuch.py: No such file
compare broken.py:Mine | broken.py:1
compare own.py:Nobody | 'Nobody' | Few, Late
compare own.py:Few | on_arrival(self, packet, queue) | def on_arrival(self, now, packet, queue):
compare own.py:Late | on_arival | did you mean 'on_arrival'?
compare own.py | 'own.py' | FILE.py:CLASS
compare red --size colum | --size | did you mean 'column'?
compare red --picture fig.jpg | fig.jpg | .png, .svg, .pdf, .pgf
compare red --picture fig | fig | fig.png
compare red --table t.xlsx | t.xlsx | .csv, .md, .tex
compare red --set queue.0.bufer=5p | queue[0].bufer = '5p' | did you mean `buffer`?
compare red --set foo | --set = 'foo' | KEY=VALUE
sweep missing.toml | missing.toml | No such file
sweep y.yaml | y.yaml | YAML
sweep axis.toml | queue[0].aqn | unknown key
sweep empty-axis.toml | empty-axis.toml | aqm
sweep my.toml --size huge | 'huge' | full | at --size
sweep my.toml --shard 4/3 | --shard = '4/3' | 2/5
sweep my.toml --table t.doc | t.doc | .csv, .md, .tex
sweep my.toml --seeds 3-1 | --seeds | 1-5
plot missing | missing | `bluewater run FILE`
plot my.toml | a scenario, where the folder of a run | `bluewater run my.toml`
plot other.log | other.log | --log
plot words.txt | words.txt | --log
plot packets.parquet | packets.parquet | a file of packets | `bluewater why packets.parquet N`
plot text.pcap | text.pcap | --log
plot folder | folder | `bluewater run FILE`
trace nosuch.pcap | nosuch.pcap | No such file | check the path
trace text.pcap | text.pcap | neither pcap nor pcapng
trace folder | folder | check the path
replay nosuch.arr --aqm red | nosuch.arr | No such file | --record
replay text.pcap --aqm red | text.pcap | --record
replay text.pcap --queue up | --queue | add --aqm NAME
replay words.txt | words.txt | not a recording | --record
replay nosuch.arr | nosuch.arr | No such file | --record
trace link decimal.mahi x.csv | decimal.mahi | '1.0' | whole milliseconds
trace link | missing argument 'FROM' | trace link --help`
export nosuch --to x.json | x.json | .qlog
export nosuch --to x.qlog | nosuch
export my.toml --to x.qlog | my.toml
explain redd | 'redd' | did you mean 'red'?
explain max_p | 'max_p' | red, | `bluewater explain
explain own.py:Nobody | Nobody
list foo | foo
reproduce fen | 'fen' | did you mean 'feng'?
reproduce feng/fig99 | 'feng/fig99' | did you mean
reproduce missing.toml | missing.toml | No such file
reproduce feng --size tiny | 'tiny' | quick
reproduce feng --seeds 1- | --seeds = '1-' | 1-5
report nosuch | 'nosuch' | feng
why nosuch.parquet 1 | nosuch.parquet | --packets
why words.txt 1 | words.txt | no Parquet | --packets
advise --down 50 --up 10 | --down = '50' | add the unit
advise --down 50MB --up 10mbit | --down = '50MB' | 50mbit for bits, or 50MB/s for bytes?
advise --down 50mbit --up fast | --up = 'fast' | a rate such as
advise --down 0mbit | --down = '0mbit' | at least 1bit
advise --rate 10mbit --down 50mbit | --rate cannot go with --down | --up away from you
advise --dwn 50mbit | no option --dwn | did you mean --down?
advise --bandwidth 50mbit | no option --bandwidth | did you mean --rate?
advise --delay 20ms | no option --delay | did you mean --rtt?
advise --limit 100p | no option --limit | did you mean --buffer?
advise --overhead 44 | no option --overhead | did you mean --framing?
advise --aqm red | no option --aqm | `bluewater advise --help`
advise 50mbit | nothing takes '50mbit' | `bluewater advise --help`
advise --ecn yes | nothing takes 'yes' | --ecn and --no-ecn
advise --table t.xls | t.xls | .csv, .md, .tex
advise --rtt 20 | --rtt = '20' | 20ms
advise --bulk many | --bulk = 'many' | a whole number, 1 or more
advise --bulk 0 | --bulk = '0' | a whole number, 1 or more
advise --calls 1.5 | --calls = '1.5' | a whole number, 0 or more
advise --reps 1 | --reps = '1' | 2 or more
advise --margin 60 | --margin = 60 | 0 to 50 %
advise --margin 10% | --margin = '10%' | a number
advise --framing pppoe | --framing = 'pppoe' | words of tc cake | VDSL has pppoe-ptm
advise --framing cable | --framing = 'cable' | docsis
advise --hostile 5 | --hostile = '5' | add the unit
advise --transport quic | --transport | cubic
advise --buffer 0p | --buffer = '0p' | 1p …
advise --buffer 100 | --buffer = '100' | add the unit
advise --buffer 1bdp | --buffer = '1bdp' | bytes or packets
advise --duration 0s | --duration = '0s' | more than 0s
advise --duration 30 | --duration = '30' | add the unit
advise --box OpenWrt | --box | did you mean 'openwrt'?
advise --box router | --box | did you mean `openwrt`?
advise --on slrum | --on | did you mean 'slurm'?
advise --out my.toml | my.toml | --out names another folder
compare red --flows 10 20 40 | aqm = '20' | an option takes one value | key = "traffic.0.flows"
compare red --rate 10mbit 20mbit | aqm = '20mbit' | `bluewater sweep FILE` runs several
compare red --flows 10,20,40 | --flows = '10,20,40' | key = "traffic.0.flows"
compare red --rate 10mbit,20mbit | --rate = '10mbit,20mbit' | key = "network.rate"
compare red --buffer 50p,100p | --buffer = '50p,100p' | key = "queue.0.buffer"
compare red --rate 10mbit --rate 20mbit | given twice | key = "network.rate"
compare red --transport sack,cubic | --transport | key = "traffic.0.transport"
compare red --flows abc | --flows = 'abc' | a whole number, 1 or more
compare red --reps 0 | --reps = '0' | 1 or more
compare red --jobs 0 | --jobs = '0' | 1 or more
compare red --preset modrn | --preset = 'modrn' | did you mean `modern`?
compare red --hostile 5mbit | no option --hostile | did you mean --against?
compare red --runs 5 | no option --runs | did you mean --reps?
compare red --packet 1500 | no option --packet | --set network.rate
compare red --ecn yes | 'yes' | --ecn and --no-ecn
compare red --against call:0 | --against = 'call:0' | cubic:10
compare red --against voip:2 | 'voip' | did you mean `call`?
compare red,blue | 'red,blue' | red blue
compare 'red blue' | 'red blue' | without quotes: red blue
compare my.toml | a scenario | `bluewater sweep my.toml`
compare tbf | 'tbf' | a link shapes by itself
compare netem | 'netem' | keys of a link | `delay`, `loss`
compare fairqueue | 'fairqueue' | did you mean `fq`?
compare l4s | 'l4s' | did you mean `dualpi2`?
compare red:gentle=maybe | gentle = 'maybe' | true or false
compare codel:target=5 | target = '5' | add the unit
compare codel:target=5m | target = '5m' | 5ms?
compare red --warmup abc | --warmup = 'abc' | a time such as
compare red --duration 0s | --duration = '0s' | more than 0s
compare red --out my.toml | my.toml | --out names another folder
compare declared.py:Clock:gain=3 | gain = '3' | 0 … 1
compare declared.py:Clock:gian=0.1 | gian = '0.1' | did you mean 'gain'?
compare declared.py:Clock:period=5 | period = '5' | 1ms … 1s | add the unit
compare declared.py:Wide | params.gain | 0 … 1
compare control.py:Late | for `transport`, not for `aqm`
compare red --transport control.py:Late | --transport | cubic
run my.toml --rate 10mbit | no option --rate | --set network.rate=10mbit
run my.toml --seed -1 | --seed = '-1' | 0 or more
run my.toml links.toml | nothing takes 'links.toml'
run my.toml --set=duration:5s | --set = 'duration:5s' | KEY=VALUE
run my.toml --packets x.parquet --packets-every 0 | --packets-every = '0' | 1 or more
run my.toml --packets x.parquet --packets-flows 3-1 | '3-1' | ends before it begins
run links.toml --set link.0.rate=10 | link[0].rate = 10 | with its unit
run links.toml --set link.0.dely=5ms | unknown key | did you mean `delay`?
run links.toml --set link.0.aqm=red | unknown key | `aqm` is a key of [[queue]]
run links.toml --set link.0.framing=adsl | "adsl" | pppoe-ptm
run links.toml --set link.1.rate=1mbit | link.1.rate | 0 … 0
run links.toml --set queue.0.link=a-b | "a-b" | did you mean `a->b`?
run links.toml --set network.rate=1mbit | network.rate = "1mbit" | `rate` is a key of [[link]]
run links.toml --set network.left=2 | network.left = 2 | sides | leave it out
run other.log | other.log | JSON
sweep sweep.toml --set queue.0.aqm=pie | queue.0.aqm = 'pie' | no effect | the axis 'aqm'
sweep my.toml --vary queue.0.aqm=red | no option --vary | --set
sweep sweep.toml --seeds 1;2 | --seeds = '1;2' | 1,2,3 or 1-5
sweep sweep.toml --shard 0/2 | --shard = '0/2' | I from 1 to N
sweep sweep.toml --jobs all | --jobs = 'all' | 1 or more
sweep page.html | page.html | HTML
replay my.toml --aqm red | my.toml | no Parquet | --record
trace words.txt --window 5 | --window = '5' | a time such as
trace words.txt --timeout 5 | --timeout = '5' | a time such as
trace text.pcap --most-flows 1 | --most-flows = '1' | 2 or more
trace generate x.pcap --load 5 | --load = '5' | add the unit
trace generate x.pcap --duration 5 | --duration = '5' | add the unit
trace generate folder | folder
export my.toml --to x.txt | x.txt | .qlog
explain own.py | own.py
explain codle | 'codle' | did you mean 'codel'?
why words.txt --which lost | 'lost' | --which | dropped, marked, sent
why words.txt x | 'x' | a whole number
reproduce feng --quik | no option --quik | did you mean --quick?
reproduce feng --jobs 0 | --jobs = '0' | 1 or more
suite l4 | 'l4' | did you mean 'l4s'?
suite rfc9743 --candidate quin:cubic | 'quin:cubic' | quinn, noq | quinn:newreno
suite rfc9743 --candidate quinn:bbr | 'quinn:bbr' | cubic, newreno | ignores its pacing rate
suite l4s --size huge | 'huge' | full, quick
plot --size colum | --size | did you mean 'column'?
plot nosuch.toml | a scenario, where the folder of a run is needed | `bluewater run nosuch.toml`
gateway view | gateway view NAME
gateway view -x | gateway view NAME
compare codel:preset=lnux | preset = 'lnux' | did you mean `linux`?
compare fq-codel:flows=1024 | flows = '1024' | did you mean `queues`?
compare fq-codel:limit=1000 | limit = '1000' | its `buffer`
compare red:minth=5p | minth = '5p' | did you mean `min_th`?
compare red:max=15p | max = '15p' | did you mean `max_th`?
compare red:probability=0.1 | probability = '0.1' | `max_p`
compare codel:overhead=44 | overhead = '44' | the link's
compare htb | 'htb' | a link shapes by itself
compare mq | 'mq' | each link has one queue
compare ns3::FqCoDelQueueDisc | did you mean `fq-codel`?
compare red --transport vegas | --transport | not built in
compare red --transport quic | --transport | `quinn` or `noq`
compare red --against http:3 | 'http' | did you mean `web`?
advise --framing -100 | --framing = '-100' | -64 … 256
advise --framing pppoe-llc | --framing = 'pppoe-llc' | did you mean pppoe-llcsnap?
advise --framing PPPOE-PTM | 'PPPOE-PTM' | did you mean pppoe-ptm?
advise --framing pppoe_ptm | 'pppoe_ptm' | did you mean pppoe-ptm?
advise --framing 'pppoe-ptm vlan' | 'pppoe-ptm vlan' | ether-vlan
advise --framing lte | 'lte' | leave the option out
advise --framing atm44 | 'atm44' | overhead BYTES | presets are conservative
advise --framing 'overhead 300' | 'overhead 300' | from -64 to 256
advise --framing via-ethernet | 'via-ethernet' | from the IP packet on
advise --framing 'raw overhead 8' | 'raw overhead 8' | stands alone | leave raw out: overhead 8
advise --table | --table | `bluewater advise --help`
explain own.py:Few | on_arrival(self, packet, queue) | def on_arrival(self, now, packet, queue):
explain cubic | 'cubic' | a transport of [[traffic]] | `bluewater list`
explain my.toml | 'my.toml' | a scenario | `bluewater run my.toml --dry-run`
explain red:max_p=0.1 | 'red:max_p=0.1' | `bluewater explain red`
run some.pcapng | some.pcapng | a packet capture | `bluewater trace some.pcapng`
sweep some.pcap | some.pcap | a packet capture | `bluewater trace some.pcap`
plot some.pcapng | some.pcapng | a packet capture | `bluewater trace some.pcapng`
why some.pcapng 1 | some.pcapng | a packet capture | `bluewater trace some.pcapng`
replay some.pcapng | some.pcapng | a packet capture | file = "some.pcapng"
replay some.pcapng --aqm red | some.pcapng | a packet capture | file = "some.pcapng"
compare some.pcapng | 'some.pcapng' | a packet capture | `bluewater trace some.pcapng`
run my.toml --table t.csv | no option --table | did you mean --csv?
run my.toml --picture x.png | no option --picture | `bluewater plot`
run my.toml --size column | no option --size | `bluewater plot`
run my.toml --reps 5 | no option --reps | `bluewater sweep FILE --reps 5`
run my.toml --seeds 1-5 | no option --seeds | `bluewater sweep FILE --reps 5`
run my.toml --jobs 2 | no option --jobs | --threads | `bluewater sweep FILE --reps 5`
sweep my.toml --picture x.png | no option --picture | [[plot]] | `bluewater reproduce FILE`
plot --picture x.png | no option --picture | did you mean --out?
plot --table x.csv | no option --table | did you mean --out?
cmpare red | error: no such command 'cmpare' | 'compare'
bogus | error: no such command 'bogus' | --help` lists all
"""


def cases(text: str) -> list[list[str]]:
    """A case a line: what the user types, and what the program prints."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [[part.strip() for part in line.split(" | ")] for line in lines]


OURS = ("Traceback", "u32", "u64", "usize", "struct ", "invalid type", "unknown field", "os error")
"""What no message has: words of a programming language."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory, with files of all kinds."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "folder").mkdir()
    (folder / "kept").mkdir()
    (folder / "kept" / "scenario.toml").write_text(MY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def refused(arguments: list[str], told: list[str], code: int = 2) -> None:
    found = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert found.exit_code == code, found.output
    said = " ".join(found.stderr.split())
    assert found.stdout == ""
    assert [each for each in told if " ".join(each.split()) not in said] == [], said
    assert [each for each in OURS if each in said] == [], said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("setting", "told"), [(c[0], c[1:]) for c in cases(SETTINGS)])
def test_what_is_set_wrong_is_told_with_key_value_and_what_is_allowed(
    setting: str, told: list[str]
) -> None:
    refused(["run", "my.toml", "--set", setting], told)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("line", "told"), [(c[0], c[1:]) for c in cases(COMMANDS)])
def test_what_is_typed_wrong_is_told_in_its_own_words(line: str, told: list[str]) -> None:
    refused(shlex.split(line), told)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Asks", ["own.py:4", "'sojourn'", "arrived, ecn, flow, len", "now - packet.arrived"]),
        ("Text", ["own.py:6", "it gave 'drop'", "ARRIVING, or the position of a queued packet"]),
        ("Much", ["own.py:9", "it gave 1.5", "a probability of 0 … 1"]),
    ],
)
def test_what_a_class_does_wrong_is_told_once(name: str, told: list[str]) -> None:
    small = shlex.split("--flows 60 --rate 2mbit --duration 3s --reps 4 --jobs 1")
    found = CliRunner().invoke(app, ["compare", f"own.py:{name}", *small])
    assert found.exit_code == 1
    said = " ".join(found.stderr.split())
    assert [each for each in told if each not in said] == [], said
    assert said.count("failed: ") == 1
    assert "(and 3 more in the same way)" in said


API: list[tuple[Callable[[], Any], list[str]]] = [
    (lambda: bluewater.run(5), ["source", "5", "a path, TOML text"]),  # type: ignore[arg-type]
    (lambda: bluewater.run("missing.toml"), ["missing.toml"]),
    (lambda: bluewater.run("y.yaml"), ["y.yaml", "YAML"]),
    (lambda: bluewater.run({}), ["duration"]),
    (lambda: bluewater.run({"duraton": "4s"}), ["duraton", "duration"]),
    (lambda: bluewater.run("my.toml", seed=1.5), ["seed", "1.5", "a whole number"]),  # type: ignore[arg-type]
    (lambda: bluewater.run("my.toml", packets="x.csv"), ["x.csv", ".parquet"]),
    (lambda: bluewater.compare("red"), ["aqms", "'red'", "a sequence of names"]),
    (lambda: bluewater.compare([]), ["aqms", "one or more"]),
    (lambda: bluewater.compare(["red"], rate=10), ["rate", "10", "a rate such as", "45mbit"]),
    (lambda: bluewater.check("red"), ["= 'red'", "python:FILE:CLASS"]),
    (lambda: bluewater.compare(["red"], rate="10MB"), ["rate", "'10MB'", "10mbit for bits"]),
    (lambda: bluewater.compare(["red"], bandwidth="10mbit"), ["bandwidth", "rate"]),
    (lambda: bluewater.compare(["red"], reps=0), ["reps", "0"]),
    (lambda: bluewater.compare(["red"], seeds=[1, 1]), ["seeds", "all different"]),
    (lambda: bluewater.sweep("my.toml", {"queue.0.aqn": ["red"]}), ["aqn"]),
    (lambda: bluewater.sweep("my.toml", jobs="2"), ["jobs", "'2'", "a whole number"]),  # type: ignore[arg-type]
    (lambda: bluewater.load("folder"), ["folder", "bluewater run"]),
    (lambda: bluewater.load("nope"), ["nope", "no such folder"]),
    (lambda: bluewater.plot("folder"), ["folder"]),
    (lambda: bluewater.reproduce("nosuch"), ["'nosuch'", "feng"]),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("number", range(len(API)))
def test_what_is_called_wrong_is_told_with_argument_and_value(number: int) -> None:
    call, told = API[number]
    with pytest.raises((InputError, bluewater.ScenarioError)) as error:
        call()
    said = f"{error.value} {getattr(error.value, 'hint', '')}"
    assert [each for each in told if each not in said] == [], said
    assert [each for each in OURS if each in said] == [], said


def test_there_are_more_than_three_hundred_and_no_two_alike() -> None:
    told = [case[0] for case in (*cases(SETTINGS), *cases(COMMANDS))]
    assert len({*told}) == len(told)
    assert len(told) + len(API) + 3 >= 350
