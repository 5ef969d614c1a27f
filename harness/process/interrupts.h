// SPDX-License-Identifier: Apache-2.0
// Interrupts: SIGINT, SIGTERM and SIGHUP as a descriptor to poll. The handlers only note the signal and make the
// descriptor readable.
#pragma once

#include <string>

#include "harness/floors.h"

namespace tutti::harness::process {

/// Catches the signals while at least one object lives. A signal stays noted until the last object is gone. So a
/// program that keeps one for its whole run also learns of a signal that came between two launches. A SIGHUP that was
/// ignored before (nohup) stays ignored. Not for construction in several threads at once.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  [[nodiscard]] int signal() const;  ///< the first signal that came, or 0
  /// The signals that came so far count no more: only later ones are noted.
  void forget();
  [[nodiscard]] int descriptor() const;  ///< readable once a signal came
};

/// "interrupted by signal 2 (Interrupt)"
[[nodiscard]] std::string interruption_text(int signal);

}  // namespace tutti::harness::process
