#pragma once

#include <random>

#include "tests/command/rank_processes.h"
#include "trireme/engine/checkpoint/folder.h"
#include "trireme/engine/checkpoint/reader.h"

namespace trireme::command::test {

/// A run in a folder that is ended and goes on, compared with one that nobody disturbed.
class Resume : public RankTest {
 protected:
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
            "--drift-check-step",
            "-1"};
  }

  Words saving(Words words, const std::string& file) const {
    words.insert(words.end(), {"--save", path(file)});
    return words;
  }

  checkpoint::Folder checkpoints(const std::string& run) const {
    return checkpoint::Folder(std::filesystem::path(path(run)) / "checkpoints");
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
  void expect_same_bits_after_kills(int num_kills, unsigned seed);
};

inline void Resume::expect_same_bits_after_kills(int num_kills, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  constexpr int kRankNumbers[] = {4, 2, 1};
  std::int64_t done = 0;
  int num_moved = 0;
  for (int kill = 0; kill < num_kills; ++kill) {
    const int ranks = kRankNumbers[kill % 3];
    std::filesystem::remove(path("events"));
    const auto launcher = start(training(path("run"), ranks, 1'000'000));
    const pid_t victim = ranks == 1 ? 0 : wait_for_event("start", pick(ranks));
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + pick(1200)));
    if (ranks == 1 || pick(2) == 0) {
      launcher->kill();
    } else {
      kill_process(victim);
    }
    launcher->wait();
    const std::int64_t now = expect_whole("run");
    ASSERT_GE(now, done) << "steps were lost";
    num_moved += now > done ? 1 : 0;
    done = now;
  }
  EXPECT_GT(num_moved, num_kills / 4) << "most kills came before a checkpoint";
  const int steps = static_cast<int>(done) + 7;
  run(saving(training(path("run"), 2, steps), "weights"));
  run(saving(training(path("undisturbed"), 4, steps), "expected"));
  EXPECT_EQ(expect_whole("run"), steps);
  EXPECT_FALSE(text_of(path("expected")).empty());
  EXPECT_TRUE(text_of(path("weights")) == text_of(path("expected")))
      << "other weights after " << num_kills << " kills, seed " << seed;
}

}  // namespace trireme::command::test
