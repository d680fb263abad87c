#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <random>

#include "tests/command/rank_processes.h"
#include "trireme/engine/checkpoint/checkpoint_folder.h"
#include "trireme/engine/checkpoint/checkpoint_reader.h"

namespace trireme::command::test {

/// A run in a folder that is ended and goes on, compared with one that nobody disturbed.
class Resume : public RankTest {
 protected:
  /// Ranks that outlive their launcher become children of this process.
  void SetUp() override {
    RankTest::SetUp();
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }

  /// Waits for the ranks of a launcher that was killed; nobody tells them but the system.
  static void expect_no_process() {
    const auto is_empty = [] {
      pid_t ended = 0;
      do {
        ended = ::waitpid(-1, nullptr, WNOHANG);
      } while (ended > 0);
      return ended < 0 && errno == ECHILD;
    };
    wait_until(is_empty, "the end of a rank that has no launcher");
  }

  static Words training(const std::string& run, int ranks, int steps) {
    return {"--model",
            "transformer",
            "train",
            "--run",
            run,
            "--ranks",
            std::to_string(ranks),
            "--batch",
            "8",
            "--microbatch",
            "2",
            "--lanes",
            "2",
            "--steps",
            std::to_string(steps),
            "--checkpoint-every",
            "3",
            "--clip-norm",
            "1",
            "--resume",
            "--no-drift-check"};
  }

  Words saving(Words words, const std::string& file) const {
    words.insert(words.end(), {"--save", path(file)});
    return words;
  }

  checkpoint::Folder checkpoints(const std::string& run) const {
    return checkpoint::Folder(std::filesystem::path(path(run)) / "checkpoints");
  }

  std::size_t num_steps(const std::string& run) const {
    const auto lines = lines_of(text_of(path(run) + "/metrics.jsonl"));
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("\"step_ms\"") != std::string::npos;  // the others are evaluations
    });
  }

  void wait_for_steps(std::size_t number) {
    wait_until([&] { return num_steps("run") >= number; }, "steps\n" + errors());
  }

  /// Runs it to its end; what it and its ranks say.
  std::string error_after(const Words& words, int code = 1) {
    const std::string own = run(words, code)->error();
    return own + errors();
  }

  /// Whatever has a published name must be whole. Returns the newest step, 0 where there is none.
  std::int64_t expect_whole(const std::string& run) const {
    std::int64_t newest = 0;
    for (const std::int64_t step : checkpoints(run).steps()) {
      EXPECT_NO_THROW(checkpoint::Reader(checkpoints(run).published(step)).verify()) << step;
      newest = step;
    }
    return newest;
  }

  /// Kills a run, its launcher or one of its ranks, `num_kills` times at random moments, each time
  /// with another number of ranks; then lets it end and compares the weights.
  ///
  /// more   words of all runs.
  void expect_same_bits_after_kills(int num_kills, unsigned seed, const Words& more = {});
};

inline void Resume::expect_same_bits_after_kills(int num_kills, unsigned seed, const Words& more) {
  const auto with_more = [&more](Words words) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  constexpr int kRankNumbers[] = {4, 2, 1};
  std::int64_t done = 0;
  for (int kill = 0; kill < num_kills; ++kill) {
    const int ranks = kRankNumbers[kill % 3];
    std::filesystem::remove(path("events"));
    const auto launcher = start(with_more(training(path("run"), ranks, 1'000'000)));
    const pid_t victim = ranks == 1 ? 0 : wait_for_event("start", pick(ranks));
    // A quarter while they start, the others after some steps.
    const bool has_moved = kill % 4 != 0;
    // Of two checkpoints that were due, the first is published: the second waited for it.
    if (has_moved) wait_for_steps(num_steps("run") + 8 + pick(8));
    std::this_thread::sleep_for(std::chrono::microseconds(pick(has_moved ? 10'000 : 500'000)));
    if (ranks == 1 || pick(2) == 0) {
      launcher->kill();
      EXPECT_EQ(launcher->wait(), -1) << launcher->error();
    } else {
      kill_process(victim);
      EXPECT_EQ(launcher->wait(), 1);
    }
    expect_no_process();
    const std::int64_t now = expect_whole("run");
    ASSERT_GE(now, done) << "steps were lost";
    if (has_moved) {
      EXPECT_GT(now, done);
    }
    done = now;
    if (HasFailure()) return;  // the next ones would wait in vain too
  }
  const int steps = static_cast<int>(done) + 7;
  run(with_more(saving(training(path("run"), 2, steps), "weights")));
  Words undisturbed = with_more(saving(training(path("undisturbed"), 4, steps), "expected"));
  *(std::find(undisturbed.begin(), undisturbed.end(), "--checkpoint-every") + 1) = "0";
  const auto process = start(undisturbed);
  EXPECT_EQ(process->wait(300s), 0) << process->error() << errors();  // many steps
  EXPECT_EQ(expect_whole("run"), steps);
  EXPECT_FALSE(text_of(path("expected")).empty());
  EXPECT_TRUE(text_of(path("weights")) == text_of(path("expected")))
      << "other weights after " << num_kills << " kills, seed " << seed;
}

}  // namespace trireme::command::test
