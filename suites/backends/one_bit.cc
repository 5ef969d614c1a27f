// SPDX-License-Identifier: Apache-2.0
// Open MPI's backend, except that in launch TUTTI_ONE_BIT_LAUNCH (from 1) the second call of each all_reduce of at
// least 8 elements has another lowest bit in element 5 on rank 1: too little to be wrong, where floats are rounded.
// `tutti check repeat` has to find it. The launches are counted in the file TUTTI_ONE_BIT_COUNT, a byte for each.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

constexpr int kElement = 5;

struct Noted {
  unsigned char* result;
  int calls = 0;
};
std::map<void*, Noted> noted;

bool is_rank_1() {
  static const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::strcmp(rank, "1") == 0;
}

/// The number of this launch; counted once in each.
int launch() {
  static const int number = [] {
    const char* const path = std::getenv("TUTTI_ONE_BIT_COUNT");
    if (path == nullptr) return 0;
    std::ofstream(path, std::ios::app) << '.';
    std::string all;
    std::getline(std::ifstream(path), all);
    return static_cast<int>(all.size());
  }();
  return number;
}

int prepare_and_note(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  const int code = honest->prepare(call, handle, message);
  const bool is_it = std::strcmp(call->collective, "all_reduce") == 0 && call->count > kElement + 2;
  if (code == 0 && is_it && is_rank_1()) {
    launch();
    noted[*handle] = {.result = static_cast<unsigned char*>(call->recv) + kElement * call->element_bytes};
  }
  return code;
}

int run_with_one_bit(void* handle, TuttiBackendMessage* message) {
  const int code = honest->run(handle, message);
  const auto found = noted.find(handle);
  const char* const asked = std::getenv("TUTTI_ONE_BIT_LAUNCH");
  if (found == noted.end() || asked == nullptr) return code;
  const bool is_second = ++found->second.calls == 2;
  if (is_second && launch() == std::atoi(asked)) *found->second.result ^= 1U;
  return code;
}

void release_and_forget(void* handle) {
  noted.erase(handle);
  honest->release(handle);
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.prepare = prepare_and_note;
  backend.run = run_with_one_bit;
  backend.release = release_and_forget;
  return &backend;
}
