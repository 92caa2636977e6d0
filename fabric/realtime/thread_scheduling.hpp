// Clocks, CPUs and priorities of threads that must be on time (sched(7), clock_gettime(2)).
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "realtime/file_descriptor.hpp"

namespace fabric {

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// Nanoseconds, because the picoseconds of a machine's uptime need not fit into Time.
inline std::int64_t to_ns(const timespec& t) { return t.tv_sec * kNsPerSecond + t.tv_nsec; }

inline std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return to_ns(t);
}

inline timespec to_timespec(std::int64_t ns) { return {ns / kNsPerSecond, ns % kNsPerSecond}; }

inline void pin(pthread_t thread, int cpu, const std::string& who) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  errno = pthread_setaffinity_np(thread, sizeof set, &set);
  if (errno != 0) throw_errno("pinning " + who + " to CPU " + std::to_string(cpu));
}

// SCHED_FIFO; false, and errno set, where this user or container may not.
inline bool give_priority(pthread_t thread, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  errno = pthread_setschedparam(thread, SCHED_FIFO, &parameters);
  return errno == 0;
}

// SCHED_IDLE: any thread may.
inline void come_last(pthread_t thread) {
  const sched_param parameters{};
  errno = pthread_setschedparam(thread, SCHED_IDLE, &parameters);
  if (errno != 0) throw_errno("giving a thread the lowest priority");
}

inline void come_as_usual(pthread_t thread) {
  const sched_param parameters{};
  pthread_setschedparam(thread, SCHED_OTHER, &parameters);
}

}  // namespace fabric
