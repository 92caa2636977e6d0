// Prefetching memory into the cache.
#pragma once

namespace fabric {

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
