// NDP (Handley et al., SIGCOMM 2017): the receiver decides when each packet is sent.
//
// A flow sends its first window at once. Switches trim what they have no room for to its header (core/disciplines/trim.cpp),
// so the receiver learns of every packet within a round trip: it acknowledges those that are whole and rejects those that
// are not. For each it owes the sender a PULL, which lets it send one packet more, rejected ones first. A host has one
// queue of PULLs for all flows that it receives, which takes turns among them and is paced so that what it asks for fills
// the host's link. PULLs carry a running number, so that the next makes up for one that is lost. Where all of that
// fails, because links lose packets or are cut, the sender starts again with a window after a timeout (RFC 6298 has the
// doubling; the timeout is the stack's smallest).
//
// Each sender sends its packets along all shortest paths in turn, in a random order that it draws anew each round
// (section 3.1.1), unless routing itself chooses a path for every packet. The last data of a flow is asked for once: a
// receiver knows from the headers how much there is. Data waits in its host rather than in the host's queue, so PULLs
// pass it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "simulation/connection.hpp"
#include "simulation/whole_flows.hpp"

namespace fabric {

struct NdpFlow : WholeFlow {
  // Of the sender.
  Seq next = 0;                // the first segment never sent
  SeqQueue rejected;           // to be sent again
  std::vector<Seq> in_network;  // sent, neither acknowledged nor rejected
  Arrivals acknowledged;
  std::uint32_t credit = 0;  // packets that it may send
  std::uint32_t pulled = 0;  // the largest number of a PULL
  std::vector<std::uint32_t> ranks;  // of paths, in the order of this round
  std::size_t turn = 0;              // in the round
  bool waits = false;                // for its host's queue
  LazyAlarm retransmission;
  std::uint8_t backoff = 0;
  RttEstimate rtt;
  // Of the receiver.
  std::uint32_t trimmed = 0;  // packets that it has rejected
  std::uint32_t asked = 0;    // PULLs sent
  std::uint32_t owed = 0;     // PULLs that wait in its host
};

// What a host shares among its flows.
struct NdpHost {
  std::deque<std::uint32_t> to_pull;  // flows that are owed a PULL, in turn
  Time interval = 0;                  // between PULLs
  Time next_pull = 0;
  bool paced = false;  // an alarm is set for `next_pull`
  std::deque<std::uint32_t> senders;  // flows that wait for its queue, in turn
};

class NdpState final : public WholeFlows<NdpFlow> {
 public:
  // Throws std::invalid_argument for flows and networks that NDP does not have.
  NdpState(const TransportOptions& options, Network& network, const std::vector<FlowConfig>& flows);

  [[nodiscard]] std::unique_ptr<Transport> protocol(Stack& stack) override;
  [[nodiscard]] SubflowReading subflow(std::uint32_t number, Time now) const override;

 private:
  friend class Ndp;

  std::uint32_t window_;  // packets that a flow sends unasked
  Random random_;
  std::vector<NdpHost> hosts_;  // of each NIC
  std::vector<NicId> nic_of_;   // of each port that is a host's queue
};

class Ndp final : public Transport {
 public:
  Ndp(Stack& stack, NdpState& state) : stack_(stack), state_(state) {}

  void start(std::uint32_t flow, Time now) override;
  void received(PacketId id, Time now) override;
  void may_send(PortId port, Time now) override;
  void expired(Alarm what, std::uint32_t owner, PacketId id, Time now) override;
  void rerouted(std::uint32_t number, const Path& there, const Path& back) override;

 private:
  // The sender.
  void send_all(std::uint32_t number, Time now);
  [[nodiscard]] bool has_data(NdpFlow& flow);
  [[nodiscard]] bool host_is_full(const NdpFlow& flow, Time now);
  void transmit(std::uint32_t number, Time now);
  void answered(std::uint32_t number, const Segment& segment, Time now);
  void timed_out(std::uint32_t number, Time now);
  void restart_timer(std::uint32_t number, Time now);
  [[nodiscard]] Path next_path(NdpFlow& flow);

  // The receiver.
  void arrived(PacketId id, Time now);
  void owe_pull(std::uint32_t number, Time now);
  void pull(NicId nic, Time now);
  void answer(PacketId id, std::uint32_t number, Carries carries, Time now);

  Stack& stack_;
  NdpState& state_;
};

}  // namespace fabric
