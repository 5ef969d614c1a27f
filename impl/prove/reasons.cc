// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/reasons.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

namespace tutti {

void Reasons::add(const Status& status) {
  if (status.is_ok()) return;
  for (std::string& reason : reasons_in(status.message())) {
    std::string fault = fault_of(reason);
    if (std::ranges::find(faults_, fault) != faults_.end()) continue;
    faults_.push_back(std::move(fault));
    reasons_.push_back(std::move(reason));
  }
}

Status Reasons::note(Status status) {
  if (status.code() != Code::refuted) return status;
  add(status);
  return {};
}

Status Reasons::status() const {
  return reasons_.empty() ? Status() : error(Code::refuted, "{}", fmt::join(reasons_, "\n"));
}

std::vector<std::string> reasons_in(std::string_view message) {
  std::vector<std::string> reasons;
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(message.size(), line.size() + 1));
    if (reasons.empty() || !line.starts_with(' ')) {
      reasons.emplace_back(line);
    } else {
      reasons.back().append("\n").append(line);
    }
  }
  return reasons;
}

std::string fault_of(std::string_view reason) {
  const std::size_t line = reason.find("\n  ");
  if (line != std::string_view::npos) {
    reason = reason.substr(line, reason.find('\n', line + 1) - line);
  } else if (const std::size_t colon = reason.find(": "); colon != std::string_view::npos) {
    reason.remove_prefix(colon);  // the schedule and its form
  }
  std::string fault(reason);
  std::erase_if(fault, [](char c) { return c >= '0' && c <= '9'; });
  return fault;
}

std::vector<CommonFault> common_faults(std::vector<Refutation> refutations) {
  std::ranges::sort(refutations, {},
                    [](const Refutation& one) { return std::tie(one.ranks, one.subject, one.reason); });
  std::vector<CommonFault> common;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (Refutation& one : refutations) {
    const auto [at, is_new] = known.try_emplace({one.subject, fault_of(one.reason)}, common.size());
    if (is_new) {
      const int ranks = one.ranks;
      common.push_back({.smallest = std::move(one), .most_ranks = ranks});
    } else {
      ++common[at->second].others;
      common[at->second].most_ranks = one.ranks;
    }
  }
  return common;
}

}  // namespace tutti
