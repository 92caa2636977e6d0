#include "realtime/idle_probe.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <stdexcept>

#include "realtime/thread_scheduling.hpp"

namespace fabric {

IdleProbe::IdleProbe(const std::vector<int>& cpus, ProbeOptions options) : options_(options) {
  if (cpus.empty()) throw std::invalid_argument("an idle probe needs a CPU");
  if (options.period_ns < 100'000) throw std::invalid_argument("an idle probe's period must be 0.1 ms or more");
  for (const int cpu : cpus) beats_.emplace_back(std::make_unique<Beat>())->cpu = cpu;
}

void IdleProbe::start() {
  if (!threads_.empty() || stopping_) throw std::logic_error("an idle probe can be started once");
  real_time_ = options_.priority > 0;
  for (const auto& beat : beats_) {
    beat->due_ns = clock_ns(CLOCK_MONOTONIC) + options_.period_ns;
    std::thread& thread = threads_.emplace_back([this, &beat] { run(*beat); });
    pin(thread.native_handle(), beat->cpu, "an idle probe");
    if (options_.priority == ProbeOptions::kComesLast) come_last(thread.native_handle());
    if (options_.priority > 0 && !give_priority(thread.native_handle(), options_.priority)) real_time_ = false;
  }
}

void IdleProbe::stop() {
  stopping_ = true;
  // On a busy CPU a SCHED_IDLE thread would not notice it for a long time.
  if (options_.priority == ProbeOptions::kComesLast) {
    for (std::thread& thread : threads_) come_as_usual(thread.native_handle());
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void IdleProbe::run(Beat& beat) const {
  pthread_setname_np(pthread_self(), "probe");
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::int64_t due = beat.due_ns.load(std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const timespec deadline = to_timespec(due);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
    const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
    const std::int64_t late = std::max<std::int64_t>(0, now - due);
    // Whatever was due meanwhile would have been late too: a stall counts by its length.
    for (std::int64_t missed = late; missed >= 0; missed -= options_.period_ns) {
      auto& bin = beat.bins[Histogram::bin(missed)];
      bin.store(bin.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (late > beat.longest_ns.load(std::memory_order_relaxed)) beat.longest_ns.store(late, std::memory_order_relaxed);
    due = now + options_.period_ns;  // no burst of wake-ups after a stall: they would look punctual
    beat.due_ns.store(due, std::memory_order_release);
  }
}

std::int64_t IdleProbe::overdue_ns(std::int64_t now_ns) const {
  std::int64_t most = 0;
  for (const auto& beat : beats_) most = std::max(most, now_ns - beat->due_ns.load(std::memory_order_acquire));
  return most;
}

std::array<std::uint64_t, Histogram::kBins> IdleProbe::histogram(std::size_t i) const {
  std::array<std::uint64_t, Histogram::kBins> counts{};
  const Beat& beat = *beats_.at(i);
  std::transform(beat.bins.begin(), beat.bins.end(), counts.begin(),
                 [](const auto& bin) { return bin.load(std::memory_order_relaxed); });
  return counts;
}

std::int64_t IdleProbe::longest_ns(std::size_t i) const { return beats_.at(i)->longest_ns.load(std::memory_order_relaxed); }

}  // namespace fabric
