/* A preloaded library that sets the wall clock of a process back by a day, a second after its start. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct timespec started;

static void now(clockid_t clock, struct timespec *t) {
    syscall(SYS_clock_gettime, clock, t);
}

__attribute__((constructor)) static void start(void) {
    now(CLOCK_MONOTONIC, &started);
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    struct timespec running;
    now(clock, t);
    now(CLOCK_MONOTONIC, &running);
    if ((clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && running.tv_sec > started.tv_sec + 1) {
        t->tv_sec -= 86400;
    }
    return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec wall;
    (void) zone;
    clock_gettime(CLOCK_REALTIME, &wall);
    t->tv_sec = wall.tv_sec;
    t->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    if (t) {
        *t = wall.tv_sec;
    }
    return wall.tv_sec;
}
