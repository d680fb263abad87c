#pragma once

// `rank_program` as processes of a test.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trireme/wire/system/socket.h"

namespace trireme::command::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline constexpr std::chrono::milliseconds kPatience = 60s;  // of a test for what must happen

/// Within which ranks have to end: 2 s where nothing else runs, longer where others share the cores.
inline std::chrono::milliseconds soon() {
  double load = 0;
  ::getloadavg(&load, 1);
  const double share = load / static_cast<double>(std::thread::hardware_concurrency());
  return std::chrono::milliseconds(static_cast<std::int64_t>(2000 * std::max(1.0, share)));
}

/// tests/rank_program of the same build. Looked up once: a test may change the mounts of its
/// process.
inline const std::string& rank_program() {
  static const std::string kFile = [] {
    std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    while (folder.filename() != "tests" && folder.has_relative_path())
      folder = folder.parent_path();
    return folder / "rank_program" / "rank_program";
  }();
  return kFile;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Looks again and again; a test failure where it does not come true.
inline bool wait_until(const std::function<bool()>& is_true, const std::string& what) {
  const auto until = Clock::now() + kPatience;
  while (!is_true()) {
    if (Clock::now() > until) {
      ADD_FAILURE() << "waited in vain for " << what;
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// Ends one process. Never anything else: -1 and 0 would mean many.
inline void kill_process(pid_t pid) {
  ASSERT_GT(pid, 1) << "no process to end";
  ::kill(pid, SIGKILL);
}

/// One run of `rank_program`; killed where it is left.
class Process {
 public:
  /// out, error   files that get its output.
  Process(Words words, Variables variables, std::string out, std::string error)
      : out_(std::move(out)), error_(std::move(error)) {
    words.insert(words.begin(), rank_program());
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      variables.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    }
    Words settings;
    for (const auto& [name, value] : variables) settings.push_back(name + "=" + value);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_.c_str(), kWrite, 0600);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, error_.c_str(), kWrite, 0600);
    // Whoever started this test may ignore some: nohup, a shell's `&`.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&usual, signal);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int failed = posix_spawn(&pid_, words[0].c_str(), &files, &attributes,
                                   pointers(words).data(), pointers(settings).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error("cannot run " + words[0]);
    ended_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }

  ~Process() {
    if (has_ended_) return;
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void kill() const { kill_process(pid_); }

  /// It does nothing until told to go on.
  void stop() const { ASSERT_EQ(::kill(pid_, SIGSTOP), 0); }
  void go_on() const { ASSERT_EQ(::kill(pid_, SIGCONT), 0); }

  /// Its exit code, -1 for a signal; a test failure where it has not ended in that time.
  int wait(std::chrono::milliseconds time = kPatience) {
    pollfd entry{.fd = ended_.number(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, static_cast<int>(time.count())) != 1) {
      ADD_FAILURE() << "a process has not ended after " << time.count() << " ms; its errors:\n"
                    << error();
      return -1;
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    has_ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string out() const { return text_of(out_); }
  std::string error() const { return text_of(error_); }

 private:
  static std::vector<char*> pointers(Words& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  }

  std::string out_;
  std::string error_;
  pid_t pid_ = -1;
  Descriptor ended_;
  bool has_ended_ = false;
};

/// The lines of the evaluation.
inline std::string evaluation_in(const std::string& out) {
  std::string text;
  for (const std::string& line : lines_of(out)) {
    if (line.starts_with("evaluation")) text += line;
  }
  return text;
}

/// A folder for the files of a test, and processes that write there.
class RankTest : public testing::Test {
 protected:
  /// A fresh folder; a test may call it again.
  void SetUp() override {
    static int num_folders = 0;
    if (!folder.empty()) std::filesystem::remove_all(folder);
    folder = std::filesystem::temp_directory_path() /
             ("trireme-ranks-" + std::to_string(::getpid()) + "-" + std::to_string(num_folders++));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string& name) const { return folder / name; }

  std::unique_ptr<Process> start(const Words& words, Variables variables = {}) {
    variables.emplace("RANK_TEST_FOLDER", folder);
    variables.emplace("OMP_NUM_THREADS", "1");
    const std::string number = std::to_string(num_started_++);
    return std::make_unique<Process>(words, std::move(variables), path("out." + number),
                                     path("error." + number));
  }

  /// Runs it to its end.
  std::unique_ptr<Process> run(const Words& words, int expected_code = 0) {
    auto process = start(words);
    EXPECT_EQ(process->wait(), expected_code) << process->error() << errors();
    return process;
  }

  /// As a launcher that is not ours would start the ranks of a world. Each has `words` and then the
  /// words of its own, if there are such.
  std::vector<std::unique_ptr<Process>> start_by_hand(const Words& words, int num_ranks, int port,
                                                      const std::vector<Words>& own = {},
                                                      const Variables& variables = {}) {
    std::vector<std::unique_ptr<Process>> result;
    for (int rank = 0; rank < num_ranks; ++rank) {
      Words all = words;
      if (!own.empty()) all.insert(all.end(), own[rank].begin(), own[rank].end());
      Variables mine = variables;
      mine.insert({{"RANK", std::to_string(rank)},
                   {"WORLD_SIZE", std::to_string(num_ranks)},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", std::to_string(port)}});
      result.push_back(start(all, mine));
    }
    return result;
  }

  /// Waits for the rank's `start` or `stop`; its process.
  pid_t wait_for_event(const std::string& event, int rank) {
    const std::string wanted = event + " " + std::to_string(rank) + " ";
    pid_t pid = -1;
    const auto look = [&] {
      for (const std::string& line : lines_of(text_of(path("events")))) {
        if (line.starts_with(wanted)) pid = std::stoi(line.substr(wanted.size()));
      }
      return pid > 0;
    };
    wait_until(look, "'" + wanted + "'\n" + errors());
    return pid;
  }

  /// What a rank wrote to its standard error.
  std::string error_of(int rank) const { return text_of(path("stderr." + std::to_string(rank))); }

  std::string errors() const {
    std::string text;
    for (int rank = 0; std::filesystem::exists(path("stderr." + std::to_string(rank))); ++rank) {
      text += "rank " + std::to_string(rank) + ": " + error_of(rank) + "\n";
    }
    return text;
  }

  std::filesystem::path folder;

 private:
  int num_started_ = 0;
};

/// A port of this host that nobody uses.
inline int free_port() {
  const Descriptor listener = transport::listen_on({"127.0.0.1", 0});
  return transport::local_address(listener).port;
}

}  // namespace trireme::command::test
