// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job of a starter find the control socket of their host. The first process of the
// host binds that socket at a drawn name. Then it listens at the one name that all ranks know, and gives the drawn name
// to each process of its own user that comes there. It closes every other connection at once.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

class Announcement {
 public:
  /// Begins to announce a control socket for `ranks` ranks at `name`, in a thread of its own. Errors: unavailable if a
  /// process of this user announces there already; mismatch if another user holds the name; io; resource.
  [[nodiscard]] static Result<std::unique_ptr<Announcement>> make(const std::string& name, int ranks);
  /// The name is free from here on. A rank that waits at the control socket hears that there is no job for it.
  ~Announcement();
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  [[nodiscard]] const std::string& control() const { return control_; }
  [[nodiscard]] int control_socket() const { return control_socket_.get(); }  ///< it listens at `control`

 private:
  Announcement() = default;
  void answer_all();
  /// Whether there may be another connection.
  bool answer_one() const;

  std::string control_;
  Descriptor control_socket_, listener_;
  Descriptor stop_;  ///< an eventfd: readable when the thread is to end
  std::thread thread_;
};

/// The name of the control socket that is announced at `name`, once it is. Errors: timeout; mismatch if another user
/// holds the name; io.
[[nodiscard]] Result<std::string> announced_at(const std::string& name, std::chrono::nanoseconds most);

}  // namespace tutti::harness::launch
