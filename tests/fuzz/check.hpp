// What must hold for every input. A violation ends the process like a finding of a sanitizer.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}
