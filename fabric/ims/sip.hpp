// Messages of SIP (RFC 3261) between a caller, three proxies and a callee, and what they remember of a dialog.
//
// A call's path has five hops: 0 caller, 1 its P-CSCF, 2 S-CSCF, 3 the callee's P-CSCF, 4 callee. A registration ends
// at hop 2.
#pragma once

#include <array>
#include <cstdint>

#include "core/units.hpp"

namespace fabric::ims {

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

}  // namespace fabric::ims
