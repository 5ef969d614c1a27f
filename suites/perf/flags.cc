// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <getopt.h>
#include <limits>

#include <fmt/ranges.h>

#include "harness/text/file.h"
#include "impl/communicator/blocks.h"
#include "impl/types/names.h"

namespace tutti::perf {
namespace {

constexpr int kMostThreads = 1024;

struct Value {
  Settings& settings;
  std::string text;
};

struct Flag {
  char letter;  ///< 0: a long name only
  const char* name;
  const char* value;  ///< nullptr: takes none
  const char* help;
  Status (*apply)(Value);
};

Result<int> number(const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc() && stop == end && value >= least && value <= most) return value;
  if (most == std::numeric_limits<int>::max()) {
    return error(Code::invalid_argument, "'{}' must be a whole number from {}", shown(text), least);
  }
  return error(Code::invalid_argument, "'{}' must be a whole number from {} to {}", shown(text), least, most);
}

template <int least, int most, auto member>
Status set_number(Value value) {
  TUTTI_ASSIGN_OR_RETURN(const int parsed, number(value.text, least, most));
  value.settings.*member = static_cast<std::remove_reference_t<decltype(value.settings.*member)>>(parsed);
  return {};
}
constexpr int kAny = std::numeric_limits<int>::max();

/// `8`, `1.5K`, `32M`, `2g`: a number and K, M or G.
Result<std::int64_t> size(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  const std::string suffix(stop, end);
  if (failure != std::errc() || value < 0 || !std::isfinite(value)) {
    return error(Code::invalid_argument, "'{}' is not a size: a number and K, M or G, such as 8, 1.5K or 32M",
                 shown(text));
  }
  constexpr std::string_view kSuffixes = "KMG";
  const std::size_t power = suffix.size() == 1 ? kSuffixes.find(static_cast<char>(std::toupper(suffix[0]))) : 0;
  if (suffix == "T" || suffix == "t") {
    return error(Code::invalid_argument, "'{}': the suffixes are K, M and G: did you mean '{:g}G'?", shown(text),
                 value * 1024);
  }
  if (suffix.size() > 1 || (suffix.size() == 1 && power == kSuffixes.npos)) {
    return error(Code::invalid_argument, "'{}': the suffix '{}' is none of K, M and G", shown(text), shown(suffix));
  }
  for (std::size_t i = 0; suffix.size() == 1 && i <= power; ++i) value *= 1024;
  constexpr double kMost = 1LL << 60;
  if (value > kMost) return error(Code::invalid_argument, "'{}' is more than any memory has", shown(text));
  return static_cast<std::int64_t>(value);
}

template <std::int64_t Settings::*member>
Status set_size(Value value) {
  TUTTI_ASSIGN_OR_RETURN(value.settings.*member, size(value.text));
  return {};
}

Status set_factor(Value value) {
  double factor = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, failure] = std::from_chars(value.text.data(), end, factor);
  if (failure == std::errc() && stop == end && factor > 1 && factor != std::floor(factor) && factor < 1e6) {
    return error(Code::invalid_argument, "'{}' must be a whole number: did you mean '{}'?", shown(value.text),
                 static_cast<int>(std::ceil(factor)));
  }
  return set_number<1, kAny, &Settings::factor>(value);
}

/// In the order in which nccl-tests runs them.
constexpr std::array kOps{Op::sum, Op::prod, Op::max, Op::min, Op::avg, Op::premul_sum};

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const Op op : kOps) names.emplace_back(op_name(op));
  return names;
}

Status set_ops(Value value) {
  value.settings.ops.clear();
  for (const Op op : kOps) {
    if (value.text == "all" || value.text == op_name(op)) value.settings.ops.push_back(op);
  }
  if (!value.settings.ops.empty()) return {};
  std::vector<std::string> names = op_names();
  names.emplace_back("all");
  return unknown_name("op", value.text, names);
}

Status set_dtypes(Value value) {
  value.settings.dtypes.clear();
  std::vector<std::string> names;
  for (const Dtype dtype : all_dtypes()) {
    names.emplace_back(to_string(dtype));
    if (value.text == "all" || value.text == to_string(dtype)) value.settings.dtypes.push_back(dtype);
  }
  names.emplace_back("all");
  return value.settings.dtypes.empty() ? unknown_name("datatype", value.text, names) : Status();
}

Status set_root(Value value) {
  if (value.text == "all") value.text = "-1";
  return set_number<-1, kAny, &Settings::root>(value);
}

Status set_timeout(Value value) {
  TUTTI_ASSIGN_OR_RETURN(const int seconds, number(value.text, 0, 1000000));
  if (seconds > 0) value.settings.timeout_s = seconds;
  return {};
}

Status set_compatible_json(Value value) {
  if (!value.text.ends_with(".json")) {
    return error(Code::invalid_argument, "'{}' does not end with .json: did you mean '{}.json'?", shown(value.text),
                 shown(value.text));
  }
  value.settings.compatible_json = value.text;
  return {};
}

template <std::string Settings::*member>
Status set_file(Value value) {
  if (value.text.empty()) return error(Code::invalid_argument, "the name of the file is empty");
  value.settings.*member = value.text;
  return {};
}

/// A flag of GPUs: its value must be a number. What it means is known once the backend is (gpu.h).
template <char letter>
Status set_of_gpus(Value value) {
  TUTTI_ASSIGN_OR_RETURN(const int parsed, number(value.text, -1, kAny));
  if (parsed != 0) value.settings.of_gpus.emplace_back(letter, parsed);
  return {};
}

/// A policy of NCCL 2.27 and later, or with -Z the file of rccl-tests: which, is known after the last flag.
Status set_policy_or_file(Value value) {
  if (value.text.empty()) return error(Code::invalid_argument, "the value is empty");
  value.settings.policy_or_file = value.text;
  return {};
}

/// Stores a value that is one of `names`. Errors: invalid_argument.
Status set_name(Value value, const char* kind, const std::vector<std::string>& names, std::string& setting) {
  if (std::ranges::find(names, value.text) == names.end()) return unknown_name(kind, value.text, names);
  setting = value.text;
  return {};
}

Status set_rccl_format(Value value) { return set_name(value, "format", {"csv", "json"}, value.settings.rccl_format); }

/// What -x is. Errors: invalid_argument.
Status settle_x(Settings& settings) {
  const std::string& text = settings.policy_or_file;
  if (!settings.rccl_format.empty()) {
    if (!text.empty()) return {};
    return error(Code::invalid_argument, "-Z {0} needs a file: -Z {0} -x FILE", settings.rccl_format);
  }
  if (text.empty()) return {};
  const auto policy = number(text, -1, kAny);
  if (!policy.is_ok()) {
    return error(Code::invalid_argument, "-x: {}; with -Z json or -Z csv it is a file, as rccl-tests has it",
                 policy.status().message());
  }
  if (policy.value() != 0) settings.of_gpus.emplace_back('x', policy.value());
  return {};
}

Status set_backend(Value value) { return set_name(value, "backend", {"tutti", "nccl"}, value.settings.backend); }

Status set_device(Value value) {
  TUTTI_ASSIGN_OR_RETURN(value.settings.device, harness::parse_runs_on(value.text));
  return {};
}

Status set_help(Value value) {
  value.settings.wants_help = true;
  return {};
}
Status set_version(Value value) {
  value.settings.wants_version = true;
  return {};
}

constexpr std::array kFlags{
    Flag{'t', "nthreads", "N", "threads per process (1)", set_number<1, kMostThreads, &Settings::threads>},
    Flag{'g', "ngpus", "N", "ranks per thread (1); each rank is a thread",
         set_number<1, kMostThreads, &Settings::devices>},
    Flag{'b', "minbytes", "SIZE", "first size (32M); K, M and G are binary", set_size<&Settings::min_bytes>},
    Flag{'e', "maxbytes", "SIZE", "last size (32M)", set_size<&Settings::max_bytes>},
    Flag{'i', "stepbytes", "SIZE", "from size to size (1M)", set_size<&Settings::step_bytes>},
    Flag{'f', "stepfactor", "N", "from size to size, instead of -i: 2, 4, ...", set_factor},
    Flag{'n', "iters", "N", "operations in the timed loop (20)", set_number<1, kAny, &Settings::iterations>},
    Flag{'m', "agg_iters", "N", "times -n: operations of a group, one after the other (1)",
         set_number<1, kAny, &Settings::aggregated>},
    Flag{'w', "warmup_iters", "N", "untimed operations of each doubling from -b to -e, before all (1)",
         set_number<0, kAny, &Settings::warm_up>},
    Flag{'N', "run_cycles", "N", "sweeps; 0: for ever (1)", set_number<0, kAny, &Settings::cycles>},
    Flag{'p', "parallel_init", "0/1", "no meaning here", set_of_gpus<'p'>},
    Flag{'c', "check", "N", "rounds of checking; 0: none (1)", set_number<0, kAny, &Settings::checks>},
    Flag{'o', "op", "OP", "reduction, or all (sum)", set_ops},
    Flag{'d', "datatype", "TYPE", "element type, or all (float)", set_dtypes},
    Flag{'r', "root", "N", "root; -1 or all: every rank (0)", set_root},
    Flag{
        'z', "blocking", "0..3",
        "0, 2: each rank goes on when its operation has ended; 1, 3: all wait for each other, within, outside the time",
        set_number<0, 3, &Settings::blocking>},
    Flag{'y', "stream_null", "0/1", "no meaning here", set_of_gpus<'y'>},
    Flag{'T', "timeout", "SECONDS", "deadline of the meeting and of each operation; 0: 60 (60)", set_timeout},
    Flag{'G', "cudagraph", "N", "with nccl or --device: captures the loop into a graph, and times N launches of it (0)",
         set_of_gpus<'G'>},
    Flag{'C', "report_cputime", "0/1", "show rank 0's own time: on CPU ranks the call is the work",
         set_number<0, 1, &Settings::reports_cputime>},
    Flag{'a', "average", "0..3", "time of rank 0, or over ranks the mean, min, max (1)",
         set_number<0, 3, &Settings::average>},
    Flag{'R', "local_register", "0..2", "with nccl: 1 registers the buffers, 2 makes them symmetric windows",
         set_of_gpus<'R'>},
    Flag{'x', "cta_policy", "0..2", "with nccl: the default, efficiency, or zero CTAs; with -Z a FILE",
         set_policy_or_file},
    Flag{'Z', "output_format", "json|csv", "rccl-tests' results, written to the file that -x names", set_rccl_format},
    Flag{'D', "device_implementation", "N", "refused with nccl and --device, left aside on CPU ranks",
         set_of_gpus<'D'>},
    Flag{'V', "device_cta_count", "N", "refused with nccl and --device, left aside on CPU ranks", set_of_gpus<'V'>},
    Flag{'S', "report_timestamps", "0/1", "local time at the end of each row",
         set_number<0, 1, &Settings::reports_timestamps>},
    Flag{'J', "output_file", "X.json", "nccl-tests' JSON; an existing file is kept, .0, .1 ... is appended",
         set_compatible_json},
    Flag{'M', "memory", "0/1", "a line on memory at the end", set_number<0, 1, &Settings::reports_memory>},
    Flag{'u', "unalign", "N", "elements by which buffers start after a cache line (0)",
         set_number<0, 511, &Settings::unaligned>},
    Flag{'I', "per_iter_timing", "0/1", "min, max, p99 and variation of single operations",
         set_number<0, 1, &Settings::times_each>},
    Flag{'K', "per_iter_skip", "N", "operations left out of -I (0)", set_number<0, kAny, &Settings::skipped>},
    Flag{0, "backend", "NAME", "nccl or tutti (nccl where there are a GPU and NCCL, else tutti on CPU ranks)",
         set_backend},
    Flag{0, "device", "NAME",
         "tutti's ranks are thread blocks: of gpu, or of host, threads of this process that run the same text",
         set_device},
    Flag{0, "ranks-per-gpu", "N", "ranks that share a GPU: with --device, and of NCCL from 2.30 on (1)",
         set_number<1, kMostThreads, &Settings::ranks_per_gpu>},
    Flag{0, "lanes", "N", "with --device: thread blocks of a rank, which share its segments out: 1 to 64",
         set_number<1, kMostLanes, &Settings::lanes>},
    Flag{0, "csv", "FILE", "tutti's rows, with statistics of single operations", set_file<&Settings::csv>},
    Flag{0, "json", "FILE", "the same as a record, with the machine", set_file<&Settings::json>},
    Flag{'h', "help", nullptr, "this text", set_help},
    Flag{0, "version", nullptr, "version and commit", set_version},
};

/// Letters of nccl-tests' flags that names of ours would take the shortest abbreviations from.
constexpr std::array<std::pair<const char*, char>, 2> kShortest{{{"b", 'z'}, {"l", 'R'}}};

constexpr int kLongOnly = 1000;  // getopt's number of the first flag without a letter

const Flag* flag_of(int found) {
  if (found >= kLongOnly) return &kFlags[static_cast<std::size_t>(found - kLongOnly)];
  const auto flag = std::find_if(kFlags.begin(), kFlags.end(), [&](const Flag& one) { return one.letter == found; });
  return flag == kFlags.end() ? nullptr : &*flag;
}

std::string spelling(const Flag& flag) {
  return flag.letter == 0 ? fmt::format("--{}", flag.name) : fmt::format("-{}", flag.letter);
}

/// The word that getopt did not know.
Status unknown_flag(const std::string& word, int letter) {
  std::vector<std::string> names, letters;
  for (const Flag& flag : kFlags) {
    names.push_back(fmt::format("--{}", flag.name));
    if (flag.letter != 0) letters.push_back(fmt::format("-{}", flag.letter));
  }
  const bool is_long = word.starts_with("--");
  const std::string flag = is_long ? word.substr(0, word.find('=')) : fmt::format("-{}", static_cast<char>(letter));
  return error(Code::invalid_argument, "unknown flag '{}'{} (--help lists all)", shown(flag),
               suggestion(flag, is_long ? names : letters));
}

Status apply(const Flag& flag, Value value) {
  const Status status = flag.apply(std::move(value));
  return status.is_ok() ? status : error(status.code(), "{}: {}", spelling(flag), status.message());
}

Status check_sizes(const Settings& settings) {
  if (settings.min_bytes > settings.max_bytes) {
    return error(Code::invalid_argument, "-b {} is more than -e {}: did you mean them the other way round?",
                 settings.min_bytes, settings.max_bytes);
  }
  const bool is_one = settings.min_bytes == settings.max_bytes;
  if (!is_one && settings.factor > 1 && settings.min_bytes == 0) {
    return error(Code::invalid_argument, "-b 0 does not rise by -f {}: did you mean '-b {}'?", settings.factor,
                 settings.factor);
  }
  if (!is_one && settings.factor == 1 && settings.step_bytes == 0) {
    return error(Code::invalid_argument, "-i 0 does not rise: did you mean '-i 1M', or '-f 2'?");
  }
  return {};
}

Status check_operations(const Settings& settings) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t operations = std::int64_t{settings.iterations} * settings.aggregated;
  if (operations > kMost) {
    return error(Code::invalid_argument, "-n {} times -m {} are {} operations: at most {}: did you mean '-m {}'?",
                 settings.iterations, settings.aggregated, operations, kMost, kMost / settings.iterations);
  }
  if (settings.times_each && settings.skipped >= operations && operations > 0) {
    return error(Code::invalid_argument, "-K {} skips all {} operations: did you mean '-K {}'?", settings.skipped,
                 operations, operations - 1);
  }
  return {};
}

}  // namespace

std::string_view op_name(Op op) { return op == Op::premul_sum ? "mulsum" : to_string(op); }

Result<Settings> parse_flags(int argc, char** argv) {
  std::string letters = ":";
  std::vector<option> names;
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    const Flag& flag = kFlags[i];
    const int found = flag.letter != 0 ? flag.letter : kLongOnly + static_cast<int>(i);
    names.push_back({flag.name, flag.value == nullptr ? no_argument : required_argument, nullptr, found});
    if (flag.letter != 0)
      letters += flag.value == nullptr ? std::string(1, flag.letter) : std::string{flag.letter, ':'};
  }
  for (const auto& [name, letter] : kShortest) names.push_back({name, required_argument, nullptr, letter});
  names.push_back({nullptr, 0, nullptr, 0});
  Settings settings;
  opterr = 0;
  for (;;) {
    const int at = optind;
    const int found = getopt_long(argc, argv, letters.c_str(), names.data(), nullptr);
    if (found == -1) break;
    const std::string word = argv[std::max(1, optind - 1)];
    if (found == '?') return unknown_flag(word.starts_with("--") ? word : argv[at], optopt);
    const Flag* flag = flag_of(found == ':' ? optopt : found);
    if (found == ':') return error(Code::invalid_argument, "{} needs a value: {}", spelling(*flag), flag->value);
    TUTTI_RETURN_IF_ERROR(apply(*flag, {settings, optarg == nullptr ? "" : optarg}));
  }
  if (optind < argc) {
    return error(Code::invalid_argument, "'{}' belongs to no flag: flags are -b 8 or --minbytes 8 (--help lists all)",
                 shown(argv[optind]));
  }
  TUTTI_RETURN_IF_ERROR(settle_x(settings));
  TUTTI_RETURN_IF_ERROR(harness::check_apart({"--csv", settings.csv}, {"--json", settings.json}, ".json"));
  TUTTI_RETURN_IF_ERROR(check_sizes(settings));
  TUTTI_RETURN_IF_ERROR(check_operations(settings));
  return settings;
}

Status check_for(const Settings& settings, const Program& program, int ranks, int least_of_group) {
  if (ranks > harness::kMaxRanks) {
    return error(Code::invalid_argument, "{} ranks: at most {}", ranks, harness::kMaxRanks);
  }
  if (is_rooted(program.collective) && settings.root >= least_of_group) {
    return error(Code::invalid_argument, "-r: root {} of {} ranks: roots are 0 to {}, or -1 for all", settings.root,
                 least_of_group, least_of_group - 1);
  }
  return {};
}

std::string help_text(const Program& program) {
  std::string text = fmt::format(
      "{}: nccl-tests' program of this name, for NCCL on GPUs, or tutti's collectives on CPU ranks\n"
      "Example: {} -b 8 -e 1M -f 4 -g 2      mpirun -np 2 {} -b 8 -e 1M -f 4\n\n",
      program.name, program.name, program.name);
  for (const Flag& flag : kFlags) {
    const std::string names =
        flag.letter == 0 ? fmt::format("    --{}", flag.name) : fmt::format("-{}, --{}", flag.letter, flag.name);
    text += fmt::format("  {:<28} {:<8} {}\n", names, flag.value == nullptr ? "" : flag.value, flag.help);
  }
  std::vector<std::string_view> dtypes;
  for (const Dtype dtype : all_dtypes()) dtypes.push_back(to_string(dtype));
  text += fmt::format("\nTypes: {}, all\nOps: {}, all\n", fmt::join(dtypes, " "), fmt::join(op_names(), " "));
  text +=
      "\nNCCL_TESTS_DEVICE: with nccl, number of the first GPU, for one process; with --device gpu hide GPUs by "
      "CUDA_VISIBLE_DEVICES\n"
      "NCCL_TESTS_MIN_BW: exit code 7 where the average is below nine tenths of it (1e9 bytes/s)\n"
      "NCCL_TESTS_SPLIT: groups of processes that run at the same time, by AND, OR, MOD or DIV (& | % /) of a "
      "process's\n"
      "number with a number (10, 0x10, 0b10), such as 'MOD 2'; NCCL_TESTS_SPLIT_MASK=0x1 is 'AND 0x1', and goes before "
      "it\n";
  if (has_counts(program.collective)) {
    text +=
        "NCCL_TESTS_ALLTOALLV_SPREAD: from 0, the same to every rank, to 1, by distance (1); _MATRIX_FILE: bytes from "
        "rank\nto rank, for one size only; _MATRIX_SCALE: times this (1); _PRINT_SUMMARY=1: a line for each rank\n";
  }
  text +=
      "\nExit codes: 0 all as asked; 2 usage, or output that cannot be written; 3 the environment cannot run it; 5 "
      "crash,\n"
      "hang or timeout; 7 wrong data, or less than NCCL_TESTS_MIN_BW\n";
  return text;
}

}  // namespace tutti::perf
