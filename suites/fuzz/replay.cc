// SPDX-License-Identifier: Apache-2.0
// Every input of the corpora once, by any compiler: what has been found once stays found. Usage: fuzz_replay CORPUS,
// where CORPUS/TARGET/* are the inputs. The last input named is the one at which it ended.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

struct Target {
  const char* name;
  void (*read)(std::string_view);
};
constexpr std::array kTargets{Target{"options", options},
                              Target{"hosts", hosts},
                              Target{"answers", answers},
                              Target{"case_ids", case_ids},
                              Target{"suite_files", suite_files},
                              Target{"counts_files", counts_files},
                              Target{"csv", csv},
                              Target{"json", json},
                              Target{"results", results},
                              Target{"messages", messages},
                              Target{"ranks", ranks},
                              Target{"perf_flags", perf_flags},
                              Target{"frames", frames},
                              Target{"greetings", greetings},
                              Target{"sealed", sealed},
                              Target{"traces", traces},
                              Target{"msccl_files", msccl_files}};

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Every target has inputs, and every folder a target: no folder is passed over because of its name.
int replay(const std::filesystem::path& corpus) {
  if (files_in(corpus).size() != kTargets.size()) {
    fmt::print("{} has {} folders, there are {} targets\n", corpus.string(), files_in(corpus).size(), kTargets.size());
    return 1;
  }
  std::size_t inputs = 0;
  for (const Target& target : kTargets) {
    const auto files = files_in(corpus / target.name);
    if (files.empty()) {
      fmt::print("there are no inputs in {}\n", (corpus / target.name).string());
      return 1;
    }
    for (const auto& path : files) {
      fmt::print("{}/{}\n", target.name, path.filename().string());
      std::fflush(stdout);
      target.read(content_of(path));
    }
    inputs += files.size();
  }
  fmt::print("{} inputs of {} targets\n", inputs, kTargets.size());
  return 0;
}

}  // namespace
}  // namespace tutti::fuzz

int main(int argc, char** argv) {
  if (argc == 2) return tutti::fuzz::replay(argv[1]);
  fmt::print(stderr, "usage: fuzz_replay CORPUS\n");
  return 2;
}
