#include "host_io/flow_size.hpp"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "realtime/file_descriptor.hpp"

namespace fabric {

void store_size(int map, int socket, FlowSize size) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map);
  attributes.key = reinterpret_cast<std::uintptr_t>(&socket);
  attributes.value = reinterpret_cast<std::uintptr_t>(&size);
  attributes.flags = BPF_ANY;
  checked_call(static_cast<int>(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attributes, sizeof attributes)),
               "storing a flow's size with its socket");
}

}  // namespace fabric
