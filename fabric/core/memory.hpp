// Memory of large tables: huge pages, address space that is reserved once, and prefetching into the cache.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace fabric {

// Large tables are allocated in pages of 2 MB if the kernel has them: a table of 100 MB in pages of 4 kB misses the TLB
// at almost every access. Small tables are allocated as usual.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// This is advice: if the kernel refuses, pages stay small.
inline void prefer_huge_pages(void* memory, std::size_t bytes) { (void)madvise(memory, bytes, MADV_HUGEPAGE); }

template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>& /*other*/) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = ::operator new(bytes, alignment(bytes));
    if (bytes >= kHugePage) prefer_huge_pages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count * sizeof(T))); }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }

 private:
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kHugePage ? kHugePage : alignof(T)};
  }
};

// An array whose address space is reserved once and whose memory arrives page by page as it is touched:
// indices stay 32 bits, addresses never move, and a small run costs little.
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

// GCC (at least 12) treats a function that only calls __builtin_prefetch as one without effects, and removes calls to
// it. The empty asm statement is an effect that costs nothing.
inline void prefetch(const void* line) {
  __builtin_prefetch(line);
  asm volatile("");
}
inline void prefetch_to_write(const void* line) {
  __builtin_prefetch(line, 1);
  asm volatile("");
}

// All lines from this one up to the other.
inline void prefetch_lines(const void* first, const void* last) {
  const auto* end = static_cast<const char*>(last);
  for (const auto* line = static_cast<const char*>(first); line <= end; line += 64) prefetch_to_write(line);
}

}  // namespace fabric
