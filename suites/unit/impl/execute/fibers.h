// SPDX-License-Identifier: Apache-2.0
// Fibers whose position is data: it is kept, compared and gone back to, as often as one likes. So code that knows
// nothing of it is tried in every interleaving. A position is the stack, which stays at its addresses.
//
// A fiber owns nothing: what it has on the heap when it stops would be shared by all positions that were kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <ucontext.h>
#include <vector>

namespace tutti::fibers {

/// Why a fiber does not run.
enum class Stop : std::uint8_t {
  ready,   ///< it can go on
  paused,  ///< it has looked for something that is not there yet
  over
};

class Fiber {
 public:
  using Body = void (*)(void* argument);

  Fiber(Body body, void* argument) : body_(body), argument_(argument) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStack;
    context_.uc_link = nullptr;
    makecontext(&context_, &Fiber::enter, 0);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it stops again.
  Stop resume() {
    std::memset(low_ - kDirty, 0, kDirty);  // what lies below is dead: two positions are equal if they go on alike
    running_ = this;
    swapcontext(&scheduler_, &context_);
    running_ = nullptr;
    return stop_;
  }
  [[nodiscard]] bool is_over() const { return stop_ == Stop::over; }

  /// Of the fiber that runs.
  [[gnu::noinline]] static void stop(Stop why) {
    __builtin_unwind_init();  // the caller's registers go to the stack, too
    Fiber& me = *running_;
    me.stop_ = why;
    me.low_ = static_cast<std::byte*>(__builtin_frame_address(0)) - kFrame;
    if (me.low_ - kDirty < me.stack_.get()) std::abort();
    swapcontext(&me.context_, &me.scheduler_);
  }

  struct Position {
    ucontext_t context;
    std::byte* low;
    Stop stop;
    std::vector<std::byte> stack;
  };
  [[nodiscard]] Position position() const { return {context_, low_, stop_, {low_, end()}}; }
  void go_back(const Position& position) {
    context_ = position.context;
    low_ = position.low;
    stop_ = position.stop;
    std::memcpy(low_, position.stack.data(), position.stack.size());
  }
  /// The same for positions from which it goes on in the same way.
  [[nodiscard]] static std::size_t hash_of(const Position& position) {
    const auto* const begin = reinterpret_cast<const char*>(position.stack.data());
    const std::string_view stack =
        position.stop == Stop::over ? std::string_view() : std::string_view(begin, position.stack.size());
    return std::hash<std::string_view>()(stack) * 3 + (position.stop == Stop::over ? 1 : 0);
  }

 private:
  static constexpr std::size_t kStack = 64 * 1024;
  static constexpr std::size_t kFrame = 512;        ///< of stop itself, and of what it calls
  static constexpr std::size_t kDirty = 16 * 1024;  ///< as far as a fiber's calls reach between two stops

  static void enter() {
    Fiber& me = *running_;
    me.body_(me.argument_);
    stop(Stop::over);
  }
  [[nodiscard]] std::byte* end() const { return stack_.get() + kStack; }

  static inline Fiber* running_ = nullptr;

  Body body_;
  void* argument_;
  std::unique_ptr<std::byte[]> stack_ = std::make_unique<std::byte[]>(kStack);
  std::byte* low_ = end() - kFrame;
  Stop stop_ = Stop::ready;
  ucontext_t context_{}, scheduler_{};
};

}  // namespace tutti::fibers
