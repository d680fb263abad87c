// Ranks that hold less of a large model.

#include <algorithm>

#include "tests/command/rank_processes.h"
#include "trireme/base/json.h"

namespace trireme::command::test {
namespace {

// A rank that has half of a model never has the whole in its memory.
TEST_F(RankTest, DeferredInitialisationHasTheSameBitsInLessMemory) {
  const Words model = {"--model", "large"};
  run(with(model, {"record", "--out", folder}));
  run(with(model, {"partition", "--graph", path("train.graph.json"), "--stages", "2", "--batch",
                   "8", "--microbatch", "4", "--out", path("plan.json")}));
  const auto train = [&](const std::string& name, const Words& more) {
    run(with(
        with(model, {"train", "--plan", path("plan.json"), "--steps", "2", "--optimizer", "sgd",
                     "--no-first-step-check", "--run", path(name + ".run"), "--save", path(name)}),
        more));
    const Json document = Json::parse(text_of(path(name + ".run") + "/run.json"));
    return document["segments"].back()["resident_peak_bytes"].get<std::vector<std::int64_t>>();
  };
  const auto whole = train("whole", {}), deferred = train("deferred", {"--deferred-init"});
  EXPECT_TRUE(text_of(path("whole")) == text_of(path("deferred")));
  constexpr std::int64_t kSaved = std::int64_t{24} << 20;
  EXPECT_LT(deferred[1] + kSaved, whole[1]);  // the first rank gathers all weights in the end
  train("from", {"--deferred-init", "--init-from", path("whole"), "--learning-rate", "0"});
  EXPECT_TRUE(text_of(path("from")) == text_of(path("whole")));
}

// 16 layers in eight stages of one rank: what two replicas hold is as forecast, and less than with state alone in shards.
TEST_F(RankTest, ParametersInShardsTakeWhatWasForecast) {
  const Words training = {"--model", "large", "train", "--steps", "2", "--no-first-step-check"};
  const auto peak_of = [&](const std::string& shards, const Words& measured) {
    run(with(with(training, measured), {"--run",
                                        path(shards),
                                        "--ranks",
                                        "2",
                                        "--replicas",
                                        "2",
                                        "--stages",
                                        "8",
                                        "--stages-per-rank",
                                        "8",
                                        "--schedule",
                                        "simple",
                                        "--batch",
                                        "8",
                                        "--microbatch",
                                        "2",
                                        "--lanes",
                                        "2",
                                        "--balance",
                                        "parameters",
                                        "--" + shards,
                                        "--save",
                                        path(shards + ".weights")}));
    const Json segment = Json::parse(text_of(path(shards) + "/run.json"))["segments"].back();
    const auto peaks = segment["peak_bytes"].get<std::vector<double>>();
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      double predicted = 0;
      for (const auto& [kind, bytes] : segment["predicted_peak_bytes"][rank].items()) {
        predicted += bytes.get<double>();
      }
      EXPECT_NEAR(peaks[rank], predicted, 0.03 * predicted) << shards << ", rank " << rank;
    }
    return *std::ranges::max_element(peaks);
  };
  const double state = peak_of("shard-state", {});
  const std::string costs = path("shard-state");
  const double parameters = peak_of("shard-parameters", {"--profile", costs + "/profile-2.json",
                                                         "--topology", costs + "/topology-2.json"});
  EXPECT_LT(parameters, 0.95 * state);
  EXPECT_TRUE(text_of(path("shard-state.weights")) == text_of(path("shard-parameters.weights")));
  run(with(training, {"--plan", path("shard-parameters") + "/plan-1.json", "--deferred-init",
                      "--save", path("deferred.weights")}));
  EXPECT_TRUE(text_of(path("shard-state.weights")) == text_of(path("deferred.weights")));
}

}  // namespace
}  // namespace trireme::command::test
