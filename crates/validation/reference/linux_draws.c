// SPDX-License-Identifier: MIT OR Apache-2.0
/* What queue disciplines of the kernel draw from, in place of its own random numbers: the generator of
 * our queues (PCG64 by M. O'Neill, Lcg128Xsl64, seeded through SplitMix64), so that both draw the same.
 * Writing a seed to /sys/module/draws/parameters/seed begins anew. With y in `whole` beside it numbers of 16 bits,
 * by which CAKE rounds, are such that it rounds nothing. linux_build.sh puts this in the kernel.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

typedef unsigned __int128 u128_t;

#define WIDE(high, low) ((u128_t)(high) << 64 | (low))

static u128_t state, increment;
static unsigned long drawn;
static bool whole;

u64 draw_u64(void);
u32 draw_u32(void);
u16 draw_u16(void);
void draw_bytes(void *to, size_t length);

static void step(void)
{
	state = state * WIDE(0x2360ed051fc65da4ull, 0x4385df649fccf645ull) + increment;
}

static u64 mixed(u64 *at)
{
	u64 z = *at += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u64 draw_u64(void)
{
	u64 folded;
	unsigned int by;

	drawn++;
	step();
	folded = (u64)(state >> 64) ^ (u64)state;
	by = state >> 122;
	return folded >> by | folded << (-by & 63);
}

u32 draw_u32(void)
{
	return draw_u64() >> 32;
}

u16 draw_u16(void)
{
	if (whole)
		return -95;
	return draw_u64() >> 48;
}

void draw_bytes(void *to, size_t length)
{
	while (length) {
		u64 word = draw_u64();
		size_t part = min(length, sizeof(word));

		memcpy(to, &word, part);
		to += part;
		length -= part;
	}
}

static int seeded(const char *text, const struct kernel_param *param)
{
	u64 at, high, low;
	int failed = kstrtoull(text, 0, &at);

	if (failed)
		return failed;
	high = mixed(&at);
	low = mixed(&at);
	state = WIDE(high, low);
	high = mixed(&at);
	increment = WIDE(high, 0) << 1 | 1;
	state += increment;
	step();
	drawn = 0;
	return 0;
}

static const struct kernel_param_ops seed = { .set = seeded };
module_param_cb(seed, &seed, NULL, 0200);
module_param(drawn, ulong, 0400);
module_param(whole, bool, 0200);
