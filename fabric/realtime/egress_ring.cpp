#include "realtime/egress_ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace fabric {

namespace {

void* map_pages(int fd, std::size_t bytes, int protection, std::size_t offset, const char* what) {
  void* memory = mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) throw_errno(std::string("mapping ") + what);
  return memory;
}

}  // namespace

EgressRing::EgressRing(int frames_fd, int state_fd)
    : fd_(fcntl(frames_fd, F_DUPFD_CLOEXEC, 0), "duplicating the descriptor of the egress ring"),
      page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  consumer_ = static_cast<std::uint64_t*>(map_pages(frames_fd, page_, kBoth, 0, "the egress ring's consumer page"));
  void* produced = map_pages(frames_fd, page_ + 2 * kBytes, PROT_READ, page_, "the egress ring");
  producer_ = static_cast<const std::uint64_t*>(produced);
  data_ = static_cast<const std::uint8_t*>(produced) + page_;
  state_ = static_cast<egress_state*>(map_pages(state_fd, page_, kBoth, 0, "the egress ring's state"));
  consumed_ = *consumer_;
}

EgressRing::~EgressRing() {
  munmap(state_, page_);
  munmap(const_cast<std::uint64_t*>(producer_), page_ + 2 * kBytes);
  munmap(consumer_, page_);
}

bool EgressRing::fall_asleep() {
  __atomic_store_n(&state_->asleep, 1U, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(producer_, __ATOMIC_SEQ_CST) == consumed_) return true;
  wake_up();
  return false;
}

EgressFrame EgressRing::describe(const std::uint8_t* record) {
  egress_record header;
  std::memcpy(&header, record, sizeof header);
  return {header.ifindex,
          static_cast<std::int64_t>(header.t_ns),
          {record + sizeof header, header.length},
          {header.gso_size, header.segment, header.more != 0}};
}

}  // namespace fabric
