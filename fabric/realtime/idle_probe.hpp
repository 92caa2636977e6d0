// How late a CPU runs a thread: one thread per CPU wakes at fixed intervals. At a real-time priority it comes before
// everything else, and what keeps it waiting is the hypervisor, another real-time thread, or network work that the
// kernel does not interrupt. As SCHED_IDLE it comes last, and waits until the CPU has nothing else to do.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/histogram.hpp"

namespace fabric {

struct ProbeOptions {
  static constexpr int kComesLast = -1;
  std::int64_t period_ns = 1'000'000;
  int priority = 0;  // SCHED_FIFO's; 0, or where the kernel refuses it: the normal scheduler; kComesLast: SCHED_IDLE
};

class IdleProbe {
 public:
  IdleProbe(const std::vector<int>& cpus, ProbeOptions options);
  IdleProbe(const IdleProbe&) = delete;
  IdleProbe& operator=(const IdleProbe&) = delete;
  ~IdleProbe() { stop(); }

  void start();
  // Waits until every thread has had its CPU once more. The probe cannot be started again.
  void stop();

  // By how much the latest of the CPUs is overdue at `now_ns`; 0 while all are on time.
  [[nodiscard]] std::int64_t overdue_ns(std::int64_t now_ns) const;

  [[nodiscard]] std::size_t cpus() const { return beats_.size(); }
  [[nodiscard]] std::array<std::uint64_t, Histogram::kBins> histogram(std::size_t i) const;
  [[nodiscard]] std::int64_t longest_ns(std::size_t i) const;
  // Whether every thread has got its real-time priority.
  [[nodiscard]] bool is_real_time() const { return real_time_; }

 private:
  // Written by one thread, read by any. Each on cache lines of its own.
  struct alignas(64) Beat {
    int cpu = 0;
    std::atomic<std::int64_t> due_ns{0};
    std::atomic<std::int64_t> longest_ns{0};
    std::array<std::atomic<std::uint64_t>, Histogram::kBins> bins{};
  };

  void run(Beat& beat) const;

  ProbeOptions options_;
  std::vector<std::unique_ptr<Beat>> beats_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  bool real_time_ = false;
};

}  // namespace fabric
