// An array whose address space is reserved once and whose memory arrives page by page as it is touched:
// indices stay 32 bits, addresses never move, and a small run costs little.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/huge_pages.hpp"

namespace fabric {

template <class T>
  requires std::is_trivially_copyable_v<T>
class VirtualArray {
 public:
  explicit VirtualArray(std::size_t capacity) : capacity_(capacity) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(),
                              "reserving " + std::to_string(bytes() >> 20) + " MB of address space");
    }
    data_ = static_cast<T*>(memory);
  }
  VirtualArray(const VirtualArray&) = delete;
  VirtualArray& operator=(const VirtualArray&) = delete;
  VirtualArray(VirtualArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(other.capacity_) {}
  VirtualArray& operator=(VirtualArray&&) = delete;
  ~VirtualArray() {
    if (data_ != nullptr) munmap(data_, bytes());
  }

  T& operator[](std::size_t index) { return data_[index]; }
  const T& operator[](std::size_t index) const { return data_[index]; }
  void prefer_huge_pages() { fabric::prefer_huge_pages(data_, bytes()); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  [[nodiscard]] std::size_t bytes() const { return capacity_ * sizeof(T); }

  T* data_ = nullptr;
  std::size_t capacity_;
};

}  // namespace fabric
