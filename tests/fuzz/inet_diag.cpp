// Any bytes as a datagram of a netlink socket, which the core reads as a dump of sockets.
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "host_io/socket_dump.hpp"

using namespace fabric;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> datagram(data, data + size);
  NameList ccs;
  std::size_t bytes = 0;
  try {
    for_each_message(datagram, [&](const nlmsghdr&, Bytes payload) {
      bytes += sizeof(nlmsghdr) + payload.size();
      SocketRecord record;
      if (parse_socket(payload, ccs, record)) check(record.cc == 0 || record.cc < ccs.names().size(), "a name has a number");
      return true;
    });
  } catch (const std::invalid_argument&) {
  } catch (const std::length_error&) {  // more than 256 congestion controls
  }
  check(bytes <= size, "messages are part of their datagram");
  return 0;
}
