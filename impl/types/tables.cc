// SPDX-License-Identifier: Apache-2.0
// Names of dtypes and ops, both ways, generated from the two tables.
#include <string>
#include <vector>

#include "impl/types/dtype.h"
#include "impl/types/names.h"
#include "impl/types/op.h"

namespace tutti {
namespace {

template <class Id>
Result<Id> parse_name(std::string_view kind, std::string_view name, const std::vector<Id>& ids) {
  std::vector<std::string> names;
  for (const Id id : ids) {
    if (to_string(id) == name) return id;
    names.emplace_back(to_string(id));
  }
  return unknown_name(kind, name, names);
}

}  // namespace

std::string_view to_string(Dtype dtype) {
  switch (dtype) {
#define TUTTI_ROW(id, type, name) \
  case Dtype::id:                 \
    return name;
    TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
  }
  return "unknown";
}

std::string_view to_string(Op op) {
  switch (op) {
#define TUTTI_ROW(id, name, domain) \
  case Op::id:                      \
    return name;
    TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
    case Op::none:
      return "none";
  }
  return "unknown";
}

const std::vector<Dtype>& all_dtypes() {
#define TUTTI_ROW(id, type, name) Dtype::id,
  static const std::vector<Dtype> dtypes{TUTTI_DTYPES(TUTTI_ROW)};
#undef TUTTI_ROW
  return dtypes;
}

const std::vector<Op>& all_ops() {
#define TUTTI_ROW(id, name, domain) Op::id,
  static const std::vector<Op> ops{TUTTI_OPS(TUTTI_ROW)};
#undef TUTTI_ROW
  return ops;
}

Result<Dtype> parse_dtype(std::string_view name) { return parse_name("dtype", name, all_dtypes()); }
Result<Op> parse_op(std::string_view name) { return parse_name("op", name, all_ops()); }

}  // namespace tutti
