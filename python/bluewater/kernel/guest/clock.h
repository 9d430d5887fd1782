/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The clock counts nanoseconds, not 256 of them, and a look at it takes one. Included before arch/um's time.c. */
#if __has_include(<linux/time-internal.h>) /* not in files for the host */
#include <linux/time-internal.h>
#undef TIMER_MULTIPLIER
#define TIMER_MULTIPLIER 1
#endif
