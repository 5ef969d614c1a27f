// SPDX-License-Identifier: Apache-2.0
// What systems under test that are made up have in common: a name, nothing to tell, and no case that they refuse.
#pragma once

#include <string>
#include <utility>

#include "harness/backends/system.h"

namespace tutti::harness::measure {

class PlainBackend : public Backend {
 public:
  explicit PlainBackend(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] const std::string& name() const final { return name_; }
  [[nodiscard]] std::string describe() const final { return "{}"; }
  [[nodiscard]] Status supports(const Case& /*one*/) const final { return {}; }
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const final { return std::string(kNone); }

 private:
  std::string name_;
};

}  // namespace tutti::harness::measure
