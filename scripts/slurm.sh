#!/usr/bin/env bash
# A sweep on a real SLURM: munge, slurmctld and slurmd on this machine, four nodes of one processor
# each, put up for the test and taken down again. An element of the array is killed, a node goes
# down, and whoever asked for the sweep is killed, too; in the end every run has to be there, with
# the decisions that it has without SLURM.
#
# Needs root, `apt-get install slurmctld slurmd slurm-client munge`, and no SLURM that runs here:
#
#     make slurm
#
# Writes to a folder of its own under /tmp, which is left for a look if something fails.
set -euo pipefail
cd "$(dirname "$0")/.."
bluewater=$PWD/.venv/bin/bluewater
python=$PWD/.venv/bin/python

die() { echo "error: $*" >&2; exit 1; }
[[ $(id -u) == 0 ]] || die "slurmd starts jobs as their users: run this as root"
for program in munged slurmctld slurmd sbatch squeue; do
  command -v $program >/dev/null || die "$program is not there: apt-get install slurmctld slurmd slurm-client munge"
done
[[ -x $bluewater ]] || die "make setup comes first"
pgrep -x slurmctld >/dev/null && die "a SLURM runs here already"

work=$(mktemp -d /tmp/bluewater-slurm.XXXXXX)
chmod 755 "$work"
started=()
finish() {
  code=$?
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do kill -9 "${started[i]}" 2>/dev/null || true; done
  if ((code == 0)); then rm -rf "$work"; else echo "failed; what there is to see is in $work" >&2; fi
}
trap finish EXIT
start() { "$@" >"$work/$(basename "$1")-${#started[@]}.out" 2>&1 & started+=($!); disown; }

# --- the cluster

mkdir -p "$work"/{munge,state,spool}
head -c 1024 /dev/urandom >"$work/munge/key"
chown -R munge: "$work/munge"
chmod 711 "$work/munge"
chmod 400 "$work/munge/key"
start setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --force \
  --num-threads=10 --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed"
export SLURM_CONF=$work/slurm.conf
host=$(hostname -s)
cat >"$SLURM_CONF" <<CONF
ClusterName=bluewater
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
ReturnToService=2
SlurmdTimeout=10
MinJobAge=2
MpiDefault=none
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[16821-16824] CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
for _ in {1..50}; do [[ -S $work/munge/socket ]] && break; sleep 0.1; done
start slurmctld -D -i
for node in 1 2 3 4; do start slurmd -D -N n$node; done
ready() { [[ $(sinfo --noheader --format=%t%D 2>/dev/null) == idle4 ]]; }
for _ in {1..60}; do ready && break; sleep 0.5; done
ready || die "the nodes do not come up: $(sinfo 2>&1)"
sinfo --version

# --- the sweep

cat >"$work/buffers.toml" <<'SCENARIO'
duration = "20s"
warmup = "5s"
[network]
preset = "dumbbell"
rate = "45mbit"
delay = "20ms"
[[queue]]
aqm = "red"
buffer = "100p"
[[traffic]]
flows = 40
transport = "sack"
start = "0s..2s"
ecn = true
[sweep]
buffer = { key = "queue.0.buffer", values = [25, 50, 100, 200], unit = "p" }
SCENARIO
cd "$work"
sweep() { "$bluewater" sweep "$work/buffers.toml" --reps 15 "$@"; }
finished() { find "$work/shared/runs" -name meta.json -not -path '*/.tmp-*' 2>/dev/null | wc -l; }
at_least() { for _ in {1..600}; do (($(finished) >= $1)) && return; sleep 0.1; done; die "no run is finished"; }

echo "60 runs on 4 nodes; the sweep itself is killed after some"
sweep --on slurm --jobs 4 --out "$work/shared" >"$work/first" 2>&1 &
first=$!
at_least 4
kill -9 $first
wait $first 2>/dev/null || true
scancel --jobname=bluewater
kept=$(finished)
echo "killed, and its job cancelled: $kept runs are kept"

echo "the same command again; an element of its array is killed, and a node dies"
sweep --on slurm --jobs 4 --out "$work/shared" --json >"$work/second.json" 2>"$work/second" &
second=$!
at_least $((kept + 4))
victims=($(pgrep -f "study.part $work" || true))
((${#victims[@]})) || die "no element runs"
kill -9 "${victims[0]}"
at_least $((kept + 8))
kill -9 "${started[5]}" # slurmd of n4
echo "an element and a node are gone after $(finished) runs"
wait $second || die "the sweep failed: $(cat "$work/second")"
jobs=$(grep -c "Allocate JobId\|sched: Allocate" "$work"/slurmctld-*.out || true)

echo "a class in Python, in a place that is shared"
cat >"$work/mine.py" <<'CLASS'
from bluewater.aqm import ADMIT, SIGNAL, Aqm, random


class Coin(Aqm):
    def on_arrival(self, now, packet, queue):
        return SIGNAL if random() < 0.01 else ADMIT
CLASS
class() { sweep --size class --out "$work/class-$1" --share "file://$work/bucket" --json "${@:2}" 2>"$work/class-$1.err"; }
sed -i 's/^\[sweep\]$/[sizes.class]\nset = { "queue.0.aqm" = "python:mine.py:Coin", duration = "6s" }\n&/' "$work/buffers.toml"
class first --on slurm --jobs 4 >"$work/class.json" || die "it failed: $(cat "$work/class-first.err")"
class second --jobs 1 >"$work/class-again.json" || die "it failed: $(cat "$work/class-second.err")"
cmp "$work/class.json" "$work/class-again.json" || die "what is shared was made again"
echo "$(find "$work/bucket" -name '*.zip' | wc -l) runs of a class, made by jobs, and by nobody else"

echo "and without SLURM"
sweep --jobs 2 --out "$work/alone" --json >"$work/alone.json" 2>/dev/null
"$python" - "$work" <<'COMPARE'
import sys
from pathlib import Path

import bluewater

work = Path(sys.argv[1])
stores = []
for name in ("shared", "alone"):
    found = {path.name: bluewater.load(path).decision_hash for path in (work / name / "runs").glob("??/*")}
    stores.append(found)
assert len(stores[0]) == 60, len(stores[0])
assert stores[0] == stores[1], "decisions differ"
print("60 runs, and the same decisions with SLURM and without")
COMPARE
echo "$jobs allocations of nodes were made"
