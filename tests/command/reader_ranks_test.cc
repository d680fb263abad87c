// Ranks that read samples for those that train, as processes.

#include "tests/command/resume.h"
#include "trireme/base/json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

class ReaderRanks : public Resume {};

/// Samples of several lengths too, and evaluations.
TEST_F(ReaderRanks, ChangeNoBits) {
  for (const char* model : {"tagger", "resnet"}) {
    const Words words = {"--model", model,     "train", "--batch",    "12", "--microbatch",
                         "2",       "--lanes", "2",     "--replicas", "2",  "--steps",
                         "4"};
    const auto train = [&](const Words& more) {
      Words all = words;
      all.insert(all.end(), {"--save", path("weights"), "--metrics", path("metrics")});
      all.insert(all.end(), more.begin(), more.end());
      run(all);
      const Json evaluation = Json::parse(lines_of(text_of(path("metrics"))).back());
      return text_of(path("weights")) + evaluation["evaluation"].dump();
    };
    const std::string expected = train({});
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(train({"--reader-ranks", "1"}) == expected) << model;
    EXPECT_TRUE(train({"--reader-ranks", "2", "--reader-threads", "2"}) == expected) << model;
  }
}

// Killed at a sample of the evaluation, which no rank that trains has read: the others end soon, with a message that names it.
TEST_F(ReaderRanks, AreNamedWhereTheyAreLost) {
  constexpr int kReader = 2;
  const auto launcher = start({"--model", "gated", "train", "--batch", "8", "--microbatch", "2",
                               "--stages", "2", "--steps", "2", "--reader-ranks", "1"},
                              {{"RANK_TEST_STOP", "evaluate:" + std::to_string(kReader)}});
  kill_process(wait_for_event("stop", kReader));
  EXPECT_EQ(launcher->wait(soon()), 1);
  for (int rank = 0; rank < kReader; ++rank)
    EXPECT_THAT(error_of(rank), HasSubstr("rank " + std::to_string(kReader) + " is lost"));
}

TEST_F(ReaderRanks, KilledRunsGoOnToTheSameBits) {
  expect_same_bits_after_kills(2, 11, {"--reader-ranks", "1"});
}

/// The signal comes to all of them: who reads does so until the last checkpoint is written. It goes on with other readers.
TEST_F(ReaderRanks, EndWithARunThatIsStopped) {
  const auto run_of = [this](const std::string& name, std::int64_t steps, const char* readers) {
    Words words = training(path(name), 1, static_cast<int>(steps));
    words.insert(words.end(), {"--reader-ranks", readers});
    return words;
  };
  const auto launcher = start(run_of("run", 1'000'000, "1"));
  wait_for_steps(3);
  ASSERT_EQ(::kill(launcher->pid(), SIGTERM), 0);
  EXPECT_EQ(launcher->wait(), 0) << launcher->error() << errors();
  const std::int64_t steps = expect_whole("run") + 2;
  run(saving(run_of("run", steps, "2"), "weights"));
  run(saving(run_of("plain", steps, "0"), "expected"));
  ASSERT_FALSE(text_of(path("expected")).empty());
  EXPECT_TRUE(text_of(path("weights")) == text_of(path("expected")));
}

}  // namespace
}  // namespace trireme::command::test
