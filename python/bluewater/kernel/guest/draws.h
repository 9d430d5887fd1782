/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers of a queue discipline, in place of the kernel's own: the generator of our queues (PCG64 by
 * M. O'Neill, Lcg128Xsl64, seeded through SplitMix64), so that both draw the same. Included before each file
 * of net/sched that is a discipline, and before that with the hash of flows. "SEED STREAM SKIP" written to
 * /sys/module/NAME/parameters/draws begins anew. With y in `whole` beside it CAKE's shares are rounded down:
 * what it draws with 16 bits is at least a quantum, and less than 65536 divided by a host's flows.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/string.h>

#define DRAW_WIDE(high, low) ((unsigned __int128)(high) << 64 | (low))

static unsigned __int128 draw_state, draw_increment;
static bool draw_whole;

static void draw_step(void)
{
	draw_state = draw_state * DRAW_WIDE(0x2360ed051fc65da4ull, 0x4385df649fccf645ull) + draw_increment;
}

static u64 draw_mixed(u64 *at)
{
	u64 z = *at += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static u64 draw_u64(void)
{
	u64 folded;
	unsigned int by;

	draw_step();
	folded = (u64)(draw_state >> 64) ^ (u64)draw_state;
	by = draw_state >> 122;
	return folded >> by | folded << (-by & 63);
}

static u32 __maybe_unused draw_u32(void)
{
	return draw_u64() >> 32;
}

static u16 __maybe_unused draw_u16(void)
{
	return draw_whole ? 2048 : draw_u64() >> 48;
}

static u32 __maybe_unused draw_below(u32 ceil)
{
	return (u64)draw_u32() * ceil >> 32;
}

static void __maybe_unused draw_bytes(void *to, size_t length)
{
	while (length) {
		u64 word = draw_u64();
		size_t part = min(length, sizeof(word));

		memcpy(to, &word, part);
		to += part;
		length -= part;
	}
}

static int draw_seeded(const char *text, const struct kernel_param *param)
{
	u64 seed, stream, high, low;
	unsigned int skip;

	if (sscanf(text, "%llu %llu %u", &seed, &stream, &skip) != 3)
		return -EINVAL;
	seed ^= stream * 0xd1342543de82ef95ull;
	high = draw_mixed(&seed);
	low = draw_mixed(&seed);
	draw_state = DRAW_WIDE(high, low);
	high = draw_mixed(&seed);
	draw_increment = DRAW_WIDE(high, stream) << 1 | 1;
	draw_state += draw_increment;
	draw_step();
	while (skip--)
		draw_u64();
	return 0;
}

static const struct kernel_param_ops draw_ops = { .set = draw_seeded };
module_param_cb(draws, &draw_ops, NULL, 0200);
module_param_named(whole, draw_whole, bool, 0200);

#define get_random_bytes draw_bytes
#define get_random_u16 draw_u16
#define get_random_u32 draw_u32
#define get_random_u64 draw_u64
#define get_random_u32_below draw_below
#define prandom_u32_max draw_below
#define prandom_u32 draw_u32

/* A timer of User-Mode Linux fires a nanosecond after the time asked for. */
#include <net/pkt_sched.h>
#define qdisc_watchdog_schedule_ns(watchdog, at) qdisc_watchdog_schedule_range_ns(watchdog, (at) - 1, 0)
