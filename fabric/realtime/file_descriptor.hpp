#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace fabric {

[[noreturn]] inline void throw_errno(const std::string& attempt) {
  throw std::system_error(errno, std::generic_category(), attempt);
}

// Returns `result`, or throws with the attempt in words when it is negative.
template <class Int>
Int checked_call(Int result, const std::string& attempt) {
  if (result < 0) throw_errno(attempt);
  return result;
}

class FileDescriptor {
 public:
  FileDescriptor(int fd, const std::string& attempt) : fd_(checked_call(fd, attempt)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace fabric
