#include "trireme/plan/sharding/sharding_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/base/document_form.h"
#include "tests/plan/sharding/convolutions.h"
#include "tests/plan/sharding/layers.h"
#include "trireme/base/files.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::sharding {
namespace {

using ::testing::HasSubstr;

Sharding sample() {
  return find_sharding(test::feed_forward(), {.num_shards = 2,
                                              .microbatch = 4,
                                              .flops_per_second = 1,
                                              .link_bytes_per_second = 1e30,
                                              .link_seconds = 0});
}

constexpr forms::DocumentForm<Sharding> kShardingForm{kShardingDocument, to_json,
                                                      sharding_from_json, save, load_sharding};

std::string sharding_complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kShardingForm, sample(), change);
}

TEST(ShardingJson, IsTheExampleOfTheDocument) {
  const std::string text = to_document_text(kShardingDocument, to_json(sample()));
  EXPECT_NE(read_file("docs/formats.md").find("```json\n" + text + "```\n"), std::string::npos)
      << text;
}

TEST(ShardingJson, SurvivesTheRoundTrip) {
  forms::expect_round_trip(kShardingForm, sample());
  forms::expect_files(kShardingForm, sample());
}

TEST(ShardingJson, OfTilesSurvivesTheRoundTrip) {
  const Sharding tiles =
      find_tiles(test::images(), {.num_shards = 2, .flops_per_second = 1, .link_seconds = 0});
  EXPECT_EQ(tiles.kind, SplitKind::kTiles);
  EXPECT_FALSE(tiles.parts.front().halos.empty());
  forms::expect_round_trip(kShardingForm, tiles);
}

TEST(ShardingJson, NamesWhatIsWrong) {
  EXPECT_THAT(sharding_complaint([](Json& json) { json["num_shards"] = 0; }),
              HasSubstr("num_shards"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["splits"][1]["blocks"] = 0; }),
              HasSubstr("splits[1].blocks"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["splits"][1]["value"] = 2; }),
              HasSubstr("twice"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["parts"][0].erase("sums"); }),
              HasSubstr("sums"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["more"] = 1; }), HasSubstr("more"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["kind"] = "bricks"; }),
              HasSubstr("expected 'tiles'"));
  EXPECT_THAT(sharding_complaint([](Json& json) { json["parts"][0]["halos"] = {1}; }),
              HasSubstr("halo_bytes"));
}

}  // namespace
}  // namespace trireme::sharding
