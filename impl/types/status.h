// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every fallible function of tutti reports what went wrong. No exception crosses `impl`: with P
// ranks in threads a throw would leave the other ranks blocked, and a result must name its reason.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "impl/types/visibility.h"

namespace tutti {

/// Why something failed. The harness maps these onto exit codes; nobody parses the message.
enum class Code {
  ok,
  invalid_argument,  ///< a caller's mistake: the message names the value and the allowed range
  unavailable,       ///< this machine or build cannot do it
  resource,          ///< not enough memory, slots or descriptors: the message has the numbers
  io,                ///< the operating system said no
  timeout,           ///< a deadline passed: the message names what is missing
  aborted,           ///< another rank failed: the message names it
  mismatch,          ///< ranks do not agree on the call
  refuted,           ///< a proof failed
};

[[nodiscard]] TUTTI_API std::string_view to_string(Code code);

/// Success (one null pointer) or a code with a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : detail_(std::make_shared<const Detail>(Detail{code, std::move(message)})) {}

  [[nodiscard]] bool is_ok() const { return detail_ == nullptr; }
  [[nodiscard]] Code code() const { return detail_ ? detail_->code : Code::ok; }
  [[nodiscard]] TUTTI_API const std::string& message() const;

 private:
  struct Detail {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Detail> detail_;
};

/// Builds a failed Status from a format string: `error(Code::timeout, "rank {} is missing", 3)`.
template <class... Args>
[[nodiscard]] Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : content_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_ok() const { return std::holds_alternative<T>(content_); }
  [[nodiscard]] Status status() const { return is_ok() ? Status() : std::get<Status>(content_); }
  [[nodiscard]] T& value() & { return std::get<T>(content_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(content_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(content_)); }

 private:
  std::variant<T, Status> content_;
};

/// Prints where and why, then aborts. For bugs of tutti itself, never for a user's mistake.
[[noreturn]] TUTTI_API void assertion_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace tutti

#define TUTTI_CONCAT_(a, b) a##b
#define TUTTI_CONCAT(a, b) TUTTI_CONCAT_(a, b)

/// Returns from the enclosing function with the Status of `expression` if that is an error.
#define TUTTI_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                           \
    if (::tutti::Status tutti_status = (expression); !tutti_status.is_ok()) return tutti_status; \
  } while (false)

/// `TUTTI_ASSIGN_OR_RETURN(auto plan, bind(...));` declares `plan`, or returns the Status.
#define TUTTI_ASSIGN_OR_RETURN(declaration, expression) \
  TUTTI_ASSIGN_OR_RETURN_(TUTTI_CONCAT(tutti_result_, __LINE__), declaration, expression)
#define TUTTI_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                    \
  if (!result.is_ok()) return result.status();                   \
  declaration = std::move(result).value()

/// Holds in every build; the message may format values: `TUTTI_ASSERT(r < P, "rank {} of {}", r, P)`.
#define TUTTI_ASSERT(condition, ...)                                                                         \
  do {                                                                                                       \
    if (!(condition)) ::tutti::assertion_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
