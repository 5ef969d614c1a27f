// SPDX-License-Identifier: Apache-2.0
// Names of dtypes and ops, both ways, generated from the two tables, and what else people call them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "impl/types/aliases.h"
#include "impl/types/dtype.h"
#include "impl/types/names.h"
#include "impl/types/op.h"

namespace tutti {
namespace {

/// What else people call one: accepted, never written.
template <class Id>
struct Aliases {
  Id id;
  std::string_view names;
};

constexpr std::array kDtypeAliases{
    Aliases<Dtype>{Dtype::i8, "i8 char int8_t signed_char"},
    Aliases<Dtype>{Dtype::u8, "u8 byte uint8_t unsigned_char"},
    Aliases<Dtype>{Dtype::i32, "i32 int int32_t"},
    Aliases<Dtype>{Dtype::u32, "u32 unsigned uint uint32_t"},
    Aliases<Dtype>{Dtype::i64, "i64 long int64_t long_long"},
    Aliases<Dtype>{Dtype::u64, "u64 uint64_t unsigned_long unsigned_long_long"},
    Aliases<Dtype>{Dtype::f16, "fp16 f16 float16"},
    Aliases<Dtype>{Dtype::f32, "fp32 f32 float32 single"},
    Aliases<Dtype>{Dtype::f64, "fp64 f64 float64"},
    Aliases<Dtype>{Dtype::bf16, "bf16 bfloat"},
    Aliases<Dtype>{Dtype::f8e4m3, "e4m3 fp8_e4m3 float8_e4m3"},
    Aliases<Dtype>{Dtype::f8e5m2, "e5m2 fp8_e5m2 float8_e5m2"},
    Aliases<Dtype>{Dtype::i16, "i16 short int16_t"},
    Aliases<Dtype>{Dtype::u16, "u16 ushort uint16_t unsigned_short"},
    Aliases<Dtype>{Dtype::boolean, "boolean bool8 c_bool"},
};
constexpr std::array kOpAliases{
    Aliases<Op>{Op::prod, "product"},
    Aliases<Op>{Op::avg, "average mean"},
    Aliases<Op>{Op::band, "and"},
    Aliases<Op>{Op::bor, "or"},
    Aliases<Op>{Op::bxor, "xor"},
    Aliases<Op>{Op::premul_sum, "mulsum"},
};
/// Of MPI. They are near to the names of bitwise ones, and give other results.
constexpr std::string_view kLogicalOps = "land lor lxor";

template <class Id, std::size_t n>
std::string_view aliases_in(const std::array<Aliases<Id>, n>& table, Id id) {
  const auto* const row = std::ranges::find(table, id, &Aliases<Id>::id);
  return row == table.end() ? std::string_view() : row->names;
}

template <class Id>
Result<Id> parse_name(std::string_view kind, std::string_view name, const std::vector<Id>& ids) {
  std::vector<std::string> names;
  for (const Id id : ids) {
    if (is_same_name(name, to_string(id)) || is_alias(name, aliases_of(id))) return id;
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
  static const std::vector<Dtype> dtypes{TUTTI_DTYPES_OF_ALL(TUTTI_ROW)};
#undef TUTTI_ROW
  return dtypes;
}

const std::vector<Dtype>& known_dtypes() {
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

std::string_view aliases_of(Dtype dtype) { return aliases_in(kDtypeAliases, dtype); }
std::string_view aliases_of(Op op) { return aliases_in(kOpAliases, op); }

Result<Dtype> parse_dtype(std::string_view name) { return parse_name("dtype", name, known_dtypes()); }

Result<Op> parse_op(std::string_view name) {
  if (!is_alias(name, kLogicalOps)) return parse_name("op", name, all_ops());
  std::vector<std::string_view> names;
  for (const Op op : all_ops()) names.push_back(to_string(op));
  return error(Code::invalid_argument, "unknown op '{}': there is no logical one (one of: {})", shown(name),
               fmt::join(names, " "));
}

}  // namespace tutti
