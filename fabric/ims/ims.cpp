#include "ims/ims.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace fabric::ims {

namespace {

constexpr double kMostPerS = 1e6;
constexpr Time kForgetCompleted = 10 * kT1;  // T4: how long messages stay in the network
constexpr Time kForgetFailed = 64 * kT1;

constexpr std::uint8_t number(Kind kind) { return static_cast<std::uint8_t>(kind); }
constexpr std::uint8_t bit(std::uint8_t hop) { return static_cast<std::uint8_t>(1U << hop); }

constexpr bool is_server(const Dialog& dialog, std::uint8_t hop) {
  return hop >= kFirstProxy && hop < (dialog.call ? kCallee : kRegistrar + 1);
}

// Which transaction of its receiver a response ends.
constexpr std::uint8_t transaction_of(Kind response) {
  switch (response) {
    case Kind::ok_bye:
      return number(Kind::bye);
    case Kind::challenge:
      return number(Kind::first_register);
    case Kind::ok_register:
      return number(Kind::second_register);
    default:
      return number(Kind::invite);
  }
}

}  // namespace

Ims::Ims(const Config& config) : config_(config), random_(config.seed, 0) {
  if (config.pcscf_message <= 0 || config.scscf_message < 0 || config.lookup < 0 || config.hop < 0 ||
      config.hold < 0 || config.patience <= 0) {
    throw std::invalid_argument("an IMS needs times that are not negative, and a P-CSCF some time per message");
  }
  if (config.workers == 0 || config.buffer == 0) throw std::invalid_argument("an IMS needs workers and buffers");
}

std::uint32_t Ims::add(Role role) {
  const auto id = static_cast<std::uint32_t>(servers_.size());
  servers_.emplace_back(role, role == Role::pcscf ? 1 : config_.workers, config_.buffer);
  active_[static_cast<int>(role)].push_back(id);
  return id;
}

void Ims::drain(std::uint32_t server) {
  auto& active = active_[static_cast<int>(servers_.at(server).role())];
  if (active.size() == 1 && active.front() == server) throw std::invalid_argument("the last active server stays");
  std::erase(active, server);
  servers_[server].active = false;
}

void Ims::activate(std::uint32_t server) {
  if (servers_.at(server).active) return;
  servers_[server].active = true;
  active_[static_cast<int>(servers_[server].role())].push_back(server);
}

void Ims::set_rates(double calls_per_s, double registrations_per_s) {
  if (!(calls_per_s >= 0 && calls_per_s <= kMostPerS && registrations_per_s >= 0 && registrations_per_s <= kMostPerS)) {
    throw std::invalid_argument("rates are from 0 to a million per second");
  }
  if (active_[0].empty() || active_[1].empty()) throw std::invalid_argument("an IMS needs a server of each role");
  calls_per_s_ = calls_per_s;
  registrations_per_s_ = registrations_per_s;
  ++epoch_;
  // Arrivals at constant intervals begin at a random time of the first one.
  for (const bool call : {true, false}) schedule(call, config_.poisson ? 1.0 : uniform());
}

void Ims::advance(Time until) {
  while (!events_.empty() && events_.top().due <= until) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.due;
    ++counts_.events;
    handle(event);
  }
  now_ = std::max(now_, until);
}

std::vector<Setup> Ims::take_setups() { return std::exchange(setups_, {}); }

void Ims::push(Time due, What what, const Message& message, std::uint8_t count, std::uint32_t server) {
  events_.push({due, order_++, message, what, count, server});
}

void Ims::handle(const Event& event) {
  switch (event.what) {
    case What::arrival:
      return arrive(event.message);
    case What::served:
      if (needs_lookup(event.message)) {
        servers_[event.server].count_lookup();
        return push(now_ + config_.lookup, What::looked_up, event.message, 0, event.server);
      }
      process(event.message);
      return finish(event.server, servers_[event.server].role() == Role::pcscf ? config_.pcscf_message
                                                                              : config_.scscf_message);
    case What::looked_up:
      if (event.message.kind == Kind::invite) {
        request(event.message, Kind::invite);
      } else {
        process(event.message);
      }
      return finish(event.server, config_.scscf_message + config_.lookup);
    case What::timer:
      return retransmit(event);
    case What::hang_up:
      return hang_up(event.message);
    case What::patience:
      return lose_patience(event);
    case What::forget:
      return forget(event.message);
    case What::call:
    case What::registration:
      return begin(event.what == What::call, event.server);
  }
}

Dialog* Ims::find(const Message& message) {
  Dialog& dialog = dialogs_[message.dialog];
  return dialog.generation == message.generation ? &dialog : nullptr;
}

void Ims::arrive(const Message& message) {
  Dialog* dialog = find(message);
  if (dialog == nullptr) return;
  if (!is_server(*dialog, message.hop)) {
    return message.hop == kCaller ? at_caller(*dialog, message) : at_callee(*dialog, message);
  }
  const std::uint32_t server = dialog->servers[message.hop - 1U];
  if (servers_[server].arrive(message, now_)) start(server, message);
}

void Ims::start(std::uint32_t server, const Message& message) {
  const Time takes = servers_[server].role() == Role::pcscf ? config_.pcscf_message : config_.scscf_message;
  push(now_ + takes, What::served, message, 0, server);
}

void Ims::finish(std::uint32_t server, Time took) {
  Message next{};
  if (servers_[server].finish(now_, took, next)) start(server, next);
}

// A registrar answers a REGISTER without state, so a repeated one is looked up again. An INVITE has a transaction.
bool Ims::needs_lookup(const Message& message) {
  Dialog* dialog = find(message);
  if (dialog == nullptr || message.hop != kRegistrar) return false;
  if (message.kind == Kind::second_register) return true;
  if (message.kind != Kind::invite || (dialog->seen[number(Kind::invite)] & bit(message.hop)) != 0) return false;
  dialog->seen[number(Kind::invite)] |= bit(message.hop);
  dialog->last[message.hop] = Kind::trying;
  send(message, Kind::trying, -1);
  return true;
}

void Ims::process(const Message& message) {
  Dialog* dialog = find(message);
  if (dialog == nullptr) return;
  switch (message.kind) {
    case Kind::invite:
    case Kind::bye:
      return forward_request(*dialog, message);
    case Kind::first_register:
    case Kind::second_register:
      return register_at(*dialog, message);
    case Kind::ack:
      return send(message, Kind::ack, 1);
    default:
      return forward_response(*dialog, message);
  }
}

void Ims::forward_request(Dialog& dialog, const Message& message) {
  const std::uint8_t which = number(message.kind);
  const std::uint8_t here = bit(message.hop);
  const bool first = (dialog.seen[which] & here) == 0;
  if (first) {
    dialog.seen[which] |= here;
    if (message.kind == Kind::invite) {
      dialog.last[message.hop] = Kind::trying;
      send(message, Kind::trying, -1);
    }
    return request(message, message.kind);
  }
  if (message.kind == Kind::invite) return send(message, dialog.last[message.hop], -1);
  if ((dialog.answered[which] & here) != 0) send(message, Kind::ok_bye, -1);
}

void Ims::register_at(Dialog& dialog, const Message& message) {
  const bool first = message.kind == Kind::first_register;
  const Kind answer = first ? Kind::challenge : Kind::ok_register;
  if (message.hop == kRegistrar) return send(message, answer, -1);
  const std::uint8_t which = number(message.kind);
  if ((dialog.seen[which] & bit(message.hop)) == 0) {
    dialog.seen[which] |= bit(message.hop);
    return request(message, message.kind);
  }
  if ((dialog.answered[which] & bit(message.hop)) != 0) send(message, answer, -1);
}

void Ims::forward_response(Dialog& dialog, const Message& message) {
  std::uint8_t& answered = dialog.answered[transaction_of(message.kind)];
  const bool first = (answered & bit(message.hop)) == 0;
  answered |= bit(message.hop);
  switch (message.kind) {
    case Kind::trying:
      return;
    case Kind::ringing:
    case Kind::ok_invite:
      dialog.last[message.hop] = message.kind;
      return send(message, message.kind, -1);
    default:
      if (first) send(message, message.kind, -1);
  }
}

void Ims::at_caller(Dialog& dialog, const Message& message) {
  if (dialog.phase == Phase::failed) return;
  dialog.answered[transaction_of(message.kind)] |= bit(kCaller);
  switch (message.kind) {
    case Kind::ok_invite:
      if (dialog.phase == Phase::begun) {
        dialog.phase = Phase::talking;
        setups_.push_back({now_, now_ - dialog.began});
        push(now_ + config_.hold, What::hang_up, message);
      }
      return send(message, Kind::ack, 1);
    case Kind::challenge:
      if (dialog.phase != Phase::begun) return;
      dialog.phase = Phase::second;
      push(now_ + config_.patience, What::patience, message, static_cast<std::uint8_t>(Phase::second));
      return request(message, Kind::second_register);
    case Kind::ok_bye:
      if (dialog.phase == Phase::ending) end(message, Phase::completed);
      return;
    case Kind::ok_register:
      if (dialog.phase == Phase::second) end(message, Phase::completed);
      return;
    default:
      return;
  }
}

void Ims::at_callee(Dialog& dialog, const Message& message) {
  switch (message.kind) {
    case Kind::invite: {
      const bool first = (dialog.seen[number(Kind::invite)] & bit(kCallee)) == 0;
      dialog.seen[number(Kind::invite)] |= bit(kCallee);
      if (!first) return;  // as SIPp does, and RFC 6026; the 200 has a timer of its own
      send(message, Kind::ringing, -1);
      send(message, Kind::ok_invite, -1);
      return push(now_ + kT1, What::timer, {message.dialog, message.generation, Kind::ok_invite, kCallee});
    }
    case Kind::ack:
      dialog.answered[kAnswer] |= bit(kCallee);
      return;
    case Kind::bye:
      dialog.answered[kAnswer] |= bit(kCallee);  // it overtook a lost ACK
      return send(message, Kind::ok_bye, -1);
    default:
      return;
  }
}

void Ims::send(const Message& from, Kind kind, int step) {
  const auto hop = static_cast<std::uint8_t>(from.hop + step);
  push(now_ + config_.hop, What::arrival, {from.dialog, from.generation, kind, hop});
}

// Sends a request to the next hop, and again until it is answered there.
void Ims::request(const Message& from, Kind kind) {
  send(from, kind, 1);
  push(now_ + kT1, What::timer, {from.dialog, from.generation, kind, from.hop});
}

void Ims::retransmit(const Event& event) {
  const Message& message = event.message;
  Dialog* dialog = find(message);
  if (dialog == nullptr) return;
  const bool response = message.kind == Kind::ok_invite;
  const std::uint8_t which = response ? kAnswer : number(message.kind);
  if ((dialog->answered[which] & bit(message.hop)) != 0) return;
  if (message.hop == kCaller && dialog->phase == Phase::failed) return;
  const bool invite = message.kind == Kind::invite;
  const auto count = static_cast<std::uint8_t>(event.count + 1);
  if (count > (invite ? kMostInvites : kMostOthers)) return;
  ++counts_.retransmissions;
  send(message, message.kind, response ? -1 : 1);
  const Time next = kT1 << std::min<int>(count, 6);
  push(now_ + (invite ? next : std::min(next, kT2)), What::timer, message, count);
}

void Ims::hang_up(const Message& message) {
  Dialog* dialog = find(message);
  if (dialog == nullptr) return;
  dialog->phase = Phase::ending;
  push(now_ + config_.patience, What::patience, message, static_cast<std::uint8_t>(Phase::ending));
  request(message, Kind::bye);
}

void Ims::lose_patience(const Event& event) {
  const Dialog* dialog = find(event.message);
  if (dialog != nullptr && static_cast<std::uint8_t>(dialog->phase) == event.count) end(event.message, Phase::failed);
}

void Ims::end(const Message& of, Phase phase) {
  Dialog& dialog = dialogs_[of.dialog];
  dialog.phase = phase;
  const bool completed = phase == Phase::completed;
  ++(dialog.call ? (completed ? counts_.completed : counts_.failed)
                 : (completed ? counts_.registered : counts_.registrations_failed));
  for (std::uint8_t hop = kFirstProxy; is_server(dialog, hop); ++hop) --servers_[dialog.servers[hop - 1U]].dialogs;
  push(now_ + (completed ? kForgetCompleted : kForgetFailed), What::forget, of);
}

void Ims::forget(const Message& message) {
  ++dialogs_[message.dialog].generation;
  free_.push_back(message.dialog);
}

void Ims::begin(bool call, std::uint32_t epoch) {
  if (epoch != epoch_) return;  // the rate has changed since
  schedule(call, 1.0);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(dialogs_.size()));
    dialogs_.emplace_back();
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  Dialog& dialog = dialogs_[id];
  dialog = {.generation = dialog.generation, .began = now_, .call = call};
  dialog.servers = {pick(Role::pcscf, false), pick(Role::scscf, true), pick(Role::pcscf, false)};
  for (std::uint8_t hop = kFirstProxy; is_server(dialog, hop); ++hop) ++servers_[dialog.servers[hop - 1U]].dialogs;
  ++(call ? counts_.offered : counts_.registrations);
  const Message message{id, dialog.generation, Kind::invite, kCaller};
  push(now_ + config_.patience, What::patience, message, static_cast<std::uint8_t>(Phase::begun));
  request(message, call ? Kind::invite : Kind::first_register);
}

void Ims::schedule(bool call, double share) {
  const double per_s = call ? calls_per_s_ : registrations_per_s_;
  if (per_s <= 0) return;
  const double mean = static_cast<double>(kSecond) / per_s * (config_.poisson ? -std::log(uniform()) : 1.0);
  const Time wait = std::max<Time>(1, std::llround(share * mean));
  push(now_ + wait, call ? What::call : What::registration, {}, 0, epoch_);
}

// P-CSCFs are those of random users; a P-CSCF gives dialogs to S-CSCFs in turn.
std::uint32_t Ims::pick(Role role, bool in_turn) {
  const auto& active = active_[static_cast<int>(role)];
  const auto size = static_cast<std::uint32_t>(active.size());
  return active[in_turn ? turn_++ % size : random_.below(size)];
}

// Above 0 and below 1.
double Ims::uniform() { return std::ldexp(static_cast<double>(random_.next() >> 11) + 0.5, -53); }

}  // namespace fabric::ims
