// SPDX-License-Identifier: Apache-2.0
// The program `tutti`: one subcommand per file.
#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "harness/process/starter.h"
#include "harness/process/thread_stacks.h"
#include "harness/text/streams.h"
#include "impl/bootstrap/rendezvous.h"
#include "impl/types/names.h"
#include "src/help.h"
#include "src/program.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

/// A command that starts its ranks itself and that a starter starts once per rank would run as many times at once, each
/// in the others' way. A command that is started once is alone, as from a shell, with the cores that a shell has,
/// and ends with its starter. The exit code, 0 where it may go on.
int refuse_job(const CLI::App& program) {
  bool starts_ranks = false;
  for (const char* command : {"run", "check", "explain", "train", "gate", "accept", "guidelines", "tune"})
    starts_ranks |= program.got_subcommand(command);
  if (!starts_ranks) return exit_ok;
  const auto world = world_from_environment();
  const bool accepts_hosts =
      program.got_subcommand("accept") && program.get_subcommand("accept")->count("--pretend") == 0;
  const bool joins = program.got_subcommand("run") || program.got_subcommand("check") || accepts_hosts;
  if (joins && (!world.is_ok() || world.value().processes > 1)) return exit_ok;  // it then sees for itself
  if (!world.is_ok()) return complain(world.status());                           // of how many it is one is not known
  if (world.value().processes == 1) {
    if (world.value().started_by.empty()) return exit_ok;
    harness::leave_binding();  // before there is a thread
    harness::end_with_starter();
    harness::leave_job();
    return exit_ok;
  }
  return complain_here(error(
      Code::invalid_argument,
      "this command joins no job, as `tutti run` and `tutti check` do, and {} has started {} of it: start it once "
      "and by itself, its ranks it starts itself (--ranks {})",
      world.value().started_by, world.value().processes, world.value().processes));
}

/// What was printed must have arrived. A reader that is slow is waited for, but not by a user who wants an end.
int conclude(int code) {
  constexpr std::chrono::seconds kAfterAnInterrupt{2};
  const bool is_interrupted = code == exit_interrupted;
  const Status arrived = harness::flush_output(
      is_interrupted ? std::optional<std::chrono::milliseconds>(kAfterAnInterrupt) : std::nullopt);
  return arrived.is_ok() || code != exit_ok ? code : complain(arrived);
}

/// Whether it is `tutti accept --nagios`. For a plugin of Nagios 2 is CRITICAL, and wrong options are UNKNOWN, 3.
bool is_nagios_plugin(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  const auto is = [](const char* word, std::string_view wanted) { return std::string_view(word) == wanted; };
  return argc > 1 && is(words[1], "accept") &&
         std::ranges::any_of(words, [&](const char* word) { return is(word, "--nagios"); });
}

}  // namespace
}  // namespace tutti::program

int main(int argc, char** argv) {
  using namespace tutti::program;
  tutti::harness::prepare_streams();
  if (const tutti::Status room = tutti::harness::ensure_stacks(); !room.is_ok()) return complain(room);
  set_command_line(argc, argv);
  CLI::App program("tutti: are this machine's collectives right, and how fast are they?", "tutti");
  set_help(program);
  Action action;
  add_run(program, action);
  add_check(program, action);
  add_prove(program, action);
  add_explain(program, action);
  add_draw(program, action);
  add_simulate(program, action);
  add_export(program, action);
  add_train(program, action);
  add_gate(program, action);
  add_accept(program, action);
  add_guidelines(program, action);
  add_tune(program, action);
  add_compare(program, action);
  add_report(program, action);
  add_list(program, action);
  add_doctor(program, action);
  add_rank(program, action);
  add_host(program, action);
  add_generate(program, action);
  add_probe(program, action);
  program.set_version_flag("--version", version_text(), "version, commit, and what was built in");
  program.require_subcommand(1);
  try {
    program.parse(argc, argv);
    const int refused = refuse_job(program);
    return conclude(refused == exit_ok ? action() : refused);
  } catch (const CLI::Success& success) {  // --help, --version
    const tutti::Status unknown = unknown_subcommand(program, argc, argv);
    return unknown.is_ok() ? conclude(program.exit(success)) : complain_here(unknown);
  } catch (const CLI::ParseError& failure) {
    const int code = complain_here(usage_error(program, failure, argc, argv));
    if (!is_nagios_plugin(argc, argv)) return code;
    tutti::harness::print("{}", kNagiosUnknown);
    return conclude(exit_environment);
  } catch (const std::system_error& failure) {  // fmt's, of a stream that cannot be written
    return complain(tutti::harness::cannot_print(failure.what()));
  } catch (const std::bad_alloc&) {
    return complain(tutti::error(tutti::Code::resource, "out of memory"));
  }
}
