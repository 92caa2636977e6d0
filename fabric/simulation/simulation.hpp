// Simulated end hosts on the fabric, in virtual time: the same links, tables and queues as between real hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/network.hpp"
#include "simulation/connection.hpp"
#include "simulation/datagrams.hpp"
#include "simulation/machine_noise.hpp"
#include "simulation/options.hpp"
#include "simulation/subflow.hpp"

namespace fabric {

class Simulation {
 public:
  template <class T>
  using Table = std::vector<T, HugePages<T>>;

  Simulation(NetworkConfig network, TransportOptions options, const std::vector<FlowConfig>& flows,
             const std::vector<DatagramConfig>& datagrams = {}, const std::optional<NoiseConfig>& noise = {});

  // Everything up to and including this instant.
  void run_until(Time limit);

  // Other paths than the router's choice: these, or the ones of these ranks. What is under way goes on as it began.
  void set_path(std::uint32_t subflow, const Path& there, const Path& back);
  void set_path_ranks(std::uint32_t subflow, std::uint32_t there, std::uint32_t back);

  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] const Table<Connection>& connections() const { return connections_; }
  [[nodiscard]] const Table<Subflow>& subflows() const { return subflows_; }
  // Up to the instant last asked for.
  [[nodiscard]] Time busy(std::uint32_t subflow) const;
  [[nodiscard]] Time rwnd_limited(std::uint32_t subflow) const;
  [[nodiscard]] std::uint64_t unsent_bytes(std::uint32_t subflow) const;
  [[nodiscard]] const PathState& path(std::uint32_t subflow) const { return paths_[subflow]; }
  [[nodiscard]] const std::vector<DatagramSource>& datagrams() const { return datagrams_; }
  [[nodiscard]] const TransportOptions& options() const { return options_; }
  // None where the machine never stalls.
  [[nodiscard]] const std::optional<MachineNoise>& noise() const { return noise_; }
  [[nodiscard]] Time now() const { return now_; }

 private:
  friend class Network;

  enum class Alarm : std::uint16_t { start, follow, join, nic, retransmission, delayed_ack, datagram };
  struct Waiting {  // subflows with something to send and a full queue before them
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  // Network's Hosts:
  void deliver(PacketId id, Time due);
  void dropped(PacketId id, PortId port, Time when);
  void alarm(PacketId id, Time due);
  void expect(PacketId id) const;
  void expect_soon(PacketId id) const;

  // A machine that stalls (stalling.cpp).
  struct Asleep;
  void run_with_stalls(Time limit);
  void wake_up(Time now);
  [[nodiscard]] Time after(Time now, Time wait);

  void add(const FlowConfig& flow);
  void add(const DatagramConfig& wanted);
  void emit(std::uint32_t datagrams, Time now);
  [[nodiscard]] static std::uint8_t dscp_of(std::uint8_t wanted);
  [[nodiscard]] Time after_handshake(const Subflow& subflow);
  void plan_starts();
  void start_due(Time now);
  void start(std::uint32_t connection, Time now);
  void close(std::uint32_t connection, Time now);
  void let_join(std::uint32_t connection, Time now);
  void join(std::uint32_t connection, Time now);
  [[nodiscard]] PacketId descriptor();
  void lead(Packet& packet, const Path& path, NicId from, NicId to);
  [[nodiscard]] bool is_full(PortId nic, Time now);
  [[nodiscard]] static Alarm alarm_of(const Packet& packet) { return static_cast<Alarm>(packet.size_bytes); }
  void ring(Alarm what, std::uint32_t owner, Time when);
  void set(LazyAlarm& alarm, Alarm what, std::uint32_t owner, Time when);
  [[nodiscard]] bool is_due(LazyAlarm& alarm, Alarm what, PacketId id, std::uint32_t owner, Time now);

  // The sender (sender.cpp).
  void send_all(std::uint32_t subflow, Time now);
  [[nodiscard]] bool send_one(std::uint32_t subflow, Time now);
  [[nodiscard]] bool is_early(const Connection& connection) const;
  [[nodiscard]] bool may_send_new(std::uint32_t subflow, Connection& connection);
  [[nodiscard]] Seq take_new(std::uint32_t subflow, Connection& connection);
  [[nodiscard]] bool has_window(std::uint32_t subflow, bool again) const;
  void transmit(std::uint32_t subflow, Seq seq, Seq dsn, bool again, Time now);
  void wait_for_nic(std::uint32_t subflow, PortId port);
  void nic_ready(PortId port, Time now);
  void acknowledged(std::uint32_t subflow, const Segment& ack, Time now);
  void sample_rtt(std::uint32_t subflow, Time rtt);
  void open_window(std::uint32_t subflow, std::uint32_t fresh);
  void heed_marks(std::uint32_t subflow, const Segment& ack, std::uint32_t fresh);
  void reduce(std::uint32_t subflow);

  // What tcp_info would tell of it (socket_clock.cpp).
  void keep_time(std::uint32_t subflow, Time now);
  [[nodiscard]] bool has_work(const Connection& connection, const Sender& sender) const;
  [[nodiscard]] bool waits_for_receiver(std::uint32_t subflow) const;

  // What it does about losses (recovery.cpp).
  void by_sack(std::uint32_t subflow, const Segment& ack, std::uint32_t fresh, Time now);
  void without_sack(std::uint32_t subflow, const Segment& ack, std::uint32_t fresh, Time now);
  void duplicate(std::uint32_t subflow, const Segment& ack, Time now);
  void resend_first(std::uint32_t subflow, Time now);
  [[nodiscard]] std::uint32_t threshold(std::uint32_t subflow);
  void tolerate(Sender& sender, std::uint32_t reordering) const;
  void recover(std::uint32_t subflow, Time now);
  [[nodiscard]] bool in_proportion() const;
  static void share_out(Sender& sender, std::uint32_t fresh);
  void remember(std::uint32_t subflow);
  [[nodiscard]] bool proves_haste(const Sender& sender, const Segment& ack) const;
  void restore(std::uint32_t subflow);
  void timed_out(std::uint32_t subflow, Time now);
  void reinject(std::uint32_t subflow, Time now);
  void restart_timer(std::uint32_t subflow, Time now);

  // Which subflow carries what (handing_out.cpp).
  void hand_out(std::uint32_t connection, Time now);
  [[nodiscard]] SubflowView view(std::uint32_t subflow);
  void bind(Connection& connection);

  // Before data (handshake.cpp).
  void connect(std::uint32_t subflow, Time now);
  void connect_again(std::uint32_t subflow, Time now);
  void answer_syn(std::uint32_t subflow, PacketId id, Time now);
  void connected(std::uint32_t subflow, Time sent, Time now);

  [[nodiscard]] std::span<const PathState> siblings(const Connection& connection) const {
    return {paths_.data() + connection.first, connection.count};
  }

  // The receiver (receiver.cpp).
  void received(std::uint32_t subflow, PacketId id, Time now);
  void answer(std::uint32_t subflow, PacketId id, Answered of, bool marked, Time now);
  void note_block(Receiver& receiver, Seq seq);

  TransportOptions options_;
  Network network_;
  VirtualArray<Segment> segments_;  // of the packet with the same id
  Table<Connection> connections_;
  std::vector<std::uint32_t> by_start_;  // connections that wait for no other
  std::size_t started_ = 0;              // of those
  Table<Subflow> subflows_;
  Table<PathState> paths_;  // of each subflow
  Table<SocketClock> clocks_;
  Time now_ = 0;  // everything up to it has happened
  std::optional<MachineNoise> noise_;
  Time ahead_ = 0;  // of the network's time, the hosts' clocks: the stalls an elastic clock has left out
  std::vector<DatagramSource> datagrams_;
  std::vector<SubflowView> views_;  // of the connection whose data is handed out
  std::vector<Waiting> waiting_;  // at each port
};

}  // namespace fabric
