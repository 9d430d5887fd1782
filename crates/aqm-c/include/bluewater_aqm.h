/* Queue disciplines for active queue management (AQM), from C.
 *
 * A queue holds cookies: numbers by which you find your packets. It has no clock and starts no thread.
 * Times are nanoseconds of any clock that does not go back. One queue is for one thread at a time.
 *
 * A function that fails returns AQM_ERROR (aqm_new: NULL), changes nothing, and aqm_error() says why.
 */
#ifndef BLUEWATER_AQM_H
#define BLUEWATER_AQM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aqm_queue aqm_queue;

/* What functions return. */
enum {
    AQM_ERROR = -1,
    AQM_ADMITTED = 0, /* aqm_enqueue: the packet is in the queue */
    AQM_MARKED = 1,   /* aqm_enqueue: the packet is in the queue, marked CE */
    AQM_DROPPED = 2   /* aqm_enqueue: the packet was dropped */
};

/* Why a packet was dropped or marked. */
enum {
    AQM_OVERFLOW = 1, /* there was no room */
    AQM_EARLY = 2,    /* the algorithm's decision, with room or without */
    AQM_PENALTY = 3,  /* a rate limit on a flow that ignores congestion */
    AQM_POLICED = 4   /* a rate limit on all that arrives */
};

typedef struct aqm_packet {
    uint64_t cookie; /* whatever you find its bytes by */
    uint64_t flow;   /* which packets belong together; see aqm_flow_hash and aqm_flow_key */
    uint32_t len;    /* bytes, 1 to 1048576 */
    uint8_t ecn;     /* ECN field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE */
} aqm_packet;

/* Counts since the queue was made. The first of an array is the sum of the others; these are
 * numbered by cause. */
typedef struct aqm_stats {
    uint64_t arrived_packets;
    uint64_t arrived_bytes;
    uint64_t departed_packets;
    uint64_t departed_bytes;
    uint64_t queued_packets;
    uint64_t queued_bytes;
    uint64_t dropped_packets[5];
    uint64_t dropped_bytes[5];
    uint64_t marked_packets[5];
} aqm_stats;

/* A new queue, empty at time now.
 *
 * discipline: its name, "fq-codel".
 * parameters: "target=5ms,interval=100ms", or "preset=linux"; NULL or "" for the defaults.
 * link: "rate=20mbit,buffer=1000p" with the rate of the link that you feed, and the room of the queue in
 *   packets (1000p) or bytes (200kB); also mean_packet=1000 (bytes) and framing=ethernet (words of tc cake).
 * seed: all random numbers follow from it. If others must not foresee the decisions, draw it at random.
 *
 * All memory is taken here, for as many packets as there is room, except that for unread drops. */
aqm_queue *aqm_new(const char *discipline, const char *parameters, const char *link, uint64_t seed, uint64_t now);

/* Frees a queue; NULL is allowed. Cookies of packets that are still queued do not come back. */
void aqm_free(aqm_queue *queue);

/* A packet arrives. Returns AQM_ADMITTED, AQM_MARKED, AQM_DROPPED, or AQM_ERROR.
 * Other packets may be dropped in its place: call aqm_next_dropped afterwards. */
int aqm_enqueue(aqm_queue *queue, const aqm_packet *packet, uint64_t now);

/* Takes out the packet to send, when you can send one. Returns 1, 0 if there is none, or AQM_ERROR.
 * If packet->ecn is 3 where you gave another, mark the packet. CoDel and others drop packets here: call
 * aqm_next_dropped afterwards. If it returned 0, call it again after the next arrival, and
 * at aqm_wake_at: a shaper may hold packets back (CAKE with ingress or autorate_ingress). */
int aqm_dequeue(aqm_queue *queue, uint64_t now, aqm_packet *packet);

/* The next dropped packet. Returns its cause, 0 if there is none, or AQM_ERROR.
 * Each dropped packet comes once, also one for which aqm_enqueue returned AQM_DROPPED: free it here. They
 * wait until you ask, and their memory grows. */
int aqm_next_dropped(aqm_queue *queue, aqm_packet *packet);

/* When the discipline's next timer is due, or when it lets a packet go that it holds back; UINT64_MAX if
 * neither will be. All calls with a time run what is
 * due before, with the same decisions. So you need no timers of your own. If 65536 or more were due, one
 * stands for the rest. */
uint64_t aqm_wake_at(const aqm_queue *queue);

/* Runs the timers that are due. Returns 0 or AQM_ERROR. */
int aqm_wake(aqm_queue *queue, uint64_t now);

/* The link has another rate, "10mbit". Returns 0 or AQM_ERROR. Disciplines that compute with
 * the rate need it, such as red, pi, avq and csfq; those that measure delays do not. */
int aqm_set_rate(aqm_queue *queue, const char *rate, uint64_t now);

/* Reads the counts. Returns 0 or AQM_ERROR. */
int aqm_read_stats(const aqm_queue *queue, aqm_stats *stats);

/* A flow from the bytes that identify it, such as the 5-tuple. The hash is keyed by the queue's seed. 0 if
 * a pointer is NULL. */
uint32_t aqm_flow_hash(const aqm_queue *queue, const void *bytes, size_t len);

/* A flow with what its header tells: needed for wred and cake, the others take any number as a flow.
 * dscp: 0 to 63. host, peer: numbers of the sending and the receiving host, 0 to 8191. */
uint64_t aqm_flow_key(uint32_t flow, uint8_t dscp, uint16_t host, uint16_t peer);

/* What was wrong in the last call that failed in this thread; "" if none has. Valid until the next one. */
const char *aqm_error(void);

#ifdef __cplusplus
}
#endif

#endif
