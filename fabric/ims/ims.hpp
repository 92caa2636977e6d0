// An IMS under load, event by event: users, P-CSCFs (a FIFO and one worker each), S-CSCFs (workers that hold their CPU
// time and the look-up of user data), finite UDP receive buffers, and SIP's retransmissions at users and proxies.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric::ims {

// Messages of SIP (RFC 3261) between a caller, three proxies and a callee, and what they remember of a dialog.
//
// A call's path has five hops: 0 caller, 1 its P-CSCF, 2 S-CSCF, 3 the callee's P-CSCF, 4 callee. A registration ends
// at hop 2.
enum class Role : std::uint8_t { pcscf, scscf };

// Order matters: requests first, so that a request's transaction has its number.
enum class Kind : std::uint8_t {
  invite,
  bye,
  first_register,   // without credentials
  second_register,  // answers the challenge
  ack,
  trying,
  ringing,
  ok_invite,
  ok_bye,
  challenge,
  ok_register,
};

inline constexpr std::uint8_t kRequests = 4;  // that have transactions and are retransmitted
inline constexpr std::uint8_t kAnswer = kRequests;  // 200 to an INVITE: the callee repeats it until an ACK comes
inline constexpr std::uint8_t kTransactions = kRequests + 1;
inline constexpr std::uint8_t kCaller = 0;
inline constexpr std::uint8_t kFirstProxy = 1;
inline constexpr std::uint8_t kRegistrar = 2;
inline constexpr std::uint8_t kCallee = 4;

// Timers of RFC 3261, table 4: T1, T2, and the number of retransmissions until 64 T1.
inline constexpr Time kT1 = 500'000'000'000;
inline constexpr Time kT2 = 8 * kT1;
inline constexpr std::uint8_t kMostInvites = 6;
inline constexpr std::uint8_t kMostOthers = 10;

struct Message {
  std::uint32_t dialog;
  std::uint32_t generation;
  Kind kind;
  std::uint8_t hop;  // where it is, or where it is going
};

// What a message takes of a receive buffer: Linux counts the memory behind it, 256 bytes and a slab of 1024, or of 2048
// for more than 640 bytes of SIP (measured). Of our programs' messages two kinds are longer: the INVITE that reaches the
// callee's P-CSCF, with two Vias and Record-Routes (690 bytes), and the callee's 200 to it (699).
inline constexpr std::size_t kRoom = 1280;
inline constexpr std::size_t kLargeRoom = 2304;
inline constexpr std::uint8_t kLastProxy = 3;

constexpr std::size_t room_of(const Message& message) {
  const bool long_kind = message.kind == Kind::invite || message.kind == Kind::ok_invite;
  return long_kind && message.hop == kLastProxy ? kLargeRoom : kRoom;
}

enum class Phase : std::uint8_t { begun, second, talking, ending, completed, failed };

// What all hops of one call or registration remember.
struct Dialog {
  std::uint32_t generation = 0;
  std::array<std::uint32_t, 3> servers{};  // of hops 1 to 3
  Time began = 0;
  bool call = false;
  Phase phase = Phase::begun;
  // A bit per hop: requests that it has seen, and those of its own that were answered.
  std::array<std::uint8_t, kTransactions> seen{};
  std::array<std::uint8_t, kTransactions> answered{};
  // The last response to the INVITE that each hop sent back.
  std::array<Kind, 5> last{};
};

// A SIP server behind a UDP socket: a FIFO of finite length and a number of workers.
//
// Like Linux (net/ipv4/udp.c), a reader takes all waiting messages as a batch. Room that messages leave counts as used
// until it is a quarter of the buffer or the batch is done, so a full buffer holds a quarter less at times.
struct ServerCounters {
  std::uint64_t arrived = 0;
  std::uint64_t dropped = 0;
  std::uint64_t served = 0;
  std::uint64_t lookups = 0;
  Time busy = 0;          // summed over its workers
  Time queued = 0;        // time integral of the queue's length
  std::size_t longest = 0;
};

class Server {
 public:
  // `buffer`: how many messages of kRoom bytes have room.
  Server(Role role, std::uint32_t workers, std::size_t buffer)
      : role_(role), workers_(workers), buffer_bytes_(buffer * kRoom) {}

  // Whether a worker is free to take the message now. If not, the message waits or is dropped.
  bool arrive(const Message& message, Time now) {
    ++counters_.arrived;
    if (busy_ < workers_) {
      ++busy_;
      return true;
    }
    if (waiting_bytes_ + unreleased_bytes_ >= buffer_bytes_) {
      ++counters_.dropped;
      return false;
    }
    settle(now);
    waiting_.push_back(message);
    waiting_bytes_ += room_of(message);
    counters_.longest = std::max(counters_.longest, waiting_.size());
    return false;
  }

  // A worker is done after `took`: whether it has a next message, which is then in `next`.
  bool finish(Time now, Time took, Message& next) {
    ++counters_.served;
    counters_.busy += took;
    if (waiting_.empty()) {
      --busy_;
      return false;
    }
    settle(now);
    if (batch_ == 0) batch_ = waiting_.size();
    next = waiting_.front();
    waiting_.pop_front();
    waiting_bytes_ -= room_of(next);
    unreleased_bytes_ += room_of(next);
    if (--batch_ == 0 || 4 * unreleased_bytes_ >= buffer_bytes_) unreleased_bytes_ = 0;
    return true;
  }

  void count_lookup() { ++counters_.lookups; }

  [[nodiscard]] const ServerCounters& counters(Time now) {
    settle(now);
    return counters_;
  }

  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  // The share of the buffer that waiting messages take, as /proc/net/udp shows it.
  [[nodiscard]] double fill() const { return static_cast<double>(waiting_bytes_) / static_cast<double>(buffer_bytes_); }
  [[nodiscard]] bool idle() const { return busy_ == 0; }

  bool active = true;          // takes new dialogs
  std::uint32_t dialogs = 0;   // that have it on their path and have not ended

 private:
  void settle(Time now) {
    counters_.queued += static_cast<Time>(waiting_.size()) * (now - settled_);
    settled_ = now;
  }

  Role role_;
  std::uint32_t workers_;
  std::uint32_t busy_ = 0;
  std::size_t buffer_bytes_;
  std::size_t batch_ = 0;  // messages of the batch that wait
  std::size_t waiting_bytes_ = 0;
  std::size_t unreleased_bytes_ = 0;  // of messages that have left and still count
  std::deque<Message> waiting_;
  ServerCounters counters_;
  Time settled_ = 0;
};

struct Config {
  Time pcscf_message = 0;  // a P-CSCF's service time
  Time scscf_message = 0;  // an S-CSCF's CPU time
  Time lookup = 0;         // what an S-CSCF's worker waits for user data
  std::uint32_t workers = 1;
  std::size_t buffer = 1;  // messages that wait in a socket
  Time hop = 0;            // delay between two hosts
  Time hold = 0;           // from a call's ACK to its BYE
  Time patience = 0;       // how long users wait for a final response
  bool poisson = false;
  std::uint32_t seed = 0;
};

struct Counts {
  std::uint64_t offered = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t registrations = 0;
  std::uint64_t registered = 0;
  std::uint64_t registrations_failed = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t events = 0;
};

struct Setup {
  Time when;
  Time took;
};

class Ims {
 public:
  // Throws std::invalid_argument for numbers that no network has.
  explicit Ims(const Config& config);

  std::uint32_t add(Role role);
  // The server gets no new dialogs; those that it has stay (Record-Route). Throws std::invalid_argument for the last
  // active one of its role.
  void drain(std::uint32_t server);
  void activate(std::uint32_t server);
  // New arrivals come at these rates from `now()` on; 0 stops them.
  void set_rates(double calls_per_s, double registrations_per_s);
  void advance(Time until);

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] std::vector<Server>& servers() { return servers_; }
  // The setup times of calls since the last call of this function.
  std::vector<Setup> take_setups();

 private:
  enum class What : std::uint8_t { arrival, served, looked_up, timer, hang_up, patience, forget, call, registration };

  struct Event {
    Time due;
    std::uint64_t order;
    Message message;
    What what;
    std::uint8_t count = 0;    // retransmissions so far; the phase that must end, for patience
    std::uint32_t server = 0;  // whose worker it is; the epoch of the rate, for arrivals of dialogs

    bool operator>(const Event& other) const { return due != other.due ? due > other.due : order > other.order; }
  };

  void push(Time due, What what, const Message& message, std::uint8_t count = 0, std::uint32_t server = 0);
  void handle(const Event& event);
  void arrive(const Message& message);
  void start(std::uint32_t server, const Message& message);
  void finish(std::uint32_t server, Time took);
  bool needs_lookup(const Message& message);
  void process(const Message& message);
  void forward_request(Dialog& dialog, const Message& message);
  void forward_response(Dialog& dialog, const Message& message);
  void register_at(Dialog& dialog, const Message& message);
  void at_caller(Dialog& dialog, const Message& message);
  void at_callee(Dialog& dialog, const Message& message);
  void send(const Message& from, Kind kind, int step);
  void request(const Message& from, Kind kind);
  void retransmit(const Event& event);
  void hang_up(const Message& message);
  void lose_patience(const Event& event);
  void end(const Message& of, Phase phase);
  void forget(const Message& message);
  void begin(bool call, std::uint32_t epoch);
  void schedule(bool call, double share);
  std::uint32_t pick(Role role, bool in_turn);
  double uniform();
  Dialog* find(const Message& message);

  Config config_;
  Random random_;
  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::uint32_t epoch_ = 0;
  double calls_per_s_ = 0;
  double registrations_per_s_ = 0;
  std::uint32_t turn_ = 0;
  Counts counts_;
  std::vector<Server> servers_;
  std::vector<std::uint32_t> active_[2];
  std::vector<Dialog> dialogs_;
  std::vector<std::uint32_t> free_;
  std::vector<Setup> setups_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace fabric::ims
