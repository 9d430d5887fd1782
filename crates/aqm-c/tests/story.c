/* Misuses the library in all ways that it must survive, then replays the calls that come on standard input:
 *
 *   new DISCIPLINE PARAMETERS LINK SEED
 *   in TIME COOKIE FLOW LEN ECN DSCP HOST PEER
 *   out TIME
 *   end
 *
 * and prints what the queue decides about each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bluewater_aqm.h"

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "line %d: %s; error: %s\n", __LINE__, #condition, aqm_error());      \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

#define SAYS(text) CHECK(strcmp(aqm_error(), (text)) == 0)
#define MENTIONS(text) CHECK(strstr(aqm_error(), (text)) != NULL)

static const char LINK[] = "rate=20mbit,buffer=10p";

static void misuse(void) {
    aqm_packet packet = {1, 7, 1000, 0};
    aqm_stats stats;
    aqm_queue *queue;

    CHECK(aqm_error()[0] == '\0');
    CHECK(aqm_new(NULL, NULL, LINK, 1, 0) == NULL);
    SAYS("discipline = NULL: not allowed; allowed: a pointer");
    CHECK(aqm_new("codel", NULL, NULL, 1, 0) == NULL);
    SAYS("link = NULL: not allowed; allowed: a pointer");
    CHECK(aqm_new("\xff", NULL, LINK, 1, 0) == NULL);
    SAYS("discipline: not allowed; allowed: text in UTF-8");
    CHECK(aqm_new("codel", "\xc3(", LINK, 1, 0) == NULL);
    SAYS("parameters: not allowed; allowed: text in UTF-8");
    CHECK(aqm_new("fifo", NULL, LINK, 1, 0) == NULL);
    MENTIONS("discipline = fifo: not allowed; allowed: droptail, ");
    CHECK(aqm_new("codel", "target=5", LINK, 1, 0) == NULL);
    SAYS("codel: target = 5: not allowed; allowed: a time such as 20ms, 1.5s, 100us; "
         "hint: add the unit, for example 20ms");
    CHECK(aqm_new("codel", "target", LINK, 1, 0) == NULL);
    SAYS("target: not allowed; allowed: key=value,key=value");
    CHECK(aqm_new("codel", "goal=5ms", LINK, 1, 0) == NULL);
    MENTIONS("codel: goal: unknown parameter; allowed: target, interval, ");
    CHECK(aqm_new("codel", "preset=windows", LINK, 1, 0) == NULL);
    SAYS("codel: preset = windows: not allowed; allowed: linux");
    CHECK(aqm_new("red", "min_th=50%,max_th=20%", LINK, 1, 0) == NULL);
    MENTIONS("red: max_th = 20%: not allowed; allowed: ");
    CHECK(aqm_new("cake", "ack_filter=on", LINK, 1, 0) == NULL);
    SAYS("cake: ack_filter = on: not allowed; allowed: off; hint: packets do not say here what they acknowledge");
    CHECK(aqm_new("codel", "", "rate=20mbit", 1, 0) == NULL);
    SAYS("link: buffer: missing; write buffer=1000p");
    CHECK(aqm_new("codel", "", "rate=20,buffer=10p", 1, 0) == NULL);
    MENTIONS("link: rate = 20: not allowed; allowed: a rate such as 45mbit");
    CHECK(aqm_new("codel", "", "rate=20mbit,buffer=0p", 1, 0) == NULL);
    MENTIONS("link: buffer = 0p: not allowed; allowed: 1p … ");
    CHECK(aqm_new("codel", "", "rate=20mbit,buffer=10p,mean_packet=0", 1, 0) == NULL);
    MENTIONS("link: mean_packet = 0: not allowed; allowed: 1 … 65535");
    CHECK(aqm_new("codel", "", "rate=20mbit,buffer=10p,framing=tin", 1, 0) == NULL);
    MENTIONS("link: framing = tin: not allowed; allowed: words of tc cake");
    CHECK(aqm_new("codel", "", "rate=20mbit,buffer=10p,delay=2ms", 1, 0) == NULL);
    SAYS("link: delay: unknown key; allowed: rate, buffer, mean_packet, framing");

    CHECK(aqm_enqueue(NULL, &packet, 0) == AQM_ERROR);
    SAYS("queue = NULL: not allowed; allowed: a pointer");
    CHECK(aqm_dequeue(NULL, 0, &packet) == AQM_ERROR);
    CHECK(aqm_next_dropped(NULL, &packet) == AQM_ERROR);
    CHECK(aqm_wake(NULL, 0) == AQM_ERROR);
    CHECK(aqm_set_rate(NULL, "1mbit", 0) == AQM_ERROR);
    CHECK(aqm_wake_at(NULL) == UINT64_MAX);
    CHECK(aqm_read_stats(NULL, &stats) == AQM_ERROR);
    CHECK(aqm_flow_hash(NULL, "x", 1) == 0);
    aqm_free(NULL);

    queue = aqm_new("pie", " target = 10ms , ecn = true ", "rate=20mbit,buffer=10p,framing=ethernet", 1, 1000);
    CHECK(queue != NULL);
    CHECK(aqm_enqueue(queue, NULL, 2000) == AQM_ERROR);
    SAYS("packet = NULL: not allowed; allowed: a pointer");
    CHECK(aqm_dequeue(queue, 2000, NULL) == AQM_ERROR);
    CHECK(aqm_next_dropped(queue, NULL) == AQM_ERROR);
    CHECK(aqm_read_stats(queue, NULL) == AQM_ERROR);
    CHECK(aqm_flow_hash(queue, NULL, 8) == 0);
    packet.ecn = 4;
    CHECK(aqm_enqueue(queue, &packet, 2000) == AQM_ERROR);
    SAYS("ecn = 4: not allowed; allowed: 0 … 3, the ECN field");
    packet.ecn = 2;
    packet.len = 0;
    CHECK(aqm_enqueue(queue, &packet, 2000) == AQM_ERROR);
    SAYS("len = 0: not allowed; allowed: 1 … 1048576 bytes");
    packet.len = 1048577;
    CHECK(aqm_enqueue(queue, &packet, 2000) == AQM_ERROR);
    CHECK(aqm_read_stats(queue, &stats) == 0 && stats.arrived_packets == 0);
    packet.len = 1048576;
    CHECK(aqm_enqueue(queue, &packet, 2000) == AQM_ADMITTED);
    CHECK(aqm_enqueue(queue, &packet, 1999) == AQM_ERROR);
    SAYS("now = 1999 ns: not allowed; allowed: 2000 ns or later: times never go back");
    CHECK(aqm_dequeue(queue, 0, &packet) == AQM_ERROR);
    CHECK(aqm_wake(queue, 0) == AQM_ERROR);
    CHECK(aqm_dequeue(queue, 2000, &packet) == 1 && packet.cookie == 1 && packet.ecn == 2);
    CHECK(aqm_next_dropped(queue, &packet) == 0);
    /* Timers, due in time and late, and a clock that jumps to its end. */
    CHECK(aqm_wake_at(queue) > 2000 && aqm_wake_at(queue) < 1000000000);
    CHECK(aqm_wake(queue, aqm_wake_at(queue)) == 0);
    CHECK(aqm_wake(queue, 100000000000) == 0);
    CHECK(aqm_wake_at(queue) > 100000000000);
    CHECK(aqm_enqueue(queue, &packet, UINT64_MAX - 1) == AQM_ADMITTED);
    CHECK(aqm_dequeue(queue, UINT64_MAX, &packet) == 1);
    aqm_free(queue);

    /* AVQ signals by the rate: none before the link slows down. */
    queue = aqm_new("avq", "ecn=false", "rate=1gbit,buffer=10p", 1, 0);
    packet.len = 1000;
    for (uint64_t ms = 1; ms <= 200; ms++) {
        if (ms == 100) {
            CHECK(aqm_read_stats(queue, &stats) == 0 && stats.dropped_packets[0] == 0);
            CHECK(aqm_set_rate(queue, "1Mb", ms * 1000000) == AQM_ERROR);
            MENTIONS("rate = 1Mb: not allowed; allowed: a rate such as 45mbit");
            CHECK(aqm_set_rate(queue, NULL, ms * 1000000) == AQM_ERROR);
            CHECK(aqm_set_rate(queue, "1mbit", ms * 1000000) == 0);
        }
        CHECK(aqm_enqueue(queue, &packet, ms * 1000000) != AQM_ERROR);
        aqm_dequeue(queue, ms * 1000000, &packet);
    }
    CHECK(aqm_read_stats(queue, &stats) == 0 && stats.dropped_packets[AQM_EARLY] > 50);
    aqm_free(queue);

    /* A flow's hash has a key, and depends on each byte. */
    queue = aqm_new("droptail", NULL, LINK, 1, 0);
    CHECK(aqm_flow_hash(queue, "0123456789", 10) == aqm_flow_hash(queue, "0123456789", 10));
    CHECK(aqm_flow_hash(queue, "0123456789", 10) != aqm_flow_hash(queue, "0123456788", 10));
    CHECK(aqm_flow_hash(queue, "\0", 1) != aqm_flow_hash(queue, "\0\0", 2));
    aqm_free(queue);
    CHECK(aqm_flow_key(7, 46, 3, 5) == (46ull << 58 | 3ull << 45 | 5ull << 32 | 7));
}

static void report_dropped(aqm_queue *queue) {
    aqm_packet packet;
    int cause;

    while ((cause = aqm_next_dropped(queue, &packet)) > 0)
        printf(" %" PRIu64 ":%d", packet.cookie, cause);
    CHECK(cause == 0);
    printf("\n");
}

static void replay(void) {
    char line[4096], discipline[64], parameters[2048], link[512];
    aqm_queue *queue = NULL;
    uint64_t at, seed;

    while (fgets(line, sizeof line, stdin) != NULL) {
        aqm_packet packet;
        aqm_stats stats;
        unsigned flow, dscp, host, peer, ecn;
        int answer;

        if (sscanf(line, "new %63s %2047s %511s %" SCNu64, discipline, parameters, link, &seed) == 4) {
            queue = aqm_new(discipline, parameters, link, seed, 0);
            CHECK(queue != NULL);
        } else if (sscanf(line, "in %" SCNu64 " %" SCNu64 " %u %" SCNu32 " %u %u %u %u", &at,
                          &packet.cookie, &flow, &packet.len, &ecn, &dscp, &host, &peer) == 8) {
            packet.ecn = (uint8_t)ecn;
            packet.flow = aqm_flow_key(flow, (uint8_t)dscp, (uint16_t)host, (uint16_t)peer);
            answer = aqm_enqueue(queue, &packet, at);
            CHECK(answer >= 0);
            printf("%d", answer);
            report_dropped(queue);
        } else if (sscanf(line, "out %" SCNu64, &at) == 1) {
            answer = aqm_dequeue(queue, at, &packet);
            CHECK(answer >= 0);
            if (answer == 1)
                printf("%" PRIu64 "/%d", packet.cookie, packet.ecn);
            else
                printf("-");
            report_dropped(queue);
        } else {
            CHECK(strcmp(line, "end\n") == 0);
            CHECK(aqm_read_stats(queue, &stats) == 0);
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   stats.arrived_packets, stats.departed_packets, stats.queued_packets,
                   stats.dropped_packets[0], stats.marked_packets[0]);
            aqm_free(queue);
            queue = NULL;
        }
    }
    CHECK(queue == NULL);
}

int main(void) {
    misuse();
    replay();
    return 0;
}
