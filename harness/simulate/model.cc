// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "impl/types/status.h"

namespace tutti::harness::simulate {

SizeTable::SizeTable(std::vector<Point> points) : points_(std::move(points)) {
  for (std::size_t i = 1; i < points_.size(); ++i)
    TUTTI_ASSERT(points_[i - 1].bytes < points_[i].bytes, "the sizes of a table rise");
}

SizeTable::SizeTable(std::initializer_list<Point> points) : SizeTable(std::vector<Point>(points)) {}

SizeTable SizeTable::line(double ns, double per_byte) {
  constexpr double kMany = 1e6;  // bytes
  if (per_byte == 0) return SizeTable{{0, ns}};
  return SizeTable{{0, ns}, {kMany, ns + kMany * per_byte}};
}

double SizeTable::at(double bytes) const {
  if (points_.empty()) return 0;
  if (bytes <= points_.front().bytes || points_.size() == 1) return points_.front().ns;
  std::size_t end = 1;
  while (end + 1 < points_.size() && points_[end].bytes < bytes) ++end;
  const Point& a = points_[end - 1];
  const Point& b = points_[end];
  return a.ns + (bytes - a.bytes) / (b.bytes - a.bytes) * (b.ns - a.ns);
}

Machine example_machine() {
  Machine machine{.name = "example", .ranks_per_node = 8};
  Model& model = machine.model;
  constexpr double kMemory = 0.05, kNetwork = 0.04;  // ns for a byte: 20 and 25 GB/s
  model.near = {.latency = 200,
                .send = SizeTable::line(100, kMemory),
                .receive = SizeTable::line(100, 0),
                .wire = SizeTable::line(0, kMemory)};
  model.far = {.latency = 1200,
               .gap = 50,
               .send = SizeTable::line(300, 0),
               .receive = SizeTable::line(300, 0),
               .wire = SizeTable::line(0, kNetwork)};
  model.flag = 150;
  model.reduce = model.copy = SizeTable::line(0, kMemory);
  model.read = SizeTable::line(60, kMemory);
  model.eager_bytes = 16384;
  model.handshake = 2 * model.far.latency;
  return machine;
}

}  // namespace tutti::harness::simulate
