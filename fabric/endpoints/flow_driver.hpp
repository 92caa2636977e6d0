// All flows of all hosts from one thread: an edge-triggered epoll loop over sockets that were opened in the
// hosts' namespaces. No locks on its path; whoever reads the counters does not disturb it.
//
//   open()     every flow's listener listens, its client is bound to its port
//   connect()  the loop starts, connections are made; nothing is sent but the greeting below
//   release()  flow i starts to send `start_ns` later
//   stop()     the loop ends, every socket is closed; counters stay
//
// An MPTCP client can open further subflows only when something of the server has reached it after the
// handshake (net/mptcp/options.c, check_fully_established): there the server sends one byte, the greeting,
// so that all subflows can join while the direction that is measured is still silent.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "endpoints/traffic_sockets.hpp"

namespace fabric {

using FlowId = std::uint32_t;

struct FlowSpec {
  std::uint32_t src_host = 0;  // indices into the list of hosts
  std::uint32_t dst_host = 0;
  Address source;
  Address destination;
  std::uint64_t size_bytes = 0;  // 0: until stopped
  std::int64_t start_ns = 0;     // after release()
};

enum class FlowState : std::uint8_t { connecting, ready, running, done, failed };

enum class Attempt : std::uint8_t { none, connect, accept, greet, send, receive };

inline constexpr std::int64_t kNotYet = -1;

struct FlowReading {
  FlowState state = FlowState::connecting;
  std::uint64_t received_bytes = 0;  // read by the receiver
  std::uint64_t sent_bytes = 0;      // taken by the sender's kernel
  std::int64_t ready_ns = kNotYet;   // after connect(): handshake done, accepted, greeted
  std::int64_t started_ns = kNotYet; // after release()
  std::int64_t completed_ns = kNotYet;  // from its own start to the receiver's last byte
  int error = 0;                        // errno; 0 for a connection that ended in order, but early
  Attempt attempt = Attempt::none;      // what failed
};

struct TrafficOptions {
  SocketOptions sockets;
  int cpu = -1;  // pin the loop's thread to this CPU; -1 lets it float
};

class FlowDriver {
 public:
  // `pids`: per host a process in its namespace. Throws std::invalid_argument on flows that cannot be.
  FlowDriver(std::vector<FlowSpec> flows, std::vector<int> pids, TrafficOptions options);
  FlowDriver(const FlowDriver&) = delete;
  FlowDriver& operator=(const FlowDriver&) = delete;
  ~FlowDriver();

  void open();
  void connect();
  void release();
  void stop();

  // Throws what ended the loop's thread, if anything did.
  [[nodiscard]] std::vector<FlowReading> readings() const;
  [[nodiscard]] std::string describe_failure(FlowId id) const;
  [[nodiscard]] std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }
  // CPU time of the loop's thread so far.
  [[nodiscard]] std::int64_t cpu_ns() const;

 private:
  enum class Stage : std::uint8_t { made, open, connecting, released, stopped };
  enum class Kind : std::uint8_t { wake, timer, listener, client, server };

  // The sockets belong to the loop's thread while that runs; the atomics are written by it alone.
  struct Flow {
    FlowSpec spec;
    std::optional<FileDescriptor> client;
    std::optional<FileDescriptor> server;
    bool connected = false;
    bool greeted = false;
    bool client_waits = false;  // in ready_
    bool server_waits = false;
    std::atomic<FlowState> state{FlowState::connecting};
    std::atomic<std::uint64_t> received{0};
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::int64_t> ready_ns{kNotYet};
    std::atomic<std::int64_t> started_ns{kNotYet};
    std::atomic<std::int64_t> completed_ns{kNotYet};
    std::atomic<int> error{0};
    std::atomic<Attempt> attempt{Attempt::none};
  };

  struct Listener {
    std::uint32_t host;
    std::uint16_t port;
    std::optional<FileDescriptor> socket;
  };

  struct Turn {
    FlowId flow;
    Kind side;
  };

  void plan_listeners();
  void open_sockets();
  void watch(int fd, std::uint32_t events, Kind kind, std::uint32_t index) const;

  void run();
  void prepare_thread() const;
  void loop();
  void dispatch(std::uint64_t tag, std::uint32_t events);
  void take_turns();
  void set_timer(std::int64_t now);

  void connect_some(std::int64_t now);
  void accept_all(std::uint32_t listener);
  void client_event(FlowId id, std::uint32_t events);
  void drain_client(FlowId id);
  void ready_if_so(FlowId id);
  void start_due(std::int64_t now);
  void send_some(FlowId id);
  void receive_some(FlowId id, bool to_the_end);
  void count_received(Flow& flow, std::uint64_t bytes);
  void fail(Flow& flow, Attempt attempt, int error);
  void take_turn_later(FlowId id, Kind side);

  std::vector<int> pids_;
  TrafficOptions options_;
  std::vector<Flow> flows_;
  std::vector<Listener> listeners_;
  std::map<std::tuple<std::uint32_t, Address>, FlowId> flow_of_peer_;  // by listener and client
  std::vector<FlowId> connect_order_;
  std::vector<FlowId> start_order_;
  std::size_t next_connect_ = 0;
  std::size_t next_start_ = 0;
  std::size_t unconnected_ = 0;  // of those begun
  std::int64_t next_batch_ns_ = 0;
  std::int64_t timer_ns_ = 0;  // what it is set to
  std::deque<Turn> ready_;  // endpoints that may go on without a new event

  FileDescriptor epoll_;
  FileDescriptor wake_;
  FileDescriptor timer_;
  std::vector<std::uint8_t> zeros_;
  std::vector<std::uint8_t> discarded_;

  Stage stage_ = Stage::made;
  std::int64_t connect_ns_ = 0;
  std::atomic<std::int64_t> release_ns_{kNotYet};
  std::atomic<std::uint64_t> strangers_{0};
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> final_cpu_ns_{0};
  std::atomic<bool> broken_{false};
  std::exception_ptr failure_;
};

}  // namespace fabric
