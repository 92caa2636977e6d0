// Preloaded into P-CSCFs and S-CSCFs. Gives their UDP socket a receive buffer of BUFFER_BYTES, whatever the system's
// default is. In a P-CSCF each message that it receives occupies its worker for SLOW_NS, as on a slower processor:
// messages are spaced on a virtual clock, and a worker that wakes up late catches up, so that capacity is 1/SLOW_NS
// whatever else the machine does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { kSecond = 1000000000, kMostBehind = kSecond / 5 };

typedef ssize_t (*Receive)(int, void *, size_t, int, struct sockaddr *, socklen_t *);

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)kSecond + t.tv_nsec;
}

static void sleep_until(int64_t when) {
  struct timespec t = {when / kSecond, when % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

static long long number(const char *name) {
  const char *given = getenv(name);
  return given ? atoll(given) : 0;
}

// The kernel doubles the size that it is given (socket(7)).
static void size_buffer(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  const int half = (int)(number("BUFFER_BYTES") / 2);
  if (half > 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_INET) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof half);
  }
}

ssize_t recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
  static Receive real;
  static int64_t slow, done;
  if (real == NULL) {
    real = (Receive)dlsym(RTLD_NEXT, "recvfrom");
    slow = number("SLOW_NS");
    size_buffer(fd);
    prctl(PR_SET_TIMERSLACK, 1);
  }
  if (slow <= 0 || from == NULL || length == NULL) return real(fd, buffer, size, flags, from, length);
  const socklen_t whole = *length;
  ssize_t got = real(fd, buffer, size, flags | MSG_DONTWAIT, from, length);
  const int idle = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !(flags & MSG_DONTWAIT);
  if (idle) {
    *length = whole;
    got = real(fd, buffer, size, flags, from, length);
  }
  if (got < 0 || from->sa_family != AF_INET) return got;
  const int64_t t = now();
  if (idle ? done < t : done < t - kMostBehind) done = t;
  done += slow;
  if (done > t) sleep_until(done);
  return got;
}
