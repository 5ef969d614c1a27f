// SPDX-License-Identifier: Apache-2.0
// `tutti rank`: what the launcher starts, once per rank or once for all ranks of a process. Hidden: people never call
// it.
#include <cstdlib>

#include "harness/launch/rank_link.h"
#include "harness/process/starter.h"
#include "harness/session/session.h"
#include "impl/bootstrap/rendezvous.h"
#include "impl/types/names.h"
#include "src/join.h"
#include "src/program.h"

namespace tutti::program {
namespace {

/// A process that a starter has started has its own TUTTI_TABLE, and the launcher's holds. Errors: unavailable, if they
/// are two tables.
Status check_table(const harness::SessionSpec& spec, int rank) {
  const char* const own = std::getenv(kTableOfProcess);
  const std::string told = harness::table_of(spec.conditions).id();
  if (own == nullptr || told == own) return {};
  return error(Code::unavailable,
               "rank {} has the selection table {}, and rank 0 has {}: give all ranks the same, by --table or {}", rank,
               shown(own), told, harness::kTableVariable);
}

int run_rank() {
  auto link = harness::RankLink::connect();
  if (!link.is_ok() && link.status().code() == Code::aborted && harness::RankLink::has_come_by_itself()) {
    let_the_first_speak();  // the launcher has said why, and its exit code is the job's
    return exit_crash;
  }
  if (!link.is_ok()) return complain(link.status());
  harness::RankLink& connection = link.value();
  auto spec = harness::session_in_payload(connection.payload());
  Status status = spec.status();
  const harness::AcrossPlace* const across = connection.across();
  if (status.is_ok() && across != nullptr) {  // a budget ends by the launcher's clock
    auto* const task = std::get_if<harness::MeasureTask>(&spec.value().task);
    if (task != nullptr && task->end_ns != 0) task->end_ns += across->lead_ns;
  }
  if (status.is_ok()) status = check_table(spec.value(), connection.rank());
  if (status.is_ok()) {
    status = harness::run_session(spec.value(), {.board = connection.board(),
                                                 .rank = connection.rank(),
                                                 .at = connection.place(),
                                                 .keeps_cores = harness::is_bound_by_starter(),
                                                 .domain_fd = connection.domain_fd(),
                                                 .across = across,
                                                 .exchange_listener = connection.listeners().exchange.get(),
                                                 .domain_listener = connection.listeners().domain.get(),
                                                 .send = [&](std::string_view type, std::string_view text) {
                                                   return connection.send(type, text);
                                                 }});
  }
  const Status last_word = status.is_ok() ? connection.finish() : connection.fail(status);
  // A rank that only heard of a failure leaves the word to the process of its host, which may be gone by then.
  const bool is_told = last_word.is_ok() || status.code() == Code::aborted;
  const bool says_launcher = harness::RankLink::has_come_by_itself() && is_told;
  if (!status.is_ok()) return says_launcher ? exit_code_of(status) : complain(status);
  return last_word.is_ok() ? exit_ok : complain(last_word);
}

}  // namespace

void add_rank(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("rank", "one rank of a job; started by tutti itself");
  command->group("");
  command->callback([&action] { action = run_rank; });
}

}  // namespace tutti::program
