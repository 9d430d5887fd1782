/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The clock counts nanoseconds, not 256 of them, and a look at it takes one. A timer may fire one after another
 * timer, not 500 later at the earliest. Included before arch/um's time.c.
 */
#if __has_include(<linux/time-internal.h>) /* not in files for the host */
#include <linux/time-internal.h>
#undef TIMER_MULTIPLIER
#define TIMER_MULTIPLIER 1
#undef TIMER_MIN_DELTA
#define TIMER_MIN_DELTA 1
#endif
