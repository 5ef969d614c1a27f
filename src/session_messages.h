// SPDX-License-Identifier: Apache-2.0
// What the ranks of a session send, by the type of the message. Each command that starts a session has a table of the
// types that it takes; the others are left alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/job.h"
#include "harness/session/session.h"

namespace tutti::program {

class SessionMessages : public harness::Listener {
 public:
  struct MessageType {
    std::string_view name;
    std::function<void(std::string_view text)> take;
  };

  void on_message(int rank, std::string_view type, std::string_view text) final;
  [[nodiscard]] std::string case_name(std::uint32_t index) const override;
  [[nodiscard]] std::vector<harness::RankStanding> standings(int domain_fd) const final;
  /// The last operations of each rank when a job on this host was found to hang; empty if it was not.
  [[nodiscard]] const harness::CallsOfRanks& last_calls() const { return last_calls_; }

  /// The first failure to read a message, or to hand it on.
  [[nodiscard]] const Status& failure() const { return failure_; }

 protected:
  /// `spec` outlives it.
  SessionMessages(const harness::SessionSpec& spec, std::vector<MessageType> table)
      : spec_(spec), table_(std::move(table)) {}

  void note(const Status& status) {
    if (!status.is_ok() && failure_.is_ok()) failure_ = status;
  }
  /// The number of the cell that a message "begin" names, if the session has it.
  [[nodiscard]] std::optional<std::size_t> cell_begun(std::string_view text) const;

  const harness::SessionSpec& spec_;

 private:
  std::vector<MessageType> table_;
  mutable harness::CallsOfRanks last_calls_;  ///< kept whenever standings are asked for
  Status failure_;
};

}  // namespace tutti::program
