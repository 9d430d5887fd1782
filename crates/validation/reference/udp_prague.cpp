// Whole runs of udp_prague's congestion control: flows over a link with one queue, in simulated time.
//
// The class of L4STeam/udp_prague (Apache-2.0, its prague_cc.h and prague_cc.cpp) says when to send and how much;
// `send` below is what its sender program does with that. All else is here: a FIFO before a link, which marks by
// CoDel (RFC 8289), by a step or at random, constant delays, and Reno with ECN, an acknowledgement a packet.
// Nothing is lost, and no host takes time.
//
//     g++ -O2 -I PRAGUE -o udp_prague udp_prague.cpp PRAGUE/prague_cc.cpp
//     udp_prague all > udp_prague.csv
//     udp_prague QUEUE SEED FLOWS        codel:TARGET_MS:INTERVAL_MS, step:MS or coin:P; KIND:RTT_MS joined by +
//     udp_prague QUEUE SEED FLOWS MS     each packet comes to the queue up to so much later, those of a flow in order
//
// Kinds are `prague`, `reno` (marks halve, and nothing grows until the answer to a mark has arrived) and `windowed`:
// Prague with the window of whole packets as the limit, and packets 3 % faster than that, as a TCP has it. The
// program itself sends by rate, 3 % faster and slower in turn, and its window is 3 % and a packet larger.
//
// A row for all flows of a kind: rate, round trip, packets under way (rate by round trip) and marks of all that
// arrived, means; and the packets that wait.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "prague_cc.h"

typedef int64_t ns;
const int LENGTH = 1500;
const double MBPS = 50;
const ns END = 120000000000, FROM = 20000000000, STARTS = 200000000;
ns now;
double jitter; // ms
std::mt19937_64 noise;

struct Class : PragueCC {
    Class() : PragueCC(LENGTH) {}
    time_tp Now() override { return time_tp(now / 1000 + 1); }
};

struct Packet {
    int flow, seq;
    ns sent, arrived;
    bool marked;
    time_tp stamp;
};

enum What { ARRIVES, LINK_FREE, ANSWERED, TIMER };

struct Event {
    ns at;
    uint64_t number;
    What what;
    int flow;
    Packet packet;
    bool operator<(const Event &o) const { return at != o.at ? at > o.at : number > o.number; }
};

struct Queue {
    std::deque<Packet> fifo;
    std::string kind;
    double a = 0, b = 0;
    ns first_above = -1, next = 0;
    bool dropping = false;
    unsigned count = 0, last_count = 0;
    std::mt19937_64 rng;

    // RFC 8289 §5, a mark in place of a drop.
    bool codel(ns sojourn) {
        ns target = ns(a * 1e6), interval = ns(b * 1e6);
        auto law = [&](ns t) { return t + ns(interval / std::sqrt(double(count))); };
        bool persistent = false;
        if (sojourn < target || fifo.size() <= 1)
            first_above = -1;
        else if (first_above < 0)
            first_above = now + interval;
        else
            persistent = now >= first_above;
        if (!persistent) {
            dropping = false;
        } else if (!dropping) {
            dropping = true;
            unsigned delta = count - last_count;
            count = delta > 1 && now - next < 16 * interval ? delta : 1;
            last_count = count;
            next = law(now);
            return true;
        } else if (now >= next) {
            count++;
            next = law(next);
            return true;
        }
        return false;
    }

    bool marks(ns sojourn) {
        if (kind == "codel") return codel(sojourn);
        if (kind == "step") return sojourn > ns(a * 1e6);
        return std::uniform_real_distribution<double>()(rng) < a;
    }
};

struct Flow {
    std::string kind;
    ns rtt = 0;
    int seq = 0, inflight = 0;
    std::unique_ptr<Class> cc;
    rate_tp rate = 0;
    count_tp window = 0, burst = 0;
    size_tp size = 0;
    time_tp next_send = 1;
    ns timer = -1, last = 0;
    double cwnd = 2, threshold = 1e9;
    int reduced = -1;
    int64_t delivered = 0, marks = 0;
    double waited = 0;
};

std::vector<Flow> flows;
std::priority_queue<Event> events;
uint64_t number;

void at(ns t, What what, int flow, Packet packet = Packet()) {
    events.push(Event{t, number++, what, flow, packet});
}

void transmit(int n) {
    Flow &f = flows[n];
    Packet packet{n, ++f.seq, now, 0, false, 0};
    f.inflight++;
    if (f.cc) {
        time_tp echo;
        ecn_tp ecn;
        f.cc->GetTimeInfo(packet.stamp, echo, ecn);
    }
    ns late = jitter > 0 ? ns(std::uniform_real_distribution<>(0, jitter * 1e6)(noise)) : 0;
    f.last = std::max(f.last, now + late);
    at(f.last, ARRIVES, n, packet);
}

void ask(Flow &f) {
    f.cc->GetCCInfo(f.rate, f.window, f.burst, f.size);
    if (f.kind == "windowed") {
        const PragueState *s = f.cc->GetStatePtr();
        f.rate = s->m_pacing_rate * 103 / 100;
        f.window = std::max(2, count_tp(s->m_fractional_window / 1000000 / LENGTH));
    }
}

void send(int n) {
    Flow &f = flows[n];
    if (!f.cc) {
        while (f.inflight < int(f.cwnd)) transmit(n);
        return;
    }
    count_tp sent = 0;
    time_tp t = f.cc->Now();
    while (f.inflight < f.window && sent < f.burst && f.next_send - t <= 0) {
        transmit(n);
        sent++;
    }
    if (sent) f.next_send = time_tp(t + f.size * sent * 1000000 / f.rate);
    ns due = std::max(now, ns(f.next_send - 1) * 1000);
    if (f.inflight < f.window && f.timer != due) {
        f.timer = due;
        at(due, TIMER, n);
    }
}

void answered(Flow &f, const Packet &packet) {
    if (f.cc) {
        count_tp received, ce, lost;
        bool error;
        f.cc->DataReceived(packet.marked ? ecn_ce : ecn_l4s_id, 0);
        f.cc->GetACKInfo(received, ce, lost, error);
        f.cc->PacketReceived(f.cc->Now(), packet.stamp);
        f.cc->ACKReceived(received, ce, lost, f.seq, error, f.inflight);
        ask(f);
    } else {
        f.inflight--;
        if (packet.seq > f.reduced && packet.marked) {
            f.threshold = f.cwnd = std::max(1.0, f.cwnd / 2);
            f.reduced = f.seq;
        } else if (packet.seq > f.reduced) {
            f.cwnd += f.cwnd < f.threshold ? 1 : 1 / f.cwnd;
        }
    }
    if (now >= FROM) {
        f.delivered++;
        f.marks += packet.marked;
        f.waited += double(now - packet.sent);
    }
}

std::vector<std::string> split(const std::string &text, char by) {
    std::vector<std::string> parts(1);
    for (char c : text)
        if (c == by)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

void run(const std::string &queue, int seed, const std::string &group) {
    Queue q;
    auto of_queue = split(queue, ':');
    q.kind = of_queue[0];
    q.a = atof(of_queue[1].c_str());
    if (of_queue.size() > 2) q.b = atof(of_queue[2].c_str());
    q.rng.seed(seed);
    flows.clear();
    events = {};
    now = 0;
    std::vector<std::string> kinds;
    for (auto &text : split(group, '+')) {
        auto parts = split(text, ':');
        if (std::find(kinds.begin(), kinds.end(), text) == kinds.end()) kinds.push_back(text);
        Flow f;
        f.kind = parts[0];
        f.rtt = ns(atof(parts[1].c_str()) * 1e6);
        if (f.kind != "reno") f.cc.reset(new Class);
        flows.push_back(std::move(f));
        if (flows.back().cc) ask(flows.back());
        at(ns(std::uniform_real_distribution<double>(0, double(STARTS))(q.rng)), TIMER, int(flows.size()) - 1);
    }
    ns length = ns(LENGTH * 8e3 / MBPS), changed = FROM;
    double area = 0;
    bool free = true;
    auto account = [&] {
        if (now > changed) area += double(q.fifo.size()) * double(now - changed);
        changed = std::max(changed, now);
    };
    while (!events.empty() && events.top().at < END) {
        Event e = events.top();
        events.pop();
        now = e.at;
        if (e.what == ARRIVES) {
            account();
            e.packet.arrived = now;
            q.fifo.push_back(e.packet);
        } else if (e.what == LINK_FREE) {
            free = true;
        } else {
            if (e.what == ANSWERED) answered(flows[e.flow], e.packet);
            if (e.what == TIMER && flows[e.flow].timer == now) flows[e.flow].timer = -1;
            send(e.flow);
        }
        if (free && !q.fifo.empty()) {
            account();
            Packet packet = q.fifo.front();
            q.fifo.pop_front();
            packet.marked = q.marks(now - packet.arrived);
            free = false;
            at(now + length, LINK_FREE, 0);
            at(now + length + flows[packet.flow].rtt, ANSWERED, packet.flow, packet);
        }
    }
    now = END;
    account();
    double span = double(END - FROM);
    for (auto &kind : kinds) {
        double n = 0, rate = 0, rtt = 0, marked = 0, under_way = 0;
        for (auto &f : flows) {
            auto parts = split(kind, ':');
            if (f.kind != parts[0] || f.rtt != ns(atof(parts[1].c_str()) * 1e6)) continue;
            n++;
            rate += f.delivered * LENGTH * 8e3 / span;
            rtt += f.waited / f.delivered / 1e6;
            marked += double(f.marks) / f.delivered;
            under_way += f.waited / span;
        }
        printf("%s,%s,%d,%s,%.4f,%.3f,%.3f,%.5f,%.3f\n", queue.c_str(), group.c_str(), seed, kind.c_str(), rate / n,
               rtt / n, under_way / n, marked / n, area / span);
    }
}

int main(int argc, char **argv) {
    puts("queue,flows,seed,kind,rate_mbps,rtt_ms,under_way,marked,queue_packets");
    if (argc >= 4) {
        if (argc == 5) jitter = atof(argv[4]);
        run(argv[1], atoi(argv[2]), argv[3]);
        return 0;
    }
    for (const char *queue : {"step:1", "codel:5:100"})
        for (const char *group :
             {"prague:10", "prague:20", "prague:40", "prague:20+prague:20", "prague:40+prague:40", "prague:10+prague:80",
              "prague:20+prague:20+prague:20+prague:20+prague:20", "prague:20+reno:20", "prague:40+reno:40",
              "windowed:20+reno:20", "windowed:40+reno:40", "reno:20", "reno:20+reno:20"})
            for (int seed = 1; seed <= 5; seed++) run(queue, seed, group);
    for (int seed = 1; seed <= 5; seed++) run("coin:0.02", seed, "prague:20");
    for (const char *queue : {"coin:0.1", "coin:0.2", "coin:0.5"})
        for (int seed = 1; seed <= 5; seed++) run(queue, seed, "prague:10");
}
