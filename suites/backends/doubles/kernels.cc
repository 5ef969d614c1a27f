// SPDX-License-Identifier: Apache-2.0
// A double of the verifier's kernels (harness/verify/cuda), on the double of CUDA's runtime: a libtutti_device_cuda.so
// that fills, compares and makes triads in the memory that the host cannot touch. It runs the kernels' text. Those of
// ranks as thread blocks are in launch.cc.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "harness/verify/device_opener.h"
#include "impl/cuda/runtime.h"
#include "suites/backends/doubles/memory.h"
#include "suites/backends/doubles/settings.h"

namespace tutti::cuda {
extern "C" Error cudaLaunchHostFunc(Stream stream, HostFunction function, void* argument);
}  // namespace tutti::cuda

namespace tutti::harness::verify {
namespace {

/// Where the device finds it.
std::byte* found(const std::byte* at, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  auto* const here = static_cast<std::byte*>(tutti_double_at(at, static_cast<std::size_t>(bytes)));
  if (here != nullptr) return here;
  std::fputs("a kernel was given what is no memory of its device\n", stderr);
  std::abort();
}

class DoubleRunner final : public DeviceRunner {
 public:
  Status fill(const DeviceElements& elements, FillWork work) override {
    work.at = found(work.at, work.elements * static_cast<std::int64_t>(size_of(elements.dtype)));
    return teams_->fill(elements, work);
  }
  Status fill_poison(std::span<const PoisonPart> parts, std::uint16_t word) override {
    std::vector<PoisonPart> here(parts.begin(), parts.end());
    for (PoisonPart& part : here) part.at = found(part.at, part.bytes);
    return teams_->fill_poison(here, word);
  }
  Status write_guards(GuardWork work) override { return teams_->write_guards(here(work)); }
  [[nodiscard]] Result<std::uint64_t> find_damage(GuardWork work) override { return teams_->find_damage(here(work)); }
  Status start_triad(TriadWork work, void* stream) override {
    if (work.bytes == 0) return {};
    doubles::tell("triad of " + std::to_string(work.bytes));
    const auto failure = cuda::cudaLaunchHostFunc(stream, make_one, new TriadWork(work));
    return failure == cuda::kSuccess ? Status() : error(Code::io, "cudaLaunchHostFunc failed: {}", failure);
  }
  Status compare(const DeviceElements& elements, Comparing& comparing, std::span<CompareRecord> records) override {
    Comparing here = comparing;
    for (const ComparePiece& piece : here.pieces) {
      for (std::int32_t m = 0; m < piece.members; ++m) {
        CompareMember& member = here.members[static_cast<std::size_t>(piece.first_member + m)];
        member.at = found(member.at, piece.elements * static_cast<std::int64_t>(size_of(elements.dtype)));
      }
    }
    doubles::tell("comparison");
    return teams_->compare(elements, here, records);
  }

 private:
  static GuardWork here(GuardWork work) {
    for (GuardPart& part : work.parts) part.at = found(part.at, part.bytes);
    return work;
  }
  /// An item on a stream.
  static void make_one(void* argument) {
    const std::unique_ptr<TriadWork> work(static_cast<TriadWork*>(argument));
    work->to = found(work->to, work->bytes);
    work->first = found(work->first, work->bytes);
    work->second = found(work->second, work->bytes);
    static_cast<void>(make_teams_runner({})->start_triad(*work, nullptr).is_ok());
  }

  std::unique_ptr<DeviceRunner> teams_ = make_teams_runner({});  // one thread: the caller's
};

Result<std::unique_ptr<DeviceRunner>> open_double(int /*device*/) {
  return std::unique_ptr<DeviceRunner>(new DoubleRunner());
}

}  // namespace
}  // namespace tutti::harness::verify

extern "C" __attribute__((visibility("default"))) const tutti::harness::verify::RunnerOpener* tutti_device_verifier() {
  static constexpr tutti::harness::verify::RunnerOpener kOpener{.number = tutti::harness::verify::kRunnerNumber,
                                                                .open = tutti::harness::verify::open_double};
  return &kOpener;
}
