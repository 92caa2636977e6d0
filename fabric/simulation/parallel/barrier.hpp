// Where the threads of a simulation wait for one another. A thread that waits spins for a moment, because the others are
// seldom far behind, and then sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>

namespace fabric {

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

}  // namespace fabric
