// Carries out the partitions of a simulation with several threads.
//
// Virtual time is cut into windows as long as the look-ahead, at its multiples. What a partition sends to others in one
// window is due in a later one, so in a window each partition depends on nothing that the others do in it. Before a
// window, a partition takes what the others sent it, in the order of their numbers. So results depend on the partitions
// and on the look-ahead, not on the number of threads, nor on where calls of `run_until` divide the time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/partitions.hpp"
#include "core/units.hpp"
#include "simulation/partition.hpp"

namespace fabric {

// Where the threads of a simulation wait for one another. A thread that waits spins for a moment, because the others are
// seldom far behind, and then sleeps.
class Barrier {
 public:
  // `spins`: how often a thread looks before it sleeps.
  Barrier(std::uint32_t threads, std::uint32_t spins) : threads_(threads), spins_(spins) {}

  // Returns when all threads have come. Throws std::runtime_error if one has not come in this time: it never will.
  void wait(std::chrono::steady_clock::duration longest) {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (come()) return;
    for (std::uint32_t i = 0; i < spins_; ++i) {
      if (turn_.load(std::memory_order_acquire) != turn) return;
      pause();
    }
    sleep(turn, longest);
  }

  // Counts a thread that does not wait. Returns whether it was the last.
  bool come() {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != threads_) return false;
    arrived_.store(0, std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return true;
    const std::lock_guard locked(mutex_);
    woken_.notify_all();
    return true;
  }

 private:
  void sleep(std::uint32_t turn, std::chrono::steady_clock::duration longest) {
    std::unique_lock locked(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const bool came =
        woken_.wait_for(locked, longest, [&] { return turn_.load(std::memory_order_seq_cst) != turn; });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    if (!came) throw std::runtime_error("a thread of the simulation has stopped");
  }

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::uint32_t threads_;
  std::uint32_t spins_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable woken_;
};

class Windows {
 public:
  // The thread that calls `run_until` is one of `threads`. There are no more than partitions.
  Windows(std::vector<std::unique_ptr<Partition>>& partitions, Time look_ahead, std::uint32_t threads);
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  Windows(Windows&&) = delete;
  Windows& operator=(Windows&&) = delete;
  ~Windows();

  // Carries out everything up to and including this instant. Throws what a partition threw, and then always.
  void run_until(Time limit);

  // Descriptors on their way back to the partitions that miss them.
  [[nodiscard]] std::size_t spares() const;

 private:
  struct Window {
    Time number = 0;
    bool begun = false;  // its partitions have taken what was sent to them
  };
  // What a thread says to the others, in windows of even and of odd count.
  struct alignas(64) Said {
    std::array<Time, 2> next{};  // nothing is due before
  };
  struct alignas(64) Sent {
    std::array<Outbox, 2> out;
    std::exception_ptr error;
  };

  void serve(std::uint32_t thread);
  void run(std::uint32_t thread);
  [[nodiscard]] Time run_window(std::uint32_t thread, const Window& window, std::uint32_t turn);
  void take_mail(std::size_t partition, std::uint32_t turn);
  void rethrow() const;
  void end_threads();
  [[nodiscard]] std::size_t first_of(std::uint32_t thread) const { return thread * partitions_.size() / threads_; }

  std::vector<std::unique_ptr<Partition>>& partitions_;
  Time look_ahead_;
  std::uint32_t threads_;
  std::vector<Sent> sent_;  // by each partition
  std::vector<Said> said_;  // by each thread
  Barrier barrier_;
  // Set by the first thread between jobs.
  Time limit_ = 0;
  bool over_ = false;
  Window window_;
  std::uint32_t turn_ = 0;  // the parity of the windows so far
  std::vector<std::thread> others_;
};

}  // namespace fabric
