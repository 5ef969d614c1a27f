// SPDX-License-Identifier: Apache-2.0
// The program `tutti`: one subcommand per file.
#include <new>

#include <fmt/format.h>

#include "impl/types/names.h"
#include "src/program.h"
#include "src/usage.h"

int main(int argc, char** argv) {
  using namespace tutti::program;
  set_command_line(argc, argv);
  CLI::App program("tutti: are this machine's collectives right, and how fast are they?", "tutti");
  Action action;
  add_run(program, action);
  add_check(program, action);
  add_prove(program, action);
  add_explain(program, action);
  add_list(program, action);
  add_doctor(program, action);
  add_rank(program, action);
  program.set_version_flag("--version", version_text(), "version, commit, and what was built in");
  program.require_subcommand(1);
  try {
    program.parse(argc, argv);
    return action();
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& failure) {
    return complain(usage_error(program, failure, argc, argv));
  } catch (const std::bad_alloc&) {
    return complain(tutti::error(tutti::Code::resource, "out of memory"));
  }
}
