// One thread's share of the flows: an edge-triggered epoll loop over sockets that it opened in the hosts'
// namespaces. There are no locks on its path; readers of the board do not disturb it.
//
// An MPTCP client can open further subflows only after it has received data from the server after the handshake
// (net/mptcp/options.c, check_fully_established). So the server sends one byte, the greeting, and all subflows can join
// while the direction that is measured is still silent.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "host_io/traffic_sockets.hpp"

namespace fabric {

using FlowId = std::uint32_t;

inline constexpr FlowId kNoFlow = 0xFFFFFFFF;
inline constexpr std::size_t kSendTurn = 128 * 1024;  // most that one flow sends in one turn

struct FlowSpec {
  std::uint32_t src_host = 0;  // indices into the list of hosts
  std::uint32_t dst_host = 0;
  Address source;
  Address destination;
  std::uint64_t size_bytes = 0;  // 0: until stopped
  std::int64_t start_ns = 0;     // after the release, or after the last byte of `after` was received
  FlowId after = kNoFlow;
  SocketOptions sockets;
};

enum class FlowState : std::uint8_t { connecting, ready, running, done, failed };

enum class Attempt : std::uint8_t { none, connect, greet, send, receive };

inline constexpr std::int64_t kNotYet = -1;

// The state of a flow that all threads may read; only its loop writes it.
struct FlowRecord {
  FlowSpec spec;
  std::atomic<FlowState> state{FlowState::connecting};
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::int64_t> ready_ns{kNotYet};
  std::atomic<std::int64_t> started_ns{kNotYet};
  std::atomic<std::int64_t> completed_ns{kNotYet};
  std::atomic<std::int64_t> retransmitted{kUnknownCount};  // when the last byte was received
  std::atomic<int> error{0};
  std::atomic<Attempt> attempt{Attempt::none};  // what failed
};

// Shared by the loops and the driver. The driver gives the orders; instants are on CLOCK_MONOTONIC.
struct FlowBoard {
  explicit FlowBoard(std::size_t flows) : records(flows) {}
  std::vector<FlowRecord> records;
  std::atomic<std::int64_t> connect_ns{kNotYet};
  std::atomic<std::int64_t> release_ns{kNotYet};
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> strangers{0};
};

std::int64_t monotonic_ns();

struct TrafficOptions {
  int cpu = -1;  // pin the loops' threads to this CPU; -1 lets them float
  unsigned loops = 1;
  std::size_t read_bytes = 1;   // of a flow without end, that are worth waking up for
  std::size_t write_bytes = 0;  // handed to the kernel by one system call; 0: as much as a turn allows
  int sizes_map = -1;           // socket storage that gets the size of every flow (traffic_sockets.hpp); -1: none
  bool rank_by_sent = false;    // what the storage says ranks are
};

// Made, run and destroyed on one thread, whose table of descriptors its sockets are in.
class FlowLoop {
 public:
  // `wake` becomes readable with every order. Opens the sockets of `flows`, in the namespaces of `pids`.
  FlowLoop(FlowBoard& board, const std::vector<FlowId>& flows, const std::vector<int>& pids,
           const TrafficOptions& options, int wake);

  // Runs until the board orders a stop; then reads what the receivers have got and resets all connections.
  void run();

 private:
  enum class Kind : std::uint8_t { wake, timer, listener, client, server };

  using Index = std::uint32_t;  // into flows_

  struct Flow {
    FlowRecord* record = nullptr;
    std::optional<FileDescriptor> client;
    std::optional<FileDescriptor> server;
    bool connected = false;
    bool greeted = false;
    bool client_waits = false;  // in turns_
    bool server_waits = false;
    std::vector<Index> followers{};  // that start when the sender knows that this is done
  };

  struct Start {
    std::int64_t due_ns;  // after the release
    Index flow;
    // The earliest first, in the order of the flows.
    bool operator<(const Start& other) const { return std::tie(other.due_ns, other.flow) < std::tie(due_ns, flow); }
  };

  struct Listener {
    std::uint32_t host;
    std::uint16_t port;
    SocketOptions options;
    std::optional<FileDescriptor> socket;
  };

  struct Turn {
    Index flow;
    Kind side;
  };

  void plan(const std::vector<FlowId>& flows);
  void open_sockets(const std::vector<int>& pids);
  void open_client_of(Flow& flow) const;
  void watch(int fd, std::uint32_t events, Kind kind, std::uint32_t index) const;
  void dispatch(std::uint64_t tag, std::uint32_t events);
  void take_turns();
  void take_turn_later(Index index, Kind side);
  void set_timer(std::int64_t now);
  void end();

  void connect_some(std::int64_t now);
  void accept_all(std::uint32_t listener);
  void client_event(Index index, std::uint32_t events);
  void drain_client(Index index);
  void close_client(Flow& flow);
  void ready_if_so(Flow& flow);
  void start_due(std::int64_t now);
  void send_some(Index index);
  bool send_once(Flow& flow, std::size_t bytes);
  void receive_some(Index index, bool to_the_end);
  void count_received(Flow& flow, std::uint64_t bytes);
  void fail(Flow& flow, Attempt attempt, int error);

  FlowBoard& board_;
  TrafficOptions options_;
  std::size_t write_bytes_;
  std::vector<Flow> flows_;
  std::vector<Listener> listeners_;
  std::map<std::tuple<std::uint32_t, Address>, Index> flow_of_peer_;  // by listener and client
  std::vector<Index> connect_order_;
  std::priority_queue<Start> starts_;
  std::size_t next_connect_ = 0;
  std::size_t unconnected_ = 0;  // of those begun
  std::int64_t next_batch_ns_ = 0;
  std::int64_t timer_ns_ = 0;  // what it is set to
  std::deque<Turn> turns_;     // endpoints that may go on without a new event

  int wake_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  std::vector<std::uint8_t> zeros_;
  std::vector<std::uint8_t> discarded_;
};

}  // namespace fabric
