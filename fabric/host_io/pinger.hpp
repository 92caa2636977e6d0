// UDP echo between many hosts' kernels, by one thread: sends pings spread over an interval, answers those
// that arrive, and records how long each was in the network.
//
// Times are the kernel's at reception (SO_TIMESTAMPNS) against this thread's at sending: on a busy machine
// the thread learns of a packet milliseconds after its arrival. Both ends are on one clock, so what a
// ping waited for its answerer is known and left out.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "realtime/file_descriptor.hpp"

namespace fabric {

struct PingOptions {
  std::int64_t interval_ns = 1'000'000'000;    // between two pings of one probe
  std::int64_t lost_after_ns = 30'000'000'000;  // an answer that takes longer does not count
  int cpu = -1;                                 // pin the thread to this CPU; -1 lets it float
};

// Pings leave by socket number `socket` towards `to`, where one of the sockets is bound.
struct PingProbe {
  std::size_t socket = 0;
  sockaddr_in to{};
};

// CLOCK_MONOTONIC and durations in ns; both are negative while there is no answer.
struct Ping {
  std::int64_t sent_ns = 0;
  std::int64_t out_ns = -1;
  std::int64_t back_ns = -1;
  std::uint32_t probe = 0;
  bool taken = false;

  [[nodiscard]] bool answered() const { return out_ns >= 0; }
};

class Pinger {
 public:
  // `sockets` are bound UDP sockets of the hosts.
  Pinger(std::vector<FileDescriptor> sockets, std::vector<PingProbe> probes, PingOptions options);
  Pinger(const Pinger&) = delete;
  Pinger& operator=(const Pinger&) = delete;
  ~Pinger();

  void start();
  // Stops sending; still answers, and waits for the answers to pings in flight.
  void pause() { paused_ = true; }
  void resume();
  // Stops sending and answering; what was recorded can still be taken.
  void stop();

  // Pings answered or lost since the last call, in order of sending; with `all` also those in flight, as
  // lost. Throws what ended the thread.
  std::vector<Ping> take(bool all);

  // CPU time of the thread, the kernel's work on its behalf included.
  [[nodiscard]] std::int64_t cpu_ns();

 private:
  struct Payload;
  struct Arrival;

  void run();
  void loop();
  void wake() const;
  void send_due(std::int64_t now);
  void send_ping(std::uint32_t probe);
  void receive(std::size_t socket);
  void answer(std::size_t socket, Arrival& arrival);
  void note(const Arrival& arrival);
  [[nodiscard]] std::int64_t due_ns() const;

  std::vector<FileDescriptor> sockets_;
  std::vector<PingProbe> probes_;
  PingOptions options_;
  FileDescriptor epoll_;
  FileDescriptor wake_;
  std::uint64_t magic_;  // distinguishes its packets from other pingers'

  std::int64_t round_ns_ = 0;  // when the present round began
  std::uint32_t next_ = 0;     // probe of the next ping

  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> paused_{false};
  std::mutex mutex_;         // guards all below
  std::deque<Ping> pings_;   // the one with sequence number s is pings_[s - first_seq_]
  std::uint64_t first_seq_ = 0;
  std::int64_t cpu_ns_ = 0;
  bool finished_ = false;
  std::exception_ptr failure_;
};

}  // namespace fabric
