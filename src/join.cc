// SPDX-License-Identifier: Apache-2.0
#include "src/join.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/cases/transports.h"
#include "harness/hosts/host_process.h"
#include "harness/hosts/joined_hosts.h"
#include "harness/launch/announcement.h"
#include "harness/launch/control_name.h"
#include "harness/process/starter.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "impl/bootstrap/init.h"
#include "impl/bootstrap/rendezvous.h"
#include "impl/tcp/secret.h"
#include "impl/types/host_list.h"
#include "src/doctor.h"
#include "src/jobs.h"
#include "src/program.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

constexpr const char* kInit = "TUTTI_INIT";

/// What the ranks of a job that is started for them cannot be.
Status check_settings(const Settings& settings, const World& world) {
  const harness::Sweep& sweep = settings.sweep;
  const auto refuse = [&](const char* option, const std::string& why) {
    return error(Code::invalid_argument, "{}: {} has started {} ranks, {}", option, world.started_by, world.processes,
                 why);
  };
  if (!sweep.ranks_as->is_process) return refuse("--ranks-as", "which are processes");
  if (settings.given.contains("ranks") && sweep.ranks != std::vector{world.processes}) {
    return refuse("--ranks", fmt::format("and all of them take part: did you mean --ranks {}?", world.processes));
  }
  if (!settings.conditions.topology.hosts.empty())
    return refuse("--hosts", "where they are: leave it out, or say how many hosts, as --hosts 2");
  if (sweep.launches > 1) return refuse("--launches", "once: several are as many commands");
  if (!settings.suite.empty())
    return refuse("--suite", "once, and a suite starts them for each number: run it by itself");
  if (sweep.transports.size() > 1) return refuse("--transports", "for one transport: name one");
  return {};
}

/// Whether the job has as many hosts as --hosts says. Errors: unavailable, the same in all processes.
Status check_expected(const Settings& settings, int hosts) {
  if (settings.expected_hosts == 0 || settings.expected_hosts == hosts) return {};
  return error(Code::unavailable, "--hosts {}: the job has {}", settings.expected_hosts,
               harness::counted(hosts, "host"));
}

/// Refuses what has a meaning only if a starter has started several processes. Says so if an unknown one may have.
/// Errors: invalid_argument; unavailable if more hosts were expected.
Status check_alone(const Settings& settings, const World& world) {
  if (!world.unknown_starter.empty()) harness::to_stderr(fmt::format("# {}\n", world.unknown_starter));
  TUTTI_RETURN_IF_ERROR(check_expected(settings, 1));
  const bool has_interface = !settings.reach.interface.empty() && settings.conditions.topology.hosts.empty();
  if (!has_interface && settings.init.empty()) return {};
  return error(
      Code::invalid_argument,
      "{0}: no starter has started this process as one of several (RANK and WORLD_SIZE, mpirun, srun, torchrun): "
      "leave {0} out{1}",
      has_interface ? "--interface" : "--init", has_interface ? ", or name --hosts" : "");
}

/// Why this process cannot announce its host's control socket, or cannot learn its name.
Status at_meeting(const World& world, const std::string& name, const Status& why) {
  constexpr const char* kAnother =
      "another job needs another port, by MASTER_PORT, TUTTI_PORT or --init tcp://HOST:PORT";
  if (why.code() == Code::mismatch) {
    return error(Code::unavailable, "rank {}: {}: it holds the meeting '{}'; {}", world.process, why.message(), name,
                 kAnother);
  }
  if (why.code() != Code::unavailable) return why;
  return error(Code::unavailable,
               "rank {} of a job that meets at the same place is here already: {}, unless this rank was started twice "
               "({})",
               world.process, kAnother, why.message());
}

/// This process goes on as a rank, which finds its host's first process by what that announces at `name`.
int become_rank(const World& world, const std::string& name, const std::string& arguments,
                std::chrono::nanoseconds timeout) {
  const auto control = harness::announced_at(name, timeout);
  if (control.status().code() == Code::timeout) {
    return complain(error(Code::timeout, "rank {} did not come within {:.0f} s: {}", world.first_here(),
                          std::chrono::duration<double>(timeout).count(), control.status().message()));
  }
  if (!control.is_ok()) return complain(at_meeting(world, name, control.status()));
  ::setenv("TUTTI_CONTROL", control.value().c_str(), 1);
  ::setenv("TUTTI_RANK", std::to_string(world.process).c_str(), 1);
  ::setenv("TUTTI_ARGUMENTS", arguments.c_str(), 1);
  std::string name_of_program = "tutti", command = "rank";
  char* words[] = {name_of_program.data(), command.data(), nullptr};
  ::execv("/proc/self/exe", words);
  return complain(error(Code::unavailable, "cannot go on as rank {}: {}", world.process, std::strerror(errno)));
}

/// The world, with what --init says in place of the environment's.
Result<World> world_of(const Settings& settings) {
  if (!settings.init.empty()) ::setenv(kInit, settings.init.c_str(), 1);
  return world_from_environment();
}

/// The hosts of the job, as all of its processes learn of them.
Result<std::shared_ptr<harness::JoinedHosts>> meet(const Settings& settings, const World& world,
                                                   const std::string& arguments) {
  TUTTI_ASSIGN_OR_RETURN(const harness::HostsMeeting meeting,
                         harness::by_environment({.world = world,
                                                  .interface = settings.reach.interface,
                                                  .build = build_text(),
                                                  .arguments = arguments,
                                                  .timeout = settings.sweep.timeout}));
  TUTTI_ASSIGN_OR_RETURN(harness::JoinedHosts hosts, meet_hosts(meeting));
  return std::make_shared<harness::JoinedHosts>(std::move(hosts));
}

int complain_of_meeting(const Status& why) {
  if (why.code() != Code::mismatch) return complain_here(why);
  // Who was started otherwise than rank 0 has measured nothing wrong yet.
  return complain_once(Status(Code::unavailable, why.message()));
}

/// The first process of a host that is not the first. `announcement`: where the ranks of this host come to; null: it
/// starts them itself.
int serve_host(const harness::JoinedHosts& hosts, const harness::Announcement* announcement,
               const std::vector<std::string>& rails = {}) {
  const Status status = harness::serve_as_host_process(
      {.key = tcp::to_text(hosts.key),
       .address = hosts.launcher,
       .host = hosts.own,
       .interface = hosts.interface,
       .control = announcement == nullptr ? "" : announcement->control(),
       .control_socket = announcement == nullptr ? -1 : announcement->control_socket(),
       .rails = rails},
      {.build = build_text(), .look = harness::seen_on_host, .examiner = examiner_command()},
      [&](std::string_view what) {
        harness::to_stderr(fmt::format("tutti: rank 0 on {} {}\n", hosts.all.front().name, what));
      });
  if (status.is_ok()) return exit_ok;
  let_the_first_speak();  // it knows why, and its exit code is to be the first
  return status.code() == Code::aborted ? exit_crash : complain(status);
}

}  // namespace

Joining join_job(Settings& settings, bool only_lists) {
  const auto found = world_of(settings);
  if (!found.is_ok()) return {complain(found.status())};
  const World& world = found.value();
  if (world.processes == 1) {
    const Status alone = check_alone(settings, world);
    return alone.is_ok() ? Joining() : Joining{complain(alone)};
  }
  if (only_lists && world.process > 0) return {exit_ok};
  if (const Status fits = check_settings(settings, world); !fits.is_ok()) return {complain_here(fits)};
  settings.sweep.ranks = {world.processes};
  settings.has_ranks = true;
  if (only_lists) return {};
  harness::leave_binding();  // before there is a thread
  harness::end_with_starter();
  ::setenv(harness::kJoined, "1", 1);
  ::setenv(kTableOfProcess, harness::table_of(settings.conditions).id().c_str(), 1);
  const std::string name =
      world.spans_hosts() ? harness::control_name_of(world.meeting, world.first_here()) : world.meeting;
  std::shared_ptr<harness::Announcement> announcement;
  if (world.local_process == 0) {
    auto made = harness::Announcement::make(name, world.local_processes);
    if (!made.is_ok()) return {complain(at_meeting(world, name, made.status()))};
    announcement = std::move(made).value();
  }
  const std::string arguments = command_line();
  auto joined = std::make_shared<StartedJob>();
  joined->starter = world.started_by.substr(0, world.started_by.find(' '));
  joined->arguments = arguments;
  joined->announcement = announcement;
  int hosts = 1;
  if (world.spans_hosts()) {
    auto met = meet(settings, world, arguments);
    if (!met.is_ok()) return {complain_of_meeting(met.status())};
    joined->hosts = std::move(met).value();
    hosts = static_cast<int>(joined->hosts->all.size());
  }
  if (const Status fits = check_expected(settings, hosts); !fits.is_ok()) return {complain_once(fits)};
  if (world.local_process > 0) return {become_rank(world, name, arguments, settings.sweep.timeout)};
  if (world.process > 0) return {serve_host(*joined->hosts, announcement.get())};
  if (joined->hosts != nullptr) {
    settings.conditions.topology.hosts = joined->hosts->named();
    if (settings.sweep.transports.empty()) settings.sweep.transports = {harness::transport_between_hosts().name};
  }
  // Which references these processes can be the ranks of, their starter decides: who wants one names it.
  if (settings.sweep.backends.empty()) settings.sweep.backends = {std::string(harness::kOwnBackend)};
  settings.reach.joined = std::move(joined);
  return {};
}

Joining join_crew(Settings& settings, bool only_lists) {
  const auto found = world_of(settings);
  if (!found.is_ok()) return {complain(found.status())};
  const World& world = found.value();
  if (world.processes == 1) {
    const Status alone = check_alone(settings, world);
    return alone.is_ok() ? Joining() : Joining{complain(alone)};
  }
  if (!settings.conditions.topology.hosts.empty()) return {};
  if (only_lists && world.process > 0) return {exit_ok};
  if (!world.spans_hosts()) {
    return {complain_here(error(Code::invalid_argument,
                                "{} has started {} processes on one host, and `tutti accept` "
                                "needs one on each of several",
                                world.started_by, world.processes))};
  }
  harness::leave_binding();  // before there is a thread
  harness::end_with_starter();
  ::setenv(harness::kJoined, "1", 1);
  auto met = meet(settings, world, command_line());
  if (!met.is_ok()) return {complain_of_meeting(met.status())};
  if (world.local_process > 0) return {exit_ok};
  if (world.process > 0) return {serve_host(*met.value(), nullptr, settings.reach.rails)};
  auto joined = std::make_shared<StartedJob>();
  joined->starter = world.started_by.substr(0, world.started_by.find(' '));
  joined->arguments = command_line();
  joined->hosts = std::move(met).value();
  settings.conditions.topology.hosts = joined->hosts->named();
  settings.reach.joined = std::move(joined);
  return {};
}

}  // namespace tutti::program
