// A fuzzer for functions with libFuzzer's signature, for compilers that have none (g++): mutates the inputs of a corpus
// and keeps those that reach new edges of the code (-fsanitize-coverage=trace-pc).
//
//   TARGET SECONDS SEED CORPUS FOUND    CORPUS: inputs to begin with. FOUND: where an input that fails is written.
//
// The same seed makes the same mutations of the same corpus. Exit code 0: nothing found.
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

using Input = std::vector<std::uint8_t>;

namespace {

constexpr std::size_t kLongest = 4096;

std::array<std::uint8_t, 1 << 16> seen{};  // global, because the compiler's callback has no argument
bool reached_new = false;
Input current;
std::string found;

void write_current() {
  std::ofstream(found, std::ios::binary).write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "the input is in %s\n", found.c_str());
}

bool is_new(const Input& input) {
  current = input;
  reached_new = false;
  LLVMFuzzerTestOneInput(current.data(), current.size());
  return reached_new;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Input operator()(const std::vector<Input>& corpus) {
    Input input = corpus[below(corpus.size())];
    for (std::size_t n = 1 + below(6); n > 0; --n) change(input, corpus);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::uint8_t any() { return static_cast<std::uint8_t>(random_()); }
  // Values at which lengths and counts go wrong.
  std::uint8_t notable() {
    constexpr std::array<std::uint8_t, 10> values{0, 1, 2, 4, 8, 16, 0x7F, 0x80, 0xFE, 0xFF};
    return values[below(values.size())];
  }

  void change(Input& input, const std::vector<Input>& corpus) {
    const auto at = static_cast<std::ptrdiff_t>(below(input.size() + 1));
    if (at == std::ssize(input) || below(8) == 0) {
      input.insert(input.begin() + at, below(2) == 0 ? any() : notable());
      return;
    }
    switch (below(6)) {
      case 0: input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << below(8)); return;
      case 1: input[static_cast<std::size_t>(at)] = any(); return;
      case 2: input[static_cast<std::size_t>(at)] = notable(); return;
      case 3: input.resize(static_cast<std::size_t>(at)); return;
      case 4: input.erase(input.begin() + at); return;
      default: splice(input, at, corpus[below(corpus.size())]); return;
    }
  }

  void splice(Input& input, std::ptrdiff_t at, const Input& other) {
    if (other.empty()) return;
    const auto from = static_cast<std::ptrdiff_t>(below(other.size()));
    const auto count = static_cast<std::ptrdiff_t>(1 + below(static_cast<std::size_t>(std::ssize(other) - from)));
    const Input part(other.begin() + from, other.begin() + from + count);
    input.insert(input.begin() + at, part.begin(), part.end());
  }

  std::mt19937_64 random_;
};

std::vector<Input> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus{{}};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

extern "C" __attribute__((no_sanitize("all"), no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {
  const auto pc = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  auto& cell = seen[(pc ^ pc >> 16) & (seen.size() - 1)];
  reached_new |= cell == 0;
  cell = 1;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SECONDS SEED CORPUS FOUND\n", argv[0]);
    return 2;
  }
  found = argv[4];
  __sanitizer_set_death_callback(write_current);
  std::vector<Input> corpus = read_corpus(argv[3]);
  for (const Input& input : corpus) (void)is_new(input);
  const std::size_t given = corpus.size();
  Mutator mutate(std::strtoull(argv[2], nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[1]));
  std::uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    Input input = mutate(corpus);
    if (is_new(input)) corpus.push_back(std::move(input));
  }
  std::printf("%llu inputs, %zu of them with new edges, from %zu\n", static_cast<unsigned long long>(runs),
              corpus.size() - given, given - 1);
  return 0;
}
