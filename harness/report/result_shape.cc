// SPDX-License-Identifier: Apache-2.0
#include "harness/report/result_shape.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/text/json_writer.h"
#include "impl/types/names.h"

namespace tutti::harness::report {
namespace {

using Document = nlohmann::ordered_json;

enum class Type : std::uint8_t { text, number, truth, object, list };

struct Member {
  std::string_view name;
  Type type;
};

constexpr std::array kOfResult{
    Member{"machine", Type::object},     Member{"machines", Type::list},  Member{"versions", Type::object},
    Member{"command", Type::text},       Member{"seed", Type::number},    Member{"started", Type::text},
    Member{"measurement", Type::object}, Member{"bound", Type::object},   Member{"environment", Type::object},
    Member{"left_out", Type::list},      Member{"diagnoses", Type::list}, Member{"finished", Type::truth},
    Member{"rows", Type::list},          Member{"ranks", Type::object},   Member{"kind", Type::text},
    Member{"this", Type::text},          Member{"other", Type::text},     Member{"unfinished", Type::text},
    Member{"counts", Type::object},      Member{"counted", Type::text},   Member{"remarks", Type::list},
    Member{"cells", Type::list},         Member{"table", Type::object}};
constexpr std::array kOfCell{Member{"cell", Type::text},
                             Member{"collective", Type::text},
                             Member{"bytes", Type::number},
                             Member{"verdict", Type::text},
                             Member{"ratio", Type::number},
                             Member{"low", Type::number},
                             Member{"high", Type::number},
                             Member{"floor", Type::number},
                             Member{"reason", Type::text},
                             Member{"this_us", Type::number},
                             Member{"other_us", Type::number},
                             Member{"this_launches", Type::number},
                             Member{"other_launches", Type::number}};

bool is_of(const Document& value, Type type) {
  switch (type) {
    case Type::text:
      return value.is_string();
    case Type::number:
      return value.is_number();
    case Type::truth:
      return value.is_boolean();
    case Type::object:
      return value.is_object();
    case Type::list:
      return value.is_array();
  }
  return false;
}

std::string_view words_of(Type type) {
  switch (type) {
    case Type::text:
      return "a text";
    case Type::number:
      return "a number";
    case Type::truth:
      return "true or false";
    case Type::object:
      return "an object";
    case Type::list:
      return "a list";
  }
  return "something else";
}

/// `where` precedes a member's name in the error.
Status check_members(const Document& object, std::span<const Member> members, const std::string& where) {
  for (const auto& [name, type] : members) {
    const auto value = object.find(std::string(name));
    if (value == object.end() || value->is_null() || is_of(*value, type)) continue;
    return error(Code::invalid_argument, "'{}{}' must be {}, not {}", where, name, words_of(type),
                 shown(json_text(*value)));
  }
  return {};
}

}  // namespace

Status check_shape(const Document& document) {
  TUTTI_RETURN_IF_ERROR(check_members(document, kOfResult, ""));
  const auto cells = document.find("cells");
  for (std::size_t i = 0; cells != document.end() && i < cells->size(); ++i) {
    const Document& cell = (*cells)[i];
    if (!cell.is_object()) {
      return error(Code::invalid_argument, "'cells[{}]' must be an object, not {}", i, shown(json_text(cell)));
    }
    TUTTI_RETURN_IF_ERROR(check_members(cell, kOfCell, fmt::format("cells[{}].", i)));
  }
  return {};
}

}  // namespace tutti::harness::report
