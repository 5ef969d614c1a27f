// SPDX-License-Identifier: Apache-2.0
// Where ranks run as teams of threads: a GPU, or threads of the host that stand for one (teams.h). A device has memory
// and runs launches, those of a queue one after the other in the order in which they were made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "impl/execute/device_machine.h"
#include "impl/reduce/kernels.h"
#include "impl/reduce/scale.h"
#include "impl/types/status.h"

namespace tutti {

/// The teams of all parties walk their plans at once. Everything that pointers lead to is memory of the device, and
/// stays as it is until the launch is complete.
struct DeviceLaunch {
  DeviceWorld world;
  DeviceWork work;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int threads = 1;  ///< of a team
  /// Launches of one queue run one after the other; those of two at once, where there is room for both.
  int queue = 0;

  /// By party: a kernel that an instrument has put in place of the device's own arithmetic. Empty: none of them has.
  struct Replaced {
    Kernel kernel = nullptr;
    Scale scale = nullptr;  ///< of premul_sum
    std::shared_ptr<const void> context;
  };
  std::vector<Replaced> replaced = {};

  [[nodiscard]] int teams() const { return work.parties * world.lanes; }
};

/// By which another process of this machine gets at memory of a device: plain data.
struct DeviceOffer {
  std::array<std::byte, 64> handle{};
};

/// Launches that a device has recorded, to be made again and again. It goes before its device, when nothing of it is
/// under way.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

/// Used by any thread.
class Device {
 public:
  using Ticket = std::uint64_t;
  static constexpr unsigned kQueueBit = 48;  ///< of a ticket: above it is the queue

  virtual ~Device() = default;
  /// "teams of threads of the host", or the GPU's model.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Zeroed memory, aligned to kDeviceLine. Errors: resource with the numbers.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  /// The same of memory that the host and all devices read and write while launches run, at the same address.
  [[nodiscard]] virtual Result<std::byte*> allocate_mapped(std::size_t bytes) = 0;
  /// As allocate, of memory that is offered to other processes. They have closed it before it is released.
  [[nodiscard]] virtual Result<std::byte*> allocate_for_processes(std::size_t /*bytes*/) { return of_one_process(); }
  /// Of any kind.
  virtual void release(std::byte* memory) = 0;

  /// Which one of the machine it is, in the same words in all processes: "0000:3b:00.0".
  [[nodiscard]] virtual std::string place() const { return name(); }
  /// For other processes to open.
  [[nodiscard]] virtual Result<DeviceOffer> offer(std::byte* /*memory*/) { return of_one_process(); }
  /// What another process has offered, of the device at `place`: from here on launches may address it.
  /// Errors: unavailable where they cannot.
  [[nodiscard]] virtual Result<std::byte*> open_offered(const DeviceOffer& /*offer*/, const std::string& /*place*/) {
    return of_one_process();
  }
  /// What `open_offered` has returned. Requires: no launch that may address it is under way.
  virtual void close_offered(std::byte* /*memory*/) {}

  /// From here on launches may address what `other` allocates. Errors: unavailable where they cannot.
  virtual Status reach(Device& other) {
    static_cast<void>(other);
    return {};
  }
  /// Before any launch that reads it is made.
  virtual Status write(std::byte* to, const void* from, std::size_t bytes) = 0;

  /// Threads of a team where nobody says.
  [[nodiscard]] virtual int usual_threads() const = 0;
  /// Teams of a rank where nobody says, beside those of as many other ranks as make `ranks`: from 1 on.
  [[nodiscard]] virtual int usual_lanes(int /*ranks*/) const { return 1; }
  /// Whether teams need the cores of the host: who tests for them then yields.
  [[nodiscard]] virtual bool needs_cores() const { return false; }
  /// Whether so many teams can be at work at once: a team waits for others, so all must have begun.
  /// Errors: resource with the numbers.
  [[nodiscard]] virtual Status fits(int teams, int threads) = 0;
  /// Returns at once. Errors: those of fits; unavailable where arithmetic cannot be replaced.
  [[nodiscard]] virtual Result<Ticket> launch(DeviceLaunch launch) = 0;
  /// What replay launches: these, one or more of one queue, one after the other. Nothing runs. Errors: those of launch.
  [[nodiscard]] virtual Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch> launches) = 0;
  /// A graph of this device, as one launch. Returns at once. Errors: those of launch.
  [[nodiscard]] virtual Result<Ticket> replay(DeviceGraph& graph) = 0;
  /// Launches of a queue are complete in the order of their tickets. Errors: io where the device has failed.
  [[nodiscard]] virtual Result<bool> is_complete(Ticket ticket) = 0;

 private:
  [[nodiscard]] Status of_one_process() const {
    return error(Code::unavailable, "the memory of {} is that of one process", name());
  }
};

struct ReleaseMemory {
  Device* device = nullptr;
  void operator()(std::byte* at) const { device->release(at); }
};
/// Memory of a device that is released with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  [[nodiscard]] static Result<DeviceMemory> make(Device& device, std::size_t bytes) {
    TUTTI_ASSIGN_OR_RETURN(std::byte* const at, device.allocate(bytes));
    return DeviceMemory(device, at);
  }
  [[nodiscard]] static Result<DeviceMemory> make_mapped(Device& device, std::size_t bytes) {
    TUTTI_ASSIGN_OR_RETURN(std::byte* const at, device.allocate_mapped(bytes));
    return DeviceMemory(device, at);
  }
  [[nodiscard]] static Result<DeviceMemory> make_for_processes(Device& device, std::size_t bytes) {
    TUTTI_ASSIGN_OR_RETURN(std::byte* const at, device.allocate_for_processes(bytes));
    return DeviceMemory(device, at);
  }
  [[nodiscard]] std::byte* get() const { return at_.get(); }
  /// It stays until the process ends.
  void abandon() { static_cast<void>(at_.release()); }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(at_.get());
  }

 private:
  DeviceMemory(Device& device, std::byte* at) : at_(at, ReleaseMemory{&device}) {}
  std::unique_ptr<std::byte, ReleaseMemory> at_;
};

struct CloseMemory {
  Device* device = nullptr;
  void operator()(std::byte* at) const { device->close_offered(at); }
};
/// Memory that another process has offered, as a device of this one addresses it.
using OpenedMemory = std::unique_ptr<std::byte, CloseMemory>;

}  // namespace tutti
