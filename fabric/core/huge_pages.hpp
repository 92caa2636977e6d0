// Allocates large tables in pages of 2 MB if the kernel has them: a table of 100 MB in pages of 4 kB misses the TLB at
// almost every access. Small tables are allocated as usual.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace fabric {

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

}  // namespace fabric
