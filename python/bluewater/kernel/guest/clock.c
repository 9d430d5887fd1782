/* Stands before the C library of the kernel's process: random numbers from the seed, and a clock that
   goes on by a nanosecond a look, and otherwise only while the kernel waits: then to its next timer. And
   registers of processors with more of them than the kernel knows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t state, now = 1000000000, due, interval; /* ns; due = 0: not set */

/* The kernel counts time by 256 ns and asks for what is left by that count. With GRID=256 its timers come
   when it says, not up to two such units later. */
static uint64_t grid(void)
{
	static uint64_t ns;
	if (!ns)
		ns = getenv("GRID") ? strtoull(getenv("GRID"), 0, 10) : 1;
	return ns;
}

ssize_t getrandom(void *to, size_t length, unsigned flags)
{
	(void)flags;
	if (!state)
		state = strtoull(getenv("SEED"), 0, 10) * 0x9e3779b97f4a7c15u + 1;
	for (size_t i = 0; i < length; i++) { /* splitmix64 */
		uint64_t z = state += 0x9e3779b97f4a7c15u;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		((unsigned char *)to)[i] = z ^ z >> 31;
	}
	return length;
}

static struct timespec spec(uint64_t ns) { return (struct timespec){ns / 1000000000, ns % 1000000000}; }
static uint64_t nanoseconds(struct timespec t) { return t.tv_sec * 1000000000ull + t.tv_nsec; }

static void fire(void)
{
	due = interval ? due + interval : 0;
	kill(getpid(), SIGALRM);
}

int clock_gettime(clockid_t which, struct timespec *t)
{
	(void)which;
	*t = spec(++now);
	if (due && due <= now)
		fire();
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	(void)zone;
	*t = (struct timeval){now / 1000000000, now / 1000 % 1000000};
	return 0;
}

int timer_create(clockid_t which, struct sigevent *restrict event, timer_t *restrict timer)
{
	(void)which, (void)event;
	*timer = 0;
	return 0;
}

int timer_settime(timer_t t, int flags, const struct itimerspec *restrict to, struct itimerspec *restrict old)
{
	(void)t, (void)old;
	uint64_t value = nanoseconds(to->it_value);
	interval = nanoseconds(to->it_interval);
	due = value ? (value + (flags & TIMER_ABSTIME ? 0 : now)) / grid() * grid() : 0;
	return 0;
}

int timer_gettime(timer_t t, struct itimerspec *left)
{
	(void)t;
	left->it_value = spec(!due ? 0 : due > now ? due - now : 1);
	left->it_interval = spec(interval);
	return 0;
}

int sigsuspend(const sigset_t *mask)
{
	int (*suspend)(const sigset_t *) = dlsym(RTLD_NEXT, "sigsuspend");
	if (due) {
		now = now > due ? now : due;
		fire();
	}
	return suspend(mask);
}

int open64(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
	va_end(rest);
	if (!strcmp(path, "/dev/random") || !strcmp(path, "/dev/urandom"))
		return errno = ENOENT, -1;
	int (*reached)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
	return reached(path, flags, mode);
}

/* Old kernels have room for some 2.7 kB of a process's registers, and the host takes all or nothing. What they do
   not know stays as it is. */
long ptrace(enum __ptrace_request request, ...)
{
	static char all[1 << 16];
	va_list rest;
	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *addr = va_arg(rest, void *), *data = va_arg(rest, void *);
	va_end(rest);
	long (*reached)(enum __ptrace_request, ...) = dlsym(RTLD_NEXT, "ptrace");
	long result = reached(request, pid, addr, data);
	if (result < 0 && errno == EFAULT && request == PTRACE_SETREGSET) {
		struct iovec *some = data, whole = {all, sizeof(all)};
		if (reached(PTRACE_GETREGSET, pid, addr, &whole) || whole.iov_len < some->iov_len)
			return errno = EFAULT, -1;
		memcpy(all, some->iov_base, some->iov_len);
		result = reached(PTRACE_SETREGSET, pid, addr, &whole);
	}
	return result;
}
