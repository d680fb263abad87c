// Ranks that read samples for those that train, as processes.

#include "tests/command/rank_processes.h"
#include "trireme/base/json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

class ReaderRanks : public RankTest {};

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

}  // namespace
}  // namespace trireme::command::test
