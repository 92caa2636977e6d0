// An IMS under load, event by event: users, P-CSCFs (a FIFO and one worker each), S-CSCFs (workers that hold their CPU
// time and the look-up of user data), finite UDP receive buffers, and SIP's retransmissions at users and proxies.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "core/random.hpp"
#include "core/units.hpp"
#include "ims/server.hpp"
#include "ims/sip.hpp"

namespace fabric::ims {

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
