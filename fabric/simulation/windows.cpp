#include "simulation/windows.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

namespace fabric {

namespace {

constexpr auto kLongestWindow = std::chrono::minutes(10);
constexpr auto kBetweenJobs = std::chrono::hours(24 * 365);
constexpr std::uint32_t kSpins = 2000;
constexpr Time kFailed = -1;

// Where threads share CPUs, one that spins only delays those it waits for.
std::uint32_t spins(std::uint32_t threads) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 0;
  return static_cast<std::uint32_t>(CPU_COUNT(&cpus)) >= threads ? kSpins : 0;
}

}  // namespace

Windows::Windows(std::vector<std::unique_ptr<Partition>>& partitions, Time look_ahead, std::uint32_t threads)
    : partitions_(partitions), look_ahead_(look_ahead), threads_(threads), said_(threads), barrier_(threads, spins(threads)) {
  const Outbox empty(partitions.size());
  for (std::size_t i = 0; i < partitions.size(); ++i) sent_.push_back({{empty, empty}, nullptr});
  try {
    for (std::uint32_t i = 1; i < threads; ++i) others_.emplace_back([this, i] { serve(i); });
  } catch (...) {
    end_threads();
    throw;
  }
}

Windows::~Windows() { end_threads(); }

// Some may be missing, if they could not be started.
void Windows::end_threads() {
  over_ = true;
  for (auto missing = threads_ - 1 - others_.size(); missing != 0; --missing) (void)barrier_.come();
  barrier_.wait(kLongestWindow);
  for (std::thread& other : others_) other.join();
}

std::size_t Windows::spares() const {
  std::size_t sum = 0;
  for (const Sent& each : sent_) sum += each.out[0].spares() + each.out[1].spares();
  return sum;
}

void Windows::run_until(Time limit) {
  rethrow();
  limit_ = limit;
  barrier_.wait(kLongestWindow);
  run(0);
  rethrow();
}

// Of several errors always the same one, whatever the number of threads.
void Windows::rethrow() const {
  for (const Sent& each : sent_) {
    if (each.error) std::rethrow_exception(each.error);
  }
}

void Windows::serve(std::uint32_t thread) {
  // Signals are for the thread that Python runs in.
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    barrier_.wait(kBetweenJobs);
    if (over_) return;
    run(thread);
  }
}

void Windows::run(std::uint32_t thread) {
  Window window = window_;
  std::uint32_t turn = turn_;
  for (;;) {
    said_[thread].next[turn] = run_window(thread, window, turn);
    window.begun = true;
    barrier_.wait(kLongestWindow);
    Time next = kNever;
    for (const Said& each : said_) next = std::min(next, each.next[turn]);
    if (next == kFailed || limit_ < (window.number + 1) * look_ahead_ - 1) break;
    window = {.number = std::max(window.number + 1, std::min(next, limit_) / look_ahead_), .begun = false};
    turn ^= 1;
    if (window.number * look_ahead_ > limit_) break;
  }
  for (std::size_t i = first_of(thread); i < first_of(thread + 1); ++i) partitions_[i]->settle(limit_);
  barrier_.wait(kLongestWindow);
  if (thread != 0) return;
  window_ = window;
  turn_ = turn;
}

// Returns a time before which nothing is due, or kFailed.
Time Windows::run_window(std::uint32_t thread, const Window& window, std::uint32_t turn) {
  const Time last = std::min(limit_, (window.number + 1) * look_ahead_ - 1);
  Time next = kNever;
  for (std::size_t i = first_of(thread); i < first_of(thread + 1); ++i) {
    Partition& partition = *partitions_[i];
    Outbox& out = sent_[i].out[turn];
    try {
      partition.network().send_into(out);
      if (!window.begun) {
        out.begin();
        take_mail(i, turn);
      }
      partition.run_until(last);
      partition.network().give_back_spare();
    } catch (...) {
      sent_[i].error = std::current_exception();
      return kFailed;
    }
    next = std::min({next, partition.network().nothing_before(), out.earliest()});
  }
  return next;
}

// What was sent in the window before.
void Windows::take_mail(std::size_t partition, std::uint32_t turn) {
  for (Sent& from : sent_) {
    Outbox& out = from.out[turn ^ 1];
    partitions_[partition]->network().take(out.mail(partition), out.spare(partition));
  }
}

}  // namespace fabric
