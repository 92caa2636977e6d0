// The choice of the next hop at a switch, packet by packet, from what that switch has seen and holds.
//
// A policy is a class whose objects are the state of one switch each, so nothing is shared between switches but what
// packets carry. Policies that are functions of the flow's hash need none of this: they give a packet its whole path
// (router.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "core/forwarding.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Balancer {
 public:
  Balancer() = default;
  Balancer(const Balancer&) = delete;
  Balancer& operator=(const Balancer&) = delete;
  Balancer(Balancer&&) = delete;
  Balancer& operator=(Balancer&&) = delete;
  virtual ~Balancer() = default;

  // Returns the port of one of `hops`, which are the equal next hops whose links are up, at least one. Called once for
  // every packet that is to go on to another switch.
  [[nodiscard]] virtual PortId choose(const Packet& packet, Steering& steering, std::span<const GroupMember> hops,
                                      Time now) = 0;

  // The packet goes from this switch to its destination host.
  virtual void leaves(const Steering& /*steering*/, Time /*now*/) {}
};

}  // namespace fabric
