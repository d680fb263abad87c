// Ranks that are real programs of a shell.

#include "trireme/launch/launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "trireme/base/descriptor.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/store.h"

namespace trireme::launch::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

LaunchOptions shell(int num_ranks, const std::string& script) {
  return {.num_ranks = num_ranks,
          .program = "sh",
          .words = {"sh", "-c", script},
          .adopts_orphans = true,
          .grace = 300ms,
          .kill_after = 300ms};
}

/// A launcher in a process of its own.
class Launched {
 public:
  /// prepare   run in that process before.
  explicit Launched(const LaunchOptions& options, const std::function<void()>& prepare = [] {}) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err.data(), O_CLOEXEC), 0);
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      // Whoever started this test may ignore some: nohup, a shell's `&`.
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
      prepare();
      run(options);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_.pipe = Descriptor(out[0]);
    err_.pipe = Descriptor(err[0]);
  }

  ~Launched() {
    if (pid_ > 1) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }

  /// Exit code once it has ended and nobody has its outputs any more; negative for a signal.
  int wait() {
    read_until([] { return false; });
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// Exit code, as above, of one whose outputs nobody takes; nothing where it does not end within
  /// `time`.
  std::optional<int> wait_without_reading(std::chrono::milliseconds time) {
    const auto deadline = Clock::now() + time;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() >= deadline) return std::nullopt;
      ::usleep(5'000);
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// Reads until its output has `text`.
  void wait_for(const std::string& text) {
    read_until([&] { return out_.text.find(text) != std::string::npos; });
    EXPECT_THAT(out_.text, HasSubstr(text)) << err_.text;
  }

  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    Descriptor pipe;
    std::string text;
  };

  [[noreturn]] static void run(const LaunchOptions& options) {
    int code = 99;
    try {
      code = launch(options).exit_code;
    } catch (const Error& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      std::fflush(stderr);
    }
    ::_exit(code);
  }

  /// Reads both outputs until `is_done` or their end, at most 20 s.
  void read_until(const std::function<bool()>& is_done) {
    const auto deadline = Clock::now() + 20s;
    while (!is_done() && (out_.pipe.is_open() || err_.pipe.is_open())) {
      ASSERT_LT(Clock::now(), deadline) << "hangs after: " << out_.text << err_.text;
      std::array<pollfd, 2> entries = {pollfd{out_.pipe.number(), POLLIN, 0},
                                       pollfd{err_.pipe.number(), POLLIN, 0}};
      ::poll(entries.data(), entries.size(), 100);
      if (entries[0].revents != 0) read(out_);
      if (entries[1].revents != 0) read(err_);
    }
  }

  static void read(Stream& stream) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(stream.pipe.number(), buffer.data(), buffer.size());
    if (count > 0) {
      stream.text.append(buffer.data(), static_cast<std::size_t>(count));
    } else {
      stream.pipe.reset();
    }
  }

  pid_t pid_ = 0;
  Stream out_;
  Stream err_;
};

/// Whether a process is gone, within 5 s; one that nobody has reaped counts as gone.
bool is_gone(pid_t pid) {
  const auto deadline = Clock::now() + 5s;
  const std::string command =
      "grep -q '^State:.Z' /proc/" + std::to_string(pid) + "/status 2> /dev/null";
  while (Clock::now() < deadline) {
    if (::kill(pid, 0) != 0 || std::system(command.c_str()) == 0) return true;
    ::usleep(10'000);
  }
  return false;
}

pid_t number_after(const std::string& text, const std::string& word) {
  const std::size_t place = text.find(word);
  EXPECT_NE(place, std::string::npos) << text;
  return place == std::string::npos ? 0 : std::atoi(text.c_str() + place + word.size());
}

TEST(Launch, RanksKnowWhoTheyAre) {
  Launched launched(shell(3,
                          "echo $TRIREME_RANK of $TRIREME_WORLD_SIZE by $TRIREME_LAUNCHER_PID "
                          "at $TRIREME_STORE_HOST, secret ${#TRIREME_TOKEN}"));
  EXPECT_EQ(launched.wait(), 0) << launched.err();
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(launched.out(), HasSubstr(std::string("[") + rank + "] " + rank + " of 3 by "));
  }
  EXPECT_THAT(launched.out(), HasSubstr("at 127.0.0.1, secret 64\n"));
  EXPECT_EQ(launched.err(), "");
}

TEST(Launch, LinesStayWholeAndOutputsApart) {
  Launched launched(shell(4,
                          "i=0; while [ $i -lt 300 ]; do echo line-$i-of-$TRIREME_RANK; "
                          "i=$((i+1)); done; echo wrong >&2; printf last"));
  EXPECT_EQ(launched.wait(), 0);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string prefix = "[" + std::to_string(rank) + "] ";
    EXPECT_THAT(launched.out(), HasSubstr(prefix + "last\n"));
    EXPECT_THAT(launched.err(), HasSubstr(prefix + "wrong\n"));
    for (const int line : {0, 150, 299}) {
      EXPECT_THAT(launched.out(), HasSubstr(prefix + "line-" + std::to_string(line) + "-of-" +
                                            std::to_string(rank) + "\n"));
    }
  }
  EXPECT_EQ(std::count(launched.out().begin(), launched.out().end(), '\n'), 4 * 301);
  EXPECT_THAT(launched.out(), Not(HasSubstr("wrong")));
}

TEST(Launch, TheFirstFailureIsTheExitCode) {
  Launched launched(shell(3, "if [ $TRIREME_RANK = 1 ]; then exit 7; fi; sleep 60"));
  const auto start = Clock::now();
  EXPECT_EQ(launched.wait(), 7);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_EQ(launched.err(), "trireme: rank 1 failed: its process ended with exit code 7\n");
}

// `nobody cares` is inherited through exec: the system then forgets how children ended.
TEST(Launch, AFailureCountsWhereSigchldIsIgnored) {
  Launched launched(shell(2, "exit 7"), [] { ::signal(SIGCHLD, SIG_IGN); });
  EXPECT_EQ(launched.wait(), 7);
  ::signal(SIGCHLD, SIG_IGN);
  EXPECT_NO_THROW(launch({.program = "true", .words = {"true"}}));
  EXPECT_EQ(::signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

TEST(Launch, ARanksLastWordsComeBeforeItsFailure) {
  Launched launched(shell(1, "echo broken >&2; exit 3"));
  EXPECT_EQ(launched.wait(), 3);
  EXPECT_EQ(launched.err(),
            "[0] broken\ntrireme: rank 0 failed: its process ended with exit code 3\n");
}

// As under `less`, whose user reads on later.
TEST(Launch, HearsSignalsWhileNobodyTakesItsOutput) {
  Launched launched(shell(2, "echo ready $TRIREME_RANK; exec yes 'to nobody'"));
  launched.wait_for("ready 0");
  launched.wait_for("ready 1");
  ::usleep(200'000);  // all pipes are full
  ASSERT_EQ(::kill(launched.pid(), SIGTERM), 0);
  EXPECT_EQ(launched.wait_without_reading(3s), 128 + SIGTERM);
}

TEST(Launch, WaitsForWhoTakesItsOutputLate) {
  Launched launched(shell(1, "yes 'all of it' | head -n 100000"));
  EXPECT_EQ(launched.wait_without_reading(500ms), std::nullopt);
  EXPECT_EQ(launched.wait(), 0);
  EXPECT_EQ(std::count(launched.out().begin(), launched.out().end(), '\n'), 100'000);
}

TEST(Launch, ASignalIsNamed) {
  Launched launched(shell(2, "if [ $TRIREME_RANK = 0 ]; then kill -SEGV $$; fi; sleep 60"));
  EXPECT_EQ(launched.wait(), 128 + SIGSEGV);
  EXPECT_THAT(launched.err(), HasSubstr("rank 0 failed: its process was ended by signal 11"));
}

TEST(Launch, ARankThatIgnoresSigtermIsKilled) {
  Launched launched(shell(2,
                          "if [ $TRIREME_RANK = 0 ]; then sleep 0.2; exit 3; fi; trap '' TERM; "
                          "while :; do sleep 0.05; done"));
  const auto start = Clock::now();
  EXPECT_EQ(launched.wait(), 3);
  EXPECT_GE(Clock::now() - start, 800ms);
  EXPECT_LT(Clock::now() - start, 6s);
}

TEST(Launch, SignalsGoToAllRanks) {
  Launched launched(shell(2,
                          "trap 'echo usr1' USR1; trap 'echo term; exit 4' TERM; echo ready; "
                          "while :; do sleep 0.02; done"));
  launched.wait_for("[0] ready");
  launched.wait_for("[1] ready");
  ASSERT_EQ(::kill(launched.pid(), SIGUSR1), 0);
  launched.wait_for("[0] usr1");
  launched.wait_for("[1] usr1");
  ASSERT_EQ(::kill(launched.pid(), SIGTERM), 0);
  EXPECT_EQ(launched.wait(), 4);
  EXPECT_THAT(launched.out(), HasSubstr("[0] term"));
  EXPECT_THAT(launched.out(), HasSubstr("[1] term"));
}

TEST(Launch, WhoIgnoresAForwardedSignalIsKilled) {
  LaunchOptions options = shell(1, "trap '' INT; echo ready; while :; do sleep 0.02; done");
  options.signal_grace = 200ms;
  Launched launched(options);
  launched.wait_for("ready");
  ASSERT_EQ(::kill(launched.pid(), SIGINT), 0);
  EXPECT_EQ(launched.wait(), 128 + SIGINT);
  EXPECT_EQ(launched.err(), "trireme: ended by signal 2 (Interrupt)\n");
}

// A stopped process hears no SIGTERM: the launcher waited for two graces.
TEST(Launch, AStoppedRankIsKilledOnceOthersHaveFailed) {
  LaunchOptions options =
      shell(2, "if [ $TRIREME_RANK = 1 ]; then kill -STOP $$; fi; sleep 0.5; exit 3");
  options.grace = 60s;
  Launched launched(options);
  EXPECT_EQ(launched.wait(), 3);  // within 20 s
}

TEST(Launch, OutputThatIsLostIsAFailure) {
  Launched launched(shell(1, "echo text"), [] {
    const int full = ::open("/dev/full", O_WRONLY);
    ::dup2(full, 1);
  });
  EXPECT_EQ(launched.wait(), 99);
  EXPECT_THAT(launched.err(), HasSubstr("No space left on device"));
}

TEST(Launch, ProgramsForOtherLaunchersKnowTheirRank) {
  Launched launched(shell(2, "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here"));
  EXPECT_EQ(launched.wait(), 0) << launched.err();
  EXPECT_THAT(launched.out(), HasSubstr("[1] 1 of 2, 1 of 2 here"));
}

// As under nohup, when the terminal closes.
TEST(Launch, IgnoredSignalsEndNothing) {
  LaunchOptions options = shell(1, "echo ready; sleep 0.5; echo done");
  options.signal_grace = 100ms;
  Launched launched(options, [] { ::signal(SIGHUP, SIG_IGN); });
  launched.wait_for("ready");
  ASSERT_EQ(::kill(launched.pid(), SIGHUP), 0);
  EXPECT_EQ(launched.wait(), 0);
  EXPECT_THAT(launched.out(), HasSubstr("done"));
}

// One in the rank's group, one in a session of its own; both have the outputs still.
TEST(Launch, GrandchildrenDoNotOutliveIt) {
  Launched launched(shell(1,
                          "sleep 61 & echo near $!; setsid sh -c 'echo far $$; exec sleep 62' & "
                          "sleep 0.3; echo done"));
  const auto start = Clock::now();
  EXPECT_EQ(launched.wait(), 0);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_THAT(launched.out(), HasSubstr("done"));
  EXPECT_TRUE(is_gone(number_after(launched.out(), "near ")));
  EXPECT_TRUE(is_gone(number_after(launched.out(), "far ")));
}

// Later its group's number may belong to others.
TEST(Launch, WhatARankLeavesInItsGroupEndsWithIt) {
  Launched launched(shell(2,
                          "if [ $TRIREME_RANK = 0 ]; then sleep 61 & echo near $!; exit 0; fi; "
                          "trap 'exit 0' USR1; echo ready; while :; do sleep 0.02; done"));
  launched.wait_for("near ");
  launched.wait_for("[1] ready");
  EXPECT_TRUE(is_gone(number_after(launched.out(), "near ")));
  ASSERT_EQ(::kill(launched.pid(), SIGUSR1), 0);
  EXPECT_EQ(launched.wait(), 0);
}

TEST(Launch, RanksDieWithTheLauncher) {
  Launched launched(shell(2, "echo pid $$; while :; do sleep 0.05; done"));
  launched.wait_for("[0] pid ");
  launched.wait_for("[1] pid ");
  const pid_t rank = number_after(launched.out(), "[0] pid ");
  ASSERT_GT(rank, 1);
  ASSERT_EQ(::kill(launched.pid(), SIGKILL), 0);
  EXPECT_EQ(launched.wait(), -SIGKILL);
  EXPECT_TRUE(is_gone(rank));
}

TEST(Launch, AProgramThatDoesNotExistIsNamed) {
  LaunchOptions options = shell(2, "");
  options.program = "no-such-program";
  Launched launched(options);
  EXPECT_EQ(launched.wait(), 99);
  EXPECT_THAT(launched.err(), HasSubstr("invalid argument: cannot start 'no-such-program' as rank "
                                        "0: No such file or directory"));
  EXPECT_THROW(launch({.num_ranks = 0, .program = "sh", .words = {"sh"}}), Error);
}

/// Not a test of its own: what the ranks of the next one do.
TEST(Launch, DISABLED_BodyOfARank) {
  const auto environment = read_environment().ranks;
  ASSERT_TRUE(environment.has_value());
  const transport::Token token = transport::token_of_job(*environment, Logger(LogLevel::kWarning));
  transport::StoreClient store({environment->store_host, environment->store_port},
                               environment->rank, {}, token);
  store.set(std::to_string(environment->rank), "here");
  EXPECT_EQ(store.get(std::to_string(1 - environment->rank), 20s), "here");
  EXPECT_THROW(transport::StoreClient({environment->store_host, environment->store_port}, 5, {},
                                      transport::Token::for_tests()),
               Error);
  for (const char* key : {"a", "b"}) store.set(key + std::to_string(environment->rank), "");
  store.get("b" + std::to_string(1 - environment->rank), 20s);
  store.shutdown();
}

TEST(Launch, RanksMeetWithTheJobsToken) {
  Launched launched({.num_ranks = 2,
                     .program = "/proc/self/exe",
                     .words = {"rank", "--gtest_filter=Launch.DISABLED_BodyOfARank",
                               "--gtest_also_run_disabled_tests", "--gtest_brief=1"},
                     .adopts_orphans = true});
  EXPECT_EQ(launched.wait(), 0) << launched.out() << launched.err();
  EXPECT_THAT(launched.out(), HasSubstr("[0] [  PASSED  ] 1 test"));
}

}  // namespace
}  // namespace trireme::launch::test
