// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>

#include "harness/cases/lists.h"
#include "suites/fuzz/targets.h"
#include "suites/perf/flags.h"

namespace tutti::fuzz {

void perf_flags(std::string_view input) {
  std::vector<std::string> words{"all_reduce_perf"};
  for (const std::string_view word : harness::split(input, '\n')) {
    if (word.find('\0') == word.npos) words.emplace_back(word);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  optind = 0;  // from the start again
  const auto settings = perf::parse_flags(static_cast<int>(words.size()), argv.data());
  if (!settings.is_ok()) return check_message(settings.status());
  for (const perf::Program& program : perf::all_programs()) {
    const int ranks = settings.value().ranks_here();
    const Status status = check_for(settings.value(), program, ranks, ranks);
    if (!status.is_ok()) check_message(status);
  }
  constexpr int kMost = 1000;  // of a sweep that need not be short
  std::int64_t size = settings.value().min_bytes;
  for (int i = 0; i < kMost && size <= settings.value().max_bytes; ++i) {
    const std::int64_t next = settings.value().next_size(size);
    TUTTI_ASSERT(next > size || settings.value().min_bytes == settings.value().max_bytes, "{} after {}", next, size);
    size = next;
  }
}

}  // namespace tutti::fuzz
