// SPDX-License-Identifier: Apache-2.0
#include "harness/report/flight.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <sys/stat.h>
#include <system_error>

#include <fmt/format.h>

#include "harness/text/file_place.h"
#include "harness/text/output_file.h"
#include "impl/types/dtype.h"
#include "impl/types/names.h"

namespace tutti::harness::report {
namespace {

constexpr std::string_view kVersion = "2.10";  // of the recorder's form
constexpr std::string_view kGroup = "0";
constexpr std::string_view kGroupName = "default_pg";

/// The opcodes of a pickle that are needed here.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}

  Pickle& text(std::string_view text) {
    bytes_ += 'X';
    little_endian(text.size(), 4);
    bytes_ += text;
    return *this;
  }
  Pickle& number(std::int64_t value) {
    if (value >= 0 && value <= std::numeric_limits<std::uint8_t>::max()) {
      bytes_ += 'K';
      little_endian(static_cast<std::uint64_t>(value), 1);
    } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
      bytes_ += 'J';
      little_endian(static_cast<std::uint64_t>(value), 4);
    } else {
      bytes_ += "\x8a\x08";
      little_endian(static_cast<std::uint64_t>(value), 8);
    }
    return *this;
  }
  Pickle& no() { return opcode("\x89"); }
  Pickle& begin_object() { return opcode("}("); }
  Pickle& end_object() { return opcode("u"); }
  Pickle& begin_list() { return opcode("]("); }
  Pickle& end_list() { return opcode("e"); }
  /// A list of one list of one number.
  Pickle& sizes(std::int64_t elements) { return begin_list().begin_list().number(elements).end_list().end_list(); }
  [[nodiscard]] std::string end() { return std::move(bytes_) + "."; }

 private:
  Pickle& opcode(std::string_view code) {
    bytes_ += code;
    return *this;
  }
  void little_endian(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }

  std::string bytes_;
};

/// What torch calls it, and how many blocks its input and output have: 0 stands for one block of each rank.
struct Form {
  std::string_view name;  ///< empty: it has none
  int input = 1;
  int output = 1;
};

Form form_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return {"nccl:broadcast"};
    case Collective::reduce:
      return {"nccl:reduce"};
    case Collective::all_reduce:
      return {"nccl:all_reduce"};
    case Collective::gather:
      return {"nccl:gather", 1, 0};
    case Collective::all_gather:
      return {"nccl:_all_gather_base", 1, 0};
    case Collective::scatter:
      return {"nccl:scatter", 0, 1};
    case Collective::reduce_scatter:
      return {"nccl:_reduce_scatter_base", 0, 1};
    case Collective::all_to_all:
      return {"nccl:all_to_all_single", 0, 0};
    case Collective::barrier:
      return {"nccl:barrier"};
    default:
      return {};
  }
}

std::string ranks_text(int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) text += fmt::format("{}{}", rank == 0 ? "" : ", ", rank);
  return "[" + text + "]";
}

void add_entry(Pickle& pickle, std::int64_t index, int ranks, const StartedCall& one) {
  const Form form = form_of(one.call.collective);
  const bool is_barrier = one.call.collective == Collective::barrier;
  const auto elements = [&](int blocks) { return is_barrier ? 1 : one.call.count * (blocks == 0 ? ranks : blocks); };
  const std::string_view dtype = is_barrier ? "none" : to_string(one.call.dtype);
  const auto number = static_cast<std::int64_t>(one.number);
  pickle.begin_object();
  pickle.text("record_id").number(index);
  pickle.text("pg_id").number(0);
  pickle.text("process_group").begin_list().text(kGroup).text(kGroupName).end_list();
  pickle.text("collective_seq_id").number(number);
  pickle.text("p2p_seq_id").number(0);
  pickle.text("op_id").number(number);
  pickle.text("is_p2p").no();
  pickle.text("profiling_name").text(form.name);
  pickle.text("time_created_ns").number(0);
  pickle.text("input_sizes").sizes(elements(form.input));
  pickle.text("input_dtypes").begin_list().text(dtype).end_list();
  pickle.text("output_sizes").sizes(elements(form.output));
  pickle.text("output_dtypes").begin_list().text(dtype).end_list();
  pickle.text("state").text(one.is_complete ? "completed" : "started");
  pickle.text("frames").begin_list().end_list();
  pickle.end_object();
}

}  // namespace

std::string flight_pickle(int ranks, std::span<const StartedCall> calls) {
  Pickle pickle;
  pickle.begin_object();
  pickle.text("version").text(kVersion);
  pickle.text("pg_config").begin_object().text(kGroup).begin_object();
  pickle.text("name").text(kGroup).text("desc").text(kGroupName).text("ranks").text(ranks_text(ranks));
  pickle.end_object().end_object();
  pickle.text("entries").begin_list();
  std::int64_t index = 0;
  for (const StartedCall& one : calls) {
    if (!form_of(one.call.collective).name.empty()) add_entry(pickle, index++, ranks, one);
  }
  pickle.end_list().end_object();
  return pickle.end();
}

namespace {

Status write(const std::string& path, std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(path));
  return file.replace(text);
}

/// Removes what another job has left there.
Status remove_older(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path));
  struct stat about {};
  place.remove();
  if (place.look(about) == ENOENT) return {};
  return error(Code::invalid_argument, "cannot remove '{}', which is of another job", shown(path));
}

/// The files of ranks that are in the folder.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    const bool is_of_rank = name.size() > kFlightPrefix.size() && name.starts_with(kFlightPrefix) &&
                            name.find_first_not_of("0123456789", kFlightPrefix.size()) == std::string::npos;
    if (is_of_rank) files.push_back(fmt::format("{}/{}", folder, name));
  }
  return files;
}

}  // namespace

Status write_flight(const std::string& folder, int ranks, const CallsOfRanks& calls) {
  Status first;
  const auto note = [&](const Status& status) {
    if (first.is_ok()) first = status;
  };
  std::set<std::string> written;
  for (const auto& [rank, known] : calls) {
    const std::string path = fmt::format("{}/{}{}", folder, kFlightPrefix, rank);
    note(write(path, flight_pickle(ranks, known)));
    written.insert(path);
  }
  for (const std::string& path : files_in(folder)) {
    if (!written.contains(path)) note(remove_older(path));
  }
  return first;
}

Status write_stacks(const std::string& folder, int ranks, std::span<const RankStack> stacks) {
  const std::string path = fmt::format("{}/{}", folder, kStacksName);
  if (stacks.empty()) return remove_older(path);
  const bool is_one_process = stacks.size() == 1 && ranks > 1;
  return write(
      path, (is_one_process ? "All ranks are in one process, as which rank 0 stands here.\n\n" : "") + grouped(stacks));
}

}  // namespace tutti::harness::report
