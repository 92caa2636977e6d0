#include "realtime/stall_maker.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "realtime/thread_scheduling.hpp"

namespace fabric {

namespace {

// Longest time that a wake-up takes, so that threads begin their first stall together.
constexpr std::int64_t kHeadStartNs = 1'000'000;

void check(int error, const std::string& attempt) {
  if (error != 0) throw std::system_error(error, std::generic_category(), attempt);
}

}  // namespace

StallMaker::StallMaker(StallMakerOptions options) : options_(std::move(options)) {
  checked(options_.law);
  if (options_.cpus.empty()) throw std::invalid_argument("no CPU to stall");
  for (const int cpu : options_.cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) throw std::invalid_argument("there is no CPU " + std::to_string(cpu));
  }
}

void StallMaker::start() {
  if (!threads_.empty() || stopping_) throw std::logic_error("stalls can be started once");
  try {
    for (std::uint32_t i = 0; i < options_.cpus.size(); ++i) {
      const std::uint32_t stream = options_.together ? 0 : i;
      threads_.emplace_back([this, stream] { run(stream); });
      become_real_time(threads_.back(), options_.cpus[i]);
    }
  } catch (...) {
    stop();
    throw;
  }
  const std::scoped_lock lock(mutex_);
  epoch_ns_ = clock_ns(CLOCK_MONOTONIC) + kHeadStartNs;
  released_ = true;
  changed_.notify_all();
}

void StallMaker::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void StallMaker::become_real_time(std::thread& thread, int cpu) {
  pthread_setname_np(thread.native_handle(), "stalls");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  check(pthread_setaffinity_np(thread.native_handle(), sizeof set, &set),
        "pinning a thread that makes stalls to CPU " + std::to_string(cpu));
  sched_param parameters{};
  parameters.sched_priority = kPriority;
  check(pthread_setschedparam(thread.native_handle(), SCHED_FIFO, &parameters),
        "giving a thread that makes stalls real-time priority " + std::to_string(kPriority));
}

void StallMaker::run(std::uint32_t stream) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_ || stopping_; });
  }
  Stalls sequence(options_.law, options_.seed, stream);
  for (Stall stall = sequence.next(); stall.end <= options_.lasts; stall = sequence.next()) {
    if (!sleeps_until(epoch_ns_ + stall.begin / kNanosecond)) return;
    spin_until(epoch_ns_ + stall.end / kNanosecond);
  }
}

// Returns false if it was asked to stop.
bool StallMaker::sleeps_until(std::int64_t ns) {
  const std::chrono::steady_clock::time_point then{std::chrono::nanoseconds(ns)};
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, then, [this] { return stopping_.load(); });
  return !stopping_;
}

// If this thread was itself kept from the CPU until its stall was over, it does not spin.
void StallMaker::spin_until(std::int64_t ns) {
  const std::int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
  if (began_ns >= ns) return;
  std::int64_t at_ns = began_ns;
  while (at_ns < ns && !stopping_.load(std::memory_order_relaxed)) at_ns = clock_ns(CLOCK_MONOTONIC);
  ++stalls_;
  stalled_ns_ += at_ns - began_ns;
}

}  // namespace fabric
