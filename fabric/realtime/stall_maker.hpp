// Stalls made on purpose: threads that keep all others from their CPUs for milliseconds at random, as a hypervisor with
// other guests does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "core/stalls.hpp"

namespace fabric {

struct StallMakerOptions {
  std::vector<int> cpus;
  StallLaw law;
  std::uint32_t seed = 0;
  bool together = true;           // all CPUs stall at the same time, or each by a sequence of its own
  Time lasts = 3600 * kSecond;    // and then it ends by itself
};

struct StallCounts {
  std::uint64_t stalls = 0;      // of all CPUs
  std::int64_t stalled_ns = 0;
};

// One thread per CPU, at a higher SCHED_FIFO priority than all other threads of ours. No spin outlasts its stall, and
// stalls take half of the time at most: a machine with one CPU can still be used.
class StallMaker {
 public:
  // Throws std::invalid_argument for an impossible law, or without a CPU.
  explicit StallMaker(StallMakerOptions options);
  StallMaker(const StallMaker&) = delete;
  StallMaker& operator=(const StallMaker&) = delete;
  ~StallMaker() { stop(); }

  // Throws std::system_error if this process may not have real-time threads, or may not use a CPU.
  void start();
  // Returns when all threads have ended: at once, or when the stall under way is over.
  void stop();
  [[nodiscard]] StallCounts counts() const { return {stalls_.load(), stalled_ns_.load()}; }

 private:
  static constexpr int kPriority = 90;

  void become_real_time(std::thread& thread, int cpu);
  void run(std::uint32_t stream);
  [[nodiscard]] bool sleeps_until(std::int64_t ns);
  void spin_until(std::int64_t ns);

  StallMakerOptions options_;
  std::vector<std::thread> threads_;
  std::int64_t epoch_ns_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> stalls_ = 0;
  std::atomic<std::int64_t> stalled_ns_ = 0;
};

}  // namespace fabric
