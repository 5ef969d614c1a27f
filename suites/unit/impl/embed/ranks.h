// SPDX-License-Identifier: Apache-2.0
// Ranks of worlds for tests: threads that meet in a map, and forked processes that meet in a folder.
#pragma once

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "impl/embed/exchange.h"
#include "impl/embed/folder.h"
#include "impl/embed/world.h"

namespace tutti::embed {

/// For threads.
class Map {
 public:
  Exchange exchange() {
    return {.set =
                [this](const std::string& key, const std::string& value) {
                  const std::lock_guard lock(mutex_);
                  values_[key] = value;
                  set_.notify_all();
                  return Status();
                },
            .get = [this](const std::string& key, std::chrono::nanoseconds timeout) -> Result<std::string> {
              std::unique_lock lock(mutex_);
              if (set_.wait_for(lock, timeout, [&] { return values_.contains(key); })) return values_.at(key);
              return error(Code::timeout, "no rank has set '{}'", key);
            }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  std::map<std::string, std::string> values_;
};

inline Status run_in(World& world, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const auto operation, world.post(call));
  return operation->wait();
}

using Member = std::function<void(World& world)>;

/// How much of the memory of one world is allocated, of ranks that are threads on one host.
class WorldMemory {
 public:
  explicit WorldMemory(int host = 0) : key_("memory/" + std::to_string(host)) {}
  WorldMemory(const WorldMemory&) = delete;
  WorldMemory& operator=(const WorldMemory&) = delete;
  ~WorldMemory() { ::close(descriptor_); }
  /// Its maker says over the exchange which descriptor the memory has.
  [[nodiscard]] Exchange watched(const Exchange& exchange) {
    return {.set =
                [this, exchange](const std::string& key, const std::string& value) {
                  int pid = 0, number = -1;
                  if (key == key_ && std::sscanf(value.c_str(), "%d %d", &pid, &number) == 2) {
                    descriptor_ = ::dup(number);
                  }
                  return exchange.set(key, value);
                },
            .get = exchange.get};
  }
  [[nodiscard]] std::int64_t size() const { return about().st_size; }
  [[nodiscard]] std::int64_t allocated() const { return about().st_blocks * 512; }

 private:
  [[nodiscard]] struct stat about() const {
    struct stat about {};
    EXPECT_EQ(::fstat(descriptor_, &about), 0);
    return about;
  }
  std::string key_;
  int descriptor_ = -1;
};

/// Each rank a thread, which joins, does what `member` says and leaves.
inline void as_threads(int ranks, const Member& member, WorldOptions options = {}, WorldMemory* memory = nullptr) {
  options.timeout = std::chrono::seconds(20);
  Map map;
  const Exchange exchange = memory == nullptr ? map.exchange() : memory->watched(map.exchange());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = World::join(exchange, rank, ranks, options);
      ASSERT_TRUE(world.is_ok()) << world.status().message();
      member(*world.value());
    });
  }
  for (std::thread& each : threads) each.join();
}

/// Each rank a process, whose test fails where its text is not empty. Whoever is killed has none.
class Processes {
 public:
  using Rank = std::function<std::string(const Exchange& exchange, int rank)>;

  Processes(int ranks, const Rank& body) {
    std::array<char, 64> folder{"/tmp/tutti-embed-XXXXXX"};
    folder_ = ::mkdtemp(folder.data());
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        const std::string said = body(exchange_in(folder_).value(), rank);
        std::FILE* const file = std::fopen(text_of(rank).c_str(), "w");
        std::fputs(said.c_str(), file);
        std::fclose(file);
        ::_exit(0);
      }
      pids_.push_back(pid);
    }
  }
  ~Processes() {
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (pids_[rank] > 0) {
        ::kill(pids_[rank], SIGKILL);
        ::waitpid(pids_[rank], nullptr, 0);
      }
    }
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] pid_t pid_of(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  /// What a rank has to say, once it has ended.
  [[nodiscard]] std::string said_by(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    ::waitpid(pid, nullptr, 0);
    pid = 0;
    std::string text(4096, '\0');
    std::FILE* const file = std::fopen(text_of(rank).c_str(), "r");
    if (file == nullptr) return "killed";
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  }

 private:
  [[nodiscard]] std::string text_of(int rank) const { return folder_ + "/said." + std::to_string(rank); }
  std::string folder_;
  std::vector<pid_t> pids_;
};

}  // namespace tutti::embed
