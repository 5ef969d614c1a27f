// SPDX-License-Identifier: Apache-2.0
// `tutti host`: what a launcher has on each machine of a job on several. Hidden: an agent such as ssh starts it.
#include "harness/hosts/host_process.h"
#include "harness/session/session.h"
#include "src/doctor.h"
#include "src/program.h"
#include "src/usage.h"

namespace tutti::program {

void add_host(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("host", "the ranks of one machine; started by tutti itself");
  command->group("");
  command->callback([&action] {
    action = [] {
      const Status status = harness::run_host_process(
          {.build = build_text(), .look = harness::seen_on_host, .examiner = examiner_command()});
      return status.is_ok() ? exit_ok : complain(status);
    };
  });
}

}  // namespace tutti::program
