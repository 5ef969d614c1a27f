// SPDX-License-Identifier: Apache-2.0
// The command of the user's that plays the stage job of `tutti accept`, as a job of the cluster would.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/accept/acceptance.h"
#include "harness/accept/crew_around.h"
#include "harness/process/interrupts.h"

namespace tutti::program {

/// In each word {hosts} stands for the names with commas between them, {hostfile} for the path of a file with a name a
/// line, {nodes} for how many they are.
[[nodiscard]] std::vector<std::string> filled_command(std::vector<std::string> words,
                                                      const std::vector<std::string>& names,
                                                      const std::string& hostfile);

/// Plays as the crew around which it is. Commands are run here, on the machine of the launcher.
class CommandCrew final : public harness::accept::CrewAround {
 public:
  /// `end`: of the budget; a command that it cuts off is interrupted. All outlive it.
  CommandCrew(harness::accept::Crew& crew, const harness::accept::JobCommand& command,
              std::optional<std::chrono::steady_clock::time_point> end)
      : CrewAround(crew), command_(command), end_(end) {}
  [[nodiscard]] std::vector<std::vector<harness::accept::Outcome>> play(
      const std::vector<harness::accept::Group>& groups, const std::vector<harness::accept::Test>& tests) override;

 private:
  [[nodiscard]] harness::accept::Outcome run_on(const harness::accept::Group& group) const;

  const harness::accept::JobCommand& command_;
  std::optional<std::chrono::steady_clock::time_point> end_;
  harness::Interrupts interrupts_;
};

}  // namespace tutti::program
