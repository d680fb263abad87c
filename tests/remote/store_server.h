#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/remote_environment.h"
#include "trireme/remote/retry.h"

namespace trireme::test {

/// A process that serves a folder as S3 does, and goes wrong as it is told (store_server.py). Ends with the test's process.
class StoreServer {
 public:
  explicit StoreServer(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_ / "objects");
    start();
  }
  ~StoreServer() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(input_);
  }
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// False where there is no Python to run it.
  bool is_there() const { return !port_.empty(); }

  std::string url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + port_;
  }

  /// An object of a bucket: `b/x.tar`.
  void put(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = folder_ / "objects" / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

  /// A line of faults: `/b/x.tar cut 1 1000`.
  void fail(const std::string& line) const {
    std::ofstream(folder_ / "faults", std::ios::app) << line << "\n";
  }

  void require_keys(const std::string& id, const std::string& secret) const {
    std::ofstream(folder_ / "keys") << id << " " << secret;
  }

  /// What was asked and answered, a line each, in the order of the answers' ends.
  std::vector<std::string> log() const {
    std::ifstream file(folder_ / "log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  /// How many lines of the log begin so.
  std::int64_t count(const std::string& begin) const {
    const auto lines = log();
    return std::ranges::count_if(lines, [&](const auto& line) { return line.starts_with(begin); });
  }

  /// An environment that asks it, with a cache of its own.
  RemoteEnvironment environment() const {
    return {.cache_folder = folder_ / "cache",
            .s3_region = "us-east-1",
            .s3_endpoint = url(),
            .gs_endpoint = url()};
  }

 private:
  void start() {
    const char* python = ::access(".venv/bin/python", X_OK) == 0 ? ".venv/bin/python" : "python3";
    std::string program = "tests/remote/store_server.py", argument = folder_.string(),
                name = python, option = "-B";
    std::array<char*, 5> words = {name.data(), option.data(), program.data(), argument.data(),
                                  nullptr};
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    if (::posix_spawnp(&process_, python, &files, nullptr, words.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&files);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    for (char letter = 0; ::read(out[0], &letter, 1) == 1 && letter != '\n';) port_ += letter;
    ::close(out[0]);
  }

  std::filesystem::path folder_;
  pid_t process_ = -1;
  int input_ = -1;
  std::string port_;
};

/// Short waits, for tests.
inline remote::RetryPolicy quick_policy() {
  using namespace std::chrono_literals;
  return {.first_wait = 10ms, .longest_wait = 50ms, .stall = 1s, .patience = 3s};
}

}  // namespace trireme::test
