// Real processes that prepare the same text at once, and some that are killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "packs/text/data/prepare.h"
#include "tests/packs/text/data/text_folder.h"
#include "trireme/base/files.h"

namespace trireme::text {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Processes : public TextFolder {
 protected:
  void SetUp() override {
    TextFolder::SetUp();
    std::ofstream lines(folder / "text.jsonl");
    for (int i = 0; i < 600; ++i) {
      lines << compact_text({{"text", sample_code(i, 30)}}) << "\n";
    }
  }

  PrepareOptions options(const std::string& cache) const {
    return {.inputs = {folder / "text.jsonl"},
            .tokenizer = {.num_pieces = 500, .sample_bytes = 200'000},
            .cache = folder / cache,
            .num_threads = 1,
            .max_wait = std::chrono::minutes(2)};
  }

  /// A process that prepares and writes down what it got: `made` or `found`, and a hash.
  pid_t start(const std::string& cache, const std::string& name) const {
    const pid_t process = ::fork();
    if (process != 0) return process;
    std::string result;
    try {
      const Prepared prepared = prepare(options(cache), Logger(LogLevel::kOff));
      prepared.training.verify();
      result = (prepared.was_cached ? "found " : "made ") + prepared.training.sha256();
    } catch (const std::exception& error) {
      result = error.what();
    }
    write_file_atomically(folder / name, result);
    ::_exit(0);
  }

  std::string wait(pid_t process, const std::string& name) const {
    int status = 0;
    ::waitpid(process, &status, 0);
    return fs::exists(folder / name) ? read_file(folder / name) : "ended by a signal";
  }

  /// Entries of a cache folder with such an end to their name.
  int count(const std::string& cache, const std::string& ending) const {
    int result = 0;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(folder / cache, problem)) {
      result += entry.path().filename().extension() == ending ? 1 : 0;
    }
    return result;
  }

  /// Until an entry with that end to its name is there; at most 30 s.
  void wait_for(const std::string& cache, const std::string& ending) const {
    for (int i = 0; i < 30'000 && count(cache, ending) == 0; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
};

TEST_F(Processes, OnePreparesAndTheOthersWait) {
  std::vector<pid_t> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(start("cache", "result" + std::to_string(i)));
  int made = 0;
  std::set<std::string> hashes;
  for (int i = 0; i < 4; ++i) {
    const std::string result = wait(processes[i], "result" + std::to_string(i));
    EXPECT_THAT(result, testing::MatchesRegex("(made|found) [0-9a-f]*"));
    made += result.starts_with("made") ? 1 : 0;
    hashes.insert(result.substr(result.find(' ')));
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_EQ(count("cache", ".partial"), 0);
}

// At any time: nothing under the final name, or all of it; and the next one succeeds.
TEST_F(Processes, AKilledOneLeavesNothingBehind) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string reference = wait(start("whole", "reference"), "reference");
  const auto duration = std::chrono::steady_clock::now() - begin;
  ASSERT_THAT(reference, testing::StartsWith("made"));
  int num_killed = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string cache = "cache" + std::to_string(i), name = "result" + std::to_string(i);
    const pid_t process = start(cache, name);
    wait_for(cache, ".lock");
    std::this_thread::sleep_for(duration * i / 8);
    ::kill(process, SIGKILL);
    const bool is_killed = wait(process, name) == "ended by a signal";
    num_killed += is_killed ? 1 : 0;
    EXPECT_LE(count(cache, "") + count(cache, ".partial"), 1);
    const std::string next = wait(start(cache, name), name);
    EXPECT_EQ(next.substr(next.find(' ')), reference.substr(reference.find(' ')));
    EXPECT_EQ(count(cache, ".partial"), 0);
  }
  EXPECT_GE(num_killed, 3) << "they ended too early to be killed";
}

TEST_F(Processes, WhoWaitsForAKilledOneGoesOn) {
  const pid_t first = start("cache", "first");
  wait_for("cache", ".partial");
  const pid_t second = start("cache", "second");
  std::this_thread::sleep_for(milliseconds(100));
  ::kill(first, SIGKILL);
  EXPECT_EQ(wait(first, "first"), "ended by a signal");
  EXPECT_THAT(wait(second, "second"), testing::StartsWith("made"));
}

}  // namespace
}  // namespace trireme::text
