// All flows of all hosts from one process: a few threads, mostly one, each with an epoll loop over its share.
//
//   open()     every flow's listener listens, its client is bound to its port
//   connect()  connections are made; nothing is sent but the loop's greeting (flow_loop.hpp)
//   release()  flow i starts to send `start_ns` later
//   stop()     the loops end, every socket is closed; counters stay
//
// Sockets live in tables of descriptors that belong to their thread alone. The process's own table stays
// small (select(2) and every fork depend on that), and more flows fit than RLIMIT_NOFILE allows one table.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host_io/flow_loop.hpp"

namespace fabric {

struct FlowReading {
  FlowState state = FlowState::connecting;
  std::uint64_t received_bytes = 0;     // read by the receiver
  std::uint64_t sent_bytes = 0;         // taken by the sender's kernel
  std::int64_t ready_ns = kNotYet;      // after connect(): handshake done, accepted, greeted
  std::int64_t started_ns = kNotYet;    // after release()
  std::int64_t completed_ns = kNotYet;  // from its own start to the receiver's last byte
  std::int64_t retransmitted = kUnknownCount;  // segments, when the last byte was received
  int error = 0;                        // errno; 0 for a connection that ended in order, but early
};

// One thread at a time may call it; reading does not disturb the loops.
class FlowDriver {
 public:
  // `pids`: per host a process in its namespace. Throws std::invalid_argument for impossible flows.
  FlowDriver(std::vector<FlowSpec> flows, std::vector<int> pids, TrafficOptions options);
  FlowDriver(const FlowDriver&) = delete;
  FlowDriver& operator=(const FlowDriver&) = delete;
  ~FlowDriver();

  // Each throws std::logic_error if called out of order, std::system_error with the attempt if the kernel refuses.
  void open();
  void connect();
  void release();
  void stop();

  // Throws what ended a loop's thread, if anything did.
  [[nodiscard]] std::vector<FlowReading> readings() const;
  [[nodiscard]] std::string describe_failure(FlowId id) const;
  // Connections that no flow expected.
  [[nodiscard]] std::uint64_t strangers() const { return board_.strangers.load(std::memory_order_relaxed); }
  // CPU time of the loops' threads so far.
  [[nodiscard]] std::int64_t cpu_ns() const;

 private:
  enum class Stage : std::uint8_t { made, open, connecting, released, stopped };

  struct Worker {
    Worker() : wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {}
    std::vector<FlowId> flows;
    FileDescriptor wake;
    std::promise<void> opened;
    std::thread thread;
    std::int64_t final_cpu_ns = 0;
    std::exception_ptr failure;
    std::atomic<bool> broken{false};
  };

  void check_paths() const;
  void work(Worker& worker);
  void wake_all() const;

  std::vector<int> pids_;
  TrafficOptions options_;
  FlowBoard board_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Stage stage_ = Stage::made;
};

}  // namespace fabric
