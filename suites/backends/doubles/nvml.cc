// SPDX-License-Identifier: Apache-2.0
// A double of NVIDIA's management library, for tests without a GPU: the functions of harness/machine/gpu.cc.
//
//   TUTTI_DOUBLE_DEVICES   GPUs there are said to be (8)
//   TUTTI_DOUBLE_THROTTLE  the reasons that slow GPU 0 down, as a number (0)
//   TUTTI_DOUBLE_ECC       1: each question about memory errors of GPU 1 finds one more (0)
//   TUTTI_DOUBLE_OTHERS    processes of others that compute on each GPU (0), beside the one that asks
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <unistd.h>

#include "suites/backends/doubles/settings.h"

#define TUTTI_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using tutti::doubles::number_of;

struct Process {
  unsigned id;
  unsigned long long bytes;
  unsigned instance, part;
};

unsigned devices() { return static_cast<unsigned>(number_of("TUTTI_DOUBLE_DEVICES", 8)); }
/// A handle is the number and 1.
void* handle_of(unsigned index) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1); }
unsigned index_of(void* device) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1; }

}  // namespace

TUTTI_EXPORTED int nvmlInit_v2() { return number_of("TUTTI_DOUBLE_NVML", 0); }
TUTTI_EXPORTED const char* nvmlErrorString(int answer) { return answer == 9 ? "Driver Not Loaded" : "unknown"; }
TUTTI_EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = devices();
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = handle_of(index);
  return index < devices() ? 0 : 2;
}
TUTTI_EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  unsigned index = 0;
  if (std::sscanf(bus, "0000:%2x:00.0", &index) != 1) return 2;
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
TUTTI_EXPORTED int nvmlDeviceGetName(void* device, char* name, unsigned bytes) {
  std::snprintf(name, bytes, "Double %u", index_of(device));
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1200;
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = index_of(device) == 0 ? static_cast<unsigned long long>(number_of("TUTTI_DOUBLE_THROTTLE", 0)) : 1;
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* count) {
  static std::atomic<unsigned long long> errors = 0;
  *count = index_of(device) == 1 && number_of("TUTTI_DOUBLE_ECC", 0) != 0 ? ++errors : 0;
  return 0;
}
TUTTI_EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  const auto others = static_cast<unsigned>(number_of("TUTTI_DOUBLE_OTHERS", 0));
  const bool is_asked_by_rank = std::getenv("TUTTI_CONTROL") != nullptr;
  unsigned filled = 0;
  if (is_asked_by_rank && filled < *count)
    processes[filled++] = {.id = static_cast<unsigned>(::getpid()), .bytes = 0, .instance = 0, .part = 0};
  for (unsigned i = 0; i < others && filled < *count; ++i)
    processes[filled++] = {.id = 4000 + i, .bytes = 0, .instance = 0, .part = 0};
  *count = filled;
  return 0;
}
