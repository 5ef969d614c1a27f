// SPDX-License-Identifier: Apache-2.0
// The options that are lists of names. Which names there are is said by the tables of impl; nothing is listed twice.
#include "harness/cases/sweep.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "harness/cases/backend_name.h"
#include "harness/cases/compositions.h"
#include "harness/cases/kinds.h"
#include "harness/cases/lists.h"
#include "harness/cases/settings.h"
#include "impl/algorithms/algorithm.h"
#include "impl/schedule/tuning.h"

namespace tutti::harness::cases {
namespace {

/// A list of what `parse` reads. An item `all` makes it every value of `everything`, in that order, and after them
/// those that are named beside it: `all,pingpong`.
template <class T>
Result<Choice<T>> parse_names(std::string_view kind, std::string_view text, const std::vector<T>& everything,
                              const std::function<Result<T>(std::string_view)>& parse) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list(kind, text));
  Choice<T> choice;
  for (const std::string_view item : items) {
    if (item == kAll) {
      choice.is_all = true;
      continue;
    }
    TUTTI_ASSIGN_OR_RETURN(T value, parse(item));
    append_new(choice.values, std::move(value));
  }
  if (choice.is_all) {
    const std::vector<T> named = std::exchange(choice.values, everything);
    for (const T& value : named) append_new(choice.values, value);
  }
  return choice;
}

template <class T>
Result<std::vector<T>> values_of(Result<Choice<T>> choice) {
  if (!choice.is_ok()) return choice.status();
  return std::move(choice.value().values);
}

/// `unknown`: what to say of a name that is not among `names`.
Result<std::string> one_of(std::string_view name, const std::vector<std::string>& names, Status unknown) {
  const auto same = std::ranges::find_if(names, [&](const std::string& one) { return is_same_name(name, one); });
  return same != names.end() ? Result(*same) : std::move(unknown);
}

}  // namespace

Result<std::vector<Collective>> parse_collectives(std::string_view text) {
  const auto all = all_collectives();
  return values_of(parse_names<Collective>("collectives", text, std::vector(all.begin(), all.end()), parse_collective));
}

Result<Choice<Dtype>> parse_dtypes(std::string_view text) {
  return parse_names<Dtype>("dtypes", text, all_dtypes(), parse_dtype);
}

Result<Choice<Op>> parse_ops(std::string_view text) { return parse_names<Op>("ops", text, all_ops(), parse_op); }

Result<std::vector<Placement>> parse_placements(std::string_view text) {
  return values_of(parse_names<Placement>("placements", text, {Placement::out, Placement::in}, parse_placement));
}

Result<std::vector<Buffers>> parse_buffer_kinds(std::string_view text) {
  return values_of(parse_names<Buffers>("buffers", text, {Buffers::private_, Buffers::shared}, parse_buffers));
}

Result<std::vector<Counts>> parse_counts_list(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string_view> items, split_list("counts", text));
  std::error_code ignored;
  if (items.size() > 1 && std::filesystem::is_regular_file(text, ignored)) items = {text};  // has a comma in its name
  std::vector<Counts> list;
  for (const std::string_view item : items) {
    TUTTI_ASSIGN_OR_RETURN(Counts counts, parse_counts(item));
    append_new(list, std::move(counts));
  }
  return list;
}

Result<std::vector<std::string>> parse_algorithms(std::string_view text, std::span<const Collective> collectives) {
  const std::vector<std::string> wildcards{std::string(kAuto), std::string(kAll)};
  std::vector<std::string> names = wildcards;
  for (const Algorithm* algorithm : all_algorithms()) append_new(names, std::string(algorithm->name));
  std::vector<std::string> listed = collectives.empty() ? names : wildcards;
  for (const Collective collective : collectives) {
    for (const Algorithm* algorithm : algorithms_of(collective)) append_new(listed, std::string(algorithm->name));
  }
  // `auto` and `all` have no tuning behind them.
  const auto named = [&](std::string_view name) -> Result<std::string> {
    const std::string_view plain = without_tuning(name);
    TUTTI_ASSIGN_OR_RETURN(const std::string known, one_of(plain, names, unknown_name("algorithm", plain, listed)));
    TUTTI_ASSIGN_OR_RETURN(const Tuning tuning, tuning_from(tuning_behind(name)));
    if (tuning != Tuning() && (known == kAuto || known == kAll)) {
      return error(Code::invalid_argument, "'{}' is chosen with its tuning: did you mean '{}'?", shown(name), known);
    }
    return known + to_text(tuning);
  };
  TUTTI_ASSIGN_OR_RETURN(Choice<std::string> choice,
                         parse_names<std::string>("algorithms", text, {std::string(kAll)}, named));
  if (choice.is_all) choice.values = {std::string(kAll)};  // `all` leaves no others to name
  return std::move(choice.values);
}

Result<std::vector<std::string>> parse_transports(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("transports", text));
  std::vector<std::string> names;
  for (const std::string_view name : items) append_new(names, std::string(name));
  return names;
}

std::vector<std::string> transports_of(const Sweep& sweep) {
  return sweep.transports.empty() ? std::vector{usual_transport(sweep.ranks_as)} : sweep.transports;
}

namespace {

/// What follows the colon is nothing that a backend has.
Status unknown_composition(std::string_view system) {
  std::vector<std::string> names;
  for (const Composition& one : kCompositions) append_new(names, std::string(one.name));
  const std::string_view name = system.substr(instance_of(system).size() + 1);
  return error(Code::invalid_argument, "'{}': '{}' is no composition{}: must be one of {}", shown(system), shown(name),
               suggestion(name, names), fmt::join(names, ", "));
}

/// An item of --backends, as ids have it.
Result<std::string> parse_system(std::string_view item, const std::vector<std::string>& known) {
  const std::string_view bare = backend_of(item), instance = instance_of(item);
  TUTTI_ASSIGN_OR_RETURN(std::string system, one_of(bare, known, unknown_backend(bare, known)));
  const std::string_view settings = instance.substr(bare.size());
  if (!settings.empty()) {
    if (settings.front() != '{' || settings.back() != '}') {
      return error(Code::invalid_argument, "'{}': settings stand in braces at its end, such as '{}{{NAME=VALUE}}'",
                   shown(item), system);
    }
    auto parsed = parse_settings(settings.substr(1, settings.size() - 2));
    if (!parsed.is_ok()) return error(parsed.status().code(), "'{}': {}", shown(item), parsed.status().message());
    system += settings_text(std::move(parsed).value());
  }
  system += item.substr(instance.size());
  if (is_system(system)) return system;
  return unknown_composition(system);
}

}  // namespace

Result<std::vector<std::string>> parse_backends(std::string_view text, const std::vector<std::string>& known) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> items, split_systems(text));
  std::vector<std::string> named, systems;
  for (const std::string& item : items) {
    if (item == kAll) {
      systems = known;
      continue;
    }
    TUTTI_ASSIGN_OR_RETURN(named.emplace_back(), parse_system(item, known));
  }
  for (const std::string& system : named) append_new(systems, system);
  for (const std::string& system : std::vector(systems)) {
    const auto times = std::ranges::count(named, system);
    if (times > 2) {
      return error(Code::invalid_argument,
                   "backends '{}': '{}' is there {} times: once, or twice to hold it against itself", shown(text),
                   system, times);
    }
    if (times == 2 && instance_of(system) == system) append_new(systems, system + std::string(kTwin));
  }
  return systems;
}

}  // namespace tutti::harness::cases
