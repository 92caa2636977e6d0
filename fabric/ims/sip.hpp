// Messages of SIP (RFC 3261) between a caller, three proxies and a callee, and what they remember of a dialog.
//
// A call's path has five hops: 0 caller, 1 its P-CSCF, 2 S-CSCF, 3 the callee's P-CSCF, 4 callee. A registration ends
// at hop 2.
#pragma once

#include <array>
#include <cstddef>
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

}  // namespace fabric::ims
