// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/record.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "impl/collective/collective.h"

namespace tutti::bindings {
namespace {

constexpr double kMostGap = 60e6;  // us, of a trace

}  // namespace

Recorder& Recorder::of_process() {
  static auto* const recorder = new Recorder;  // works may end after the destructors of static objects
  return *recorder;
}

Recorder* Recorder::for_group(int rank) {
  const std::lock_guard lock(mutex_);
  const char* const path = std::getenv("TUTTI_TORCH_RECORD");
  if (std::exchange(has_group_, true) || rank != 0 || path == nullptr || *path == '\0') return nullptr;
  const int descriptor = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  struct stat about {};
  const bool is_file = descriptor >= 0 && ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  // Held until the process ends.
  if (is_file && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor);
    throw std::runtime_error(
        fmt::format("TUTTI_TORCH_RECORD: '{}' is being written by rank 0 of another first group: make the group of all "
                    "ranks with tutti first, or give each such rank another file",
                    path));
  }
  const bool is_empty = !is_file || ::ftruncate(descriptor, 0) == 0;
  file_ = descriptor >= 0 && is_empty ? ::fdopen(descriptor, "w") : nullptr;
  if (file_ == nullptr) {
    throw std::runtime_error(fmt::format("TUTTI_TORCH_RECORD: cannot write '{}': {}", path, std::strerror(errno)));
  }
  std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
  std::fputs("step,group,operation,dtype,op,bytes,peer_bytes,gap_us\n", file_);
  last_ = Clock::now();
  return this;
}

void Recorder::note(const Call& call, int ranks) {
  const Problem problem{.collective = call.collective, .ranks = ranks};
  const bool is_barrier = call.collective == Collective::barrier;
  write(call, is_barrier ? 0 : buffer_bytes(problem, call.count, size_of(call.dtype)), "");
}

void Recorder::note(const CallOfLists& call, int ranks) {
  std::vector<std::int64_t> bytes;
  const auto element = static_cast<std::int64_t>(size_of(call.call.dtype));
  for (const ConstPart& part : call.inputs) bytes.push_back(part.count * element);
  if (call.inputs.empty()) {
    for (const Part& part : call.outputs) bytes.push_back(part.count * element);
  }
  Call plain = call.call;
  if (std::adjacent_find(bytes.begin(), bytes.end(), std::not_equal_to<>()) == bytes.end()) {
    plain.collective = base_of(plain.collective);
    plain.count = bytes.empty() ? 0 : bytes.front() / element;
    note(plain, ranks);
  } else {
    write(plain, 0, fmt::format("{}", fmt::join(bytes, ";")));
  }
}

void Recorder::write(const Call& call, std::int64_t bytes, std::string_view peer_bytes) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const double gap = std::chrono::duration<double, std::micro>(now - std::exchange(last_, now)).count();
  if (calls_++ >= kMostRecordedCalls) return;
  const bool is_barrier = call.collective == Collective::barrier;
  const bool has_bytes = !is_barrier && peer_bytes.empty();
  const std::string line =
      fmt::format("{},,{},{},{},{},{},{:.3f}\n", step_, to_string(call.collective),
                  is_barrier ? "" : to_string(call.dtype), is_reducing(call.collective) ? to_string(call.op) : "",
                  has_bytes ? std::to_string(bytes) : "", peer_bytes, std::min(gap, kMostGap));
  std::fputs(line.c_str(), file_);
}

void Recorder::end_call() {
  const std::lock_guard lock(mutex_);
  last_ = Clock::now();
}

void Recorder::begin_step(const std::string& name) {
  if (!std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      })) {
    throw std::invalid_argument(
        fmt::format("step: '{}' is no name of letters, digits, '_' and '-': did you mean 'forward'?", name));
  }
  const std::lock_guard lock(mutex_);
  ++steps_;
  step_ = name.empty() ? std::to_string(steps_) : name;
  for (int again = 2; !used_.insert(step_).second; ++again) {
    step_ = name.empty() ? std::to_string(++steps_) : fmt::format("{}-{}", name, again);
  }
}

}  // namespace tutti::bindings
