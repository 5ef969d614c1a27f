// SPDX-License-Identifier: Apache-2.0
// `tutti draw`: a schedule as a picture, in the terminal or as SVG; and a gallery of all of them. A name that ends with
// .xml is a file of MSCCL XML.
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/counts.h"
#include "harness/draw/gallery.h"
#include "harness/draw/story.h"
#include "harness/exchange/import.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/one_algorithm.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using harness::draw::DrawnSchedule;

constexpr int kMostRanks = 100'000;  ///< that a generator is made for

/// Options that say which schedule a collective's name stands for.
constexpr std::array kOfSchedule{"--algorithm", "--ranks", "--root", "--hosts", "--ranks-per-cache", "--counts"};

struct DrawRequest {
  std::string collective;
  std::string algorithm = "auto";
  std::string ranks = "5";
  std::string root = "0";
  std::string hosts = "1";
  std::string per_cache = "";
  std::string counts = "equal";
  std::string svg;
};

/// Adds how long the blocks are, and says so in a sentence. Units stay the same whatever their lengths are.
Status add_counts(const DrawRequest& request, DrawnSchedule& drawing) {
  const Problem& problem = drawing.problem;
  TUTTI_ASSIGN_OR_RETURN(const harness::Counts counts, of_flag("--counts", harness::parse_counts(request.counts)));
  if (!has_counts(problem.collective) || counts.pattern == harness::Pattern::equal) return {};
  if (!fits(counts, problem)) return error(Code::invalid_argument, "--counts: {}", misfit(counts, problem));
  if (problem.ranks > harness::draw::kMostDrawn) {
    drawing.note = fmt::format("Blocks: {}; counted are blocks, however long.", counts.name);
    return {};
  }
  const Count shared = 100 * problem.ranks;
  const harness::CellBlocks& blocks = drawing.blocks.emplace(problem, counts, shared);
  const bool is_matrix = divides_both(problem.collective);
  std::vector<Count> lengths;
  for (int block = 0; block < problem.ranks; ++block)
    lengths.push_back(is_matrix ? blocks.input(0, block).count : blocks.own_count(block));
  drawing.note = fmt::format("{} {} elements ({}).", is_matrix ? "Rank 0 sends blocks of" : "Blocks of",
                             fmt::join(lengths, ", "), counts.name);
  return {};
}

Result<Problem> problem_of(const DrawRequest& request, const CLI::App& command) {
  TUTTI_ASSIGN_OR_RETURN(const Collective collective, parse_collective(request.collective));
  const int least = has_window(collective) ? 2 : 1;
  TUTTI_ASSIGN_OR_RETURN(const int ranks,
                         of_flag("--ranks", parse_number(request.ranks, "a number of ranks", least, kMostRanks)));
  TUTTI_ASSIGN_OR_RETURN(const int root, of_flag("--root", parse_number(request.root, "a rank", 0, ranks - 1)));
  TUTTI_ASSIGN_OR_RETURN(const int hosts,
                         of_flag("--hosts", parse_number(request.hosts, "a number of hosts", 1, ranks)));
  for (const auto& [flag, applies] :
       {std::pair("--root", is_rooted(collective)), {"--counts", has_counts(collective)}}) {
    if (applies || command.count(flag) == 0) continue;
    return error(Code::invalid_argument, "{0}: {1} has no {2}; leave {0} out", flag, to_string(collective),
                 std::string_view(flag).substr(2));
  }
  if (ranks % hosts != 0) {
    int nearest = hosts;
    while (ranks % nearest != 0) --nearest;
    return error(Code::invalid_argument,
                 "--hosts: '{}' hosts cannot share {} ranks equally: allowed are divisors of {}: did you mean '{}'?",
                 hosts, ranks, ranks, nearest);
  }
  Problem problem{.collective = collective, .ranks = ranks, .root = root};
  if (hosts > 1) problem.ranks_per_host = ranks / hosts;
  if (!request.per_cache.empty()) {
    TUTTI_ASSIGN_OR_RETURN(
        problem.ranks_per_cache,
        of_flag("--ranks-per-cache", parse_number(request.per_cache, "a number of ranks", 1, ranks)));
    if (hosts > 1) {
      return error(Code::invalid_argument,
                   "--ranks-per-cache: has no meaning with --hosts {}: caches are those of one host; leave one of the "
                   "two out",
                   hosts);
    }
  }
  constexpr int kFewMessages = 3;
  if (has_window(collective)) problem.pairing.window = kFewMessages;
  return problem;
}

Result<DrawnSchedule> drawing_of(const DrawRequest& request, const CLI::App& command) {
  TUTTI_ASSIGN_OR_RETURN(const Problem problem, problem_of(request, command));
  const Algorithm* algorithm = nullptr;
  if (request.algorithm == "auto") {
    algorithm = &usual_algorithm(problem);
  } else {
    TUTTI_ASSIGN_OR_RETURN(algorithm, of_flag("--algorithm", find_algorithm(problem.collective, request.algorithm)));
  }
  DrawnSchedule drawing{.algorithm = *algorithm, .problem = problem};
  TUTTI_RETURN_IF_ERROR(add_counts(request, drawing));
  return drawing;
}

/// The folder of a file, made if it is not there.
Status make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (!failure) return {};
  return error(Code::invalid_argument, "--svg: cannot make the directory '{}': {}", folder.string(), failure.message());
}

int draw_all(const DrawRequest& request, const CLI::App& command) {
  for (const char* flag : kOfSchedule) {
    if (command.count(flag) == 0) continue;
    return complain(error(Code::invalid_argument,
                          "{0}: `all` draws every algorithm on its own number of ranks; leave "
                          "{0} out, or name a collective",
                          flag));
  }
  if (request.svg.empty() || request.svg == "-") {
    return complain(
        error(Code::invalid_argument, "`tutti draw all` needs --svg DIR, the directory that gets the pictures"));
  }
  const auto gallery = harness::draw::gallery();
  if (!gallery.is_ok()) return complain(gallery.status());
  const std::filesystem::path folder(request.svg);
  for (const auto& one : gallery.value()) {
    const std::filesystem::path path = folder / one.path;
    if (const Status made = make_folder(path.parent_path()); !made.is_ok()) return complain(made);
    if (const Status written = harness::replace_file(path.string(), one.svg); !written.is_ok())
      return complain(written);
  }
  const std::string page = (folder / "index.html").string();
  const Status written = harness::replace_file(page, gallery_page(gallery.value()));
  if (!written.is_ok()) return complain(written);
  harness::print("# draw: {} pictures; {} shows them\n", gallery.value().size(), page);
  return exit_ok;
}

/// The picture of an algorithm of a file.
Result<std::string> picture_of_file(const DrawRequest& request, const CLI::App& command) {
  for (const char* flag : kOfSchedule) {
    if (command.count(flag) == 0) continue;
    return error(Code::invalid_argument, "{0}: a file says it itself; leave {0} out", flag);
  }
  TUTTI_ASSIGN_OR_RETURN(const auto imported, harness::exchange::import_file(request.collective));
  const Problem& problem = imported.schedule.problem;
  std::string title = fmt::format("{} '{}' on {} ranks", to_string(problem.collective), imported.name, problem.ranks);
  if (is_rooted(problem.collective)) title += fmt::format(", root {}", problem.root);
  const std::string idea = fmt::format("From {}.", shown(request.collective));
  return request.svg.empty() ? harness::draw::schedule_text(imported.schedule, title, idea)
                             : harness::draw::schedule_svg(imported.schedule, title, idea);
}

Result<std::string> picture_of(const DrawRequest& request, const CLI::App& command) {
  if (request.collective.ends_with(".xml")) return picture_of_file(request, command);
  TUTTI_ASSIGN_OR_RETURN(const DrawnSchedule drawing, drawing_of(request, command));
  return request.svg.empty() ? drawn_text(drawing) : drawn_svg(drawing);
}

int draw(const DrawRequest& request, const CLI::App& command) {
  if (request.collective == "all") return draw_all(request, command);
  const bool is_svg = !request.svg.empty();
  const auto picture = picture_of(request, command);
  if (!picture.is_ok()) return complain(picture.status());
  if (!is_svg || request.svg == "-") {
    harness::print("{}", picture.value());
    return exit_ok;
  }
  const Status written = harness::replace_file(request.svg, picture.value());
  return written.is_ok() ? exit_ok : complain(written);
}

}  // namespace

void add_draw(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("draw", "a schedule as a picture: who sends what to whom, round by round");
  command->footer("Example: tutti draw all_reduce --algorithm ring --ranks 5 --svg ring.svg");
  auto request = std::make_shared<DrawRequest>();
  command
      ->add_option("COLLECTIVE", request->collective,
                   "what is drawn; all: a gallery of every algorithm; FILE.xml: MSCCL's")
      ->type_name("")
      ->required();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    if (!value.empty()) option->default_str(value);
  };
  add("--algorithm", request->algorithm, "NAME", "an own algorithm by name, or auto");
  add("--ranks", request->ranks, "N", fmt::format("number of ranks; above {} an overview", harness::draw::kMostDrawn));
  add("--root", request->root, "RANK", "where the collective has one");
  add("--hosts", request->hosts, "N", "hosts that share the ranks equally");
  add("--ranks-per-cache", request->per_cache, "N", "consecutive ranks of one host that share a cache");
  add("--counts", request->counts, "NAME", "lengths of the blocks of a v form, as in `tutti run`");
  add("--svg", request->svg, "FILE", "write SVG; of all, the directory that gets the pictures; - is stdout");
  command->callback([&action, request, command] { action = [request, command] { return draw(*request, *command); }; });
}

}  // namespace tutti::program
