// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/slowed.h"

#include <charconv>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/cases/sweep.h"
#include "harness/machine/clock.h"
#include "impl/types/names.h"

namespace tutti::harness::backends {
namespace {

class Slowed final : public Prepared {
 public:
  Slowed(std::unique_ptr<Prepared> inner, double share, std::size_t ranks)
      : inner_(std::move(inner)), share_(share), ranks_(ranks) {}

  Status post(std::size_t index) override {
    ranks_[index] = {.begin_ns = monotonic_ns(), .end_ns = 0};
    return inner_->post(index);
  }

  Result<bool> test(std::size_t index) override {
    Times& times = ranks_[index];
    if (times.end_ns == 0) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, inner_->test(index));
      if (!is_done) return false;
      const std::int64_t now_ns = monotonic_ns();
      times.end_ns = now_ns + static_cast<std::int64_t>(share_ * static_cast<double>(now_ns - times.begin_ns));
    }
    return monotonic_ns() >= times.end_ns;
  }

  [[nodiscard]] std::string position(std::size_t index) const override { return inner_->position(index); }
  [[nodiscard]] std::string report() const override { return inner_->report(); }

 private:
  struct Times {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;  ///< 0: the operation itself has not ended
  };
  std::unique_ptr<Prepared> inner_;
  double share_;
  std::vector<Times> ranks_;
};

}  // namespace

Result<SlowDown> parse_slow_down(std::string_view text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const std::string_view percent = text.substr(0, at);
  SlowDown how;
  const char* end = percent.data() + percent.size();
  const auto [stop, failure] = std::from_chars(percent.data(), end, how.share);
  const bool is_percent = failure == std::errc() && end - stop == 1 && *stop == '%';
  if (!is_percent || !(how.share > 0 && how.share <= 1000)) {
    return error(Code::invalid_argument, "'{}' is not a share above 0 % up to 1000 %, such as 10%@1M", shown(text));
  }
  how.share /= 100;
  if (at == text.size()) return how;
  TUTTI_ASSIGN_OR_RETURN(how.bytes, parse_bytes(text.substr(at + 1)));
  return how;
}

std::unique_ptr<Prepared> slowed(std::unique_ptr<Prepared> inner, double share, std::size_t ranks) {
  return std::make_unique<Slowed>(std::move(inner), share, ranks);
}

std::string SlowedBackend::describe() const {
  nlohmann::json all = nlohmann::json::parse(inner_.describe(), nullptr, false);
  all["slowed_by"] = how_.share;
  if (how_.bytes) all["slowed_bytes"] = *how_.bytes;
  return all.dump();
}

Result<std::unique_ptr<Prepared>> SlowedBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Prepared> prepared, inner_.prepare(one, buffers));
  if (how_.bytes && *how_.bytes != one.bytes) return prepared;
  return slowed(std::move(prepared), how_.share, buffers.size());
}

}  // namespace tutti::harness::backends
