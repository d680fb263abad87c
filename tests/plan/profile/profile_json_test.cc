#include "trireme/plan/profile/profile_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "tests/base/document_form.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"

namespace trireme::profile {
namespace {

using ::testing::HasSubstr;

Profile full_profile() {
  Profile profile;
  profile.graph_sha256 = std::string(64, 'a');
  profile.microbatch = 4;
  profile.num_busy_ranks = 2;
  profile.threads = 4;
  profile.hardware = {"Processor 9000", 8, "AVX2", "2.15.0"};
  profile.costs = {{"aten::relu [4, 8]", 1.5, 2, 0, 0.1, {}, {0}, 0, 16, 0},
                   {"aten::linear", 10, 8, 1.0 / 3, 0.05, {0, 1}, {}, 128, 0, 256}};
  profile.cost_of = {1, 0, 1};
  profile.ranges = {{0, 2, 12, 11}, {2, 3, 10, std::numeric_limits<double>::infinity()}};
  profile.held = {100, 800, 1.25, 1.5};
  profile.uncaptured = {1.5, 1.75};
  profile.links = {{LinkKind::kHost, {{0, 5, 6}, {1024, 5.5, 7}}},
                   {LinkKind::kNetwork, {{0, 50, 60}}}};
  profile.step = {1.5, 0.4, 0.1, FileCosts{0.5, 0.25}, 12.5, {{64, 38.5}, {1024, 40}}};
  return profile;
}

constexpr forms::DocumentForm<Profile> kForm{kProfileDocument, to_json, profile_from_json, save,
                                             load};

std::string complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kForm, full_profile(), change);
}

TEST(ProfileJson, ProfileAndTextSurviveTheRoundTrip) {
  Profile smallest;
  smallest.microbatch = 1;
  for (const Profile& profile : {full_profile(), smallest}) {
    forms::expect_round_trip(kForm, profile);
  }
}

TEST(ProfileJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(complaint([](Json& json) { json.erase("step"); }),
            "profile: the field \"step\" is missing");
  EXPECT_THAT(complaint([](Json& json) { json["costs"][1]["forward_us"] = true; }),
              HasSubstr("profile.costs[1].forward_us: expected a number"));
  EXPECT_THAT(complaint([](Json& json) { json["costs"][0]["saved"] = {1}; }),
              HasSubstr("profile.costs[0]: unknown field \"saved\""));
  EXPECT_THAT(complaint([](Json& json) { json["cost_of"][2] = -1; }),
              HasSubstr("profile.cost_of[2]: expected a whole number from 0"));
  EXPECT_THAT(complaint([](Json& json) { json["links"][0]["times"][1].erase("alone_us"); }),
              HasSubstr("profile.links[0].times[1]: the field \"alone_us\" is missing"));
}

TEST(ProfileJson, TheExampleOfTheFormatsIsWhatTheCodeWrites) { forms::expect_example(kForm); }

TEST(ProfileJson, FilesLoadAndErrorsNameThem) {
  Profile profile = full_profile();
  profile.ranges[1].backward_us = 9;
  forms::expect_files(kForm, profile);
}

/// What only the graph shows was said without the file.
TEST(ProfileJson, OfAnotherGraphNamesTheFile) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("other_profile_" + std::to_string(::getpid()) + ".json");
  Profile profile = full_profile();
  profile.ranges[1].backward_us = 9;
  save(profile, path);
  try {
    load(path, graph::testing::make_mlp());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(path.string() + "': profile: it is of another graph"));
  }
  std::filesystem::remove(path);
}

/// The field was named without its file, and bad content ended as misuse.
TEST(ProfileJson, BadContentNamesTheFile) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("bad_profile_" + std::to_string(::getpid()) + ".json");
  save(full_profile(), path);  // A range takes for ever.
  try {
    load(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
    EXPECT_THAT(error.message(), HasSubstr("ranges[1].backward_us"));
  }
  std::filesystem::remove(path);
}

TEST(ProfileJson, AKindOfLinkThatThereIsNotIsNamed) {
  Json json = to_json(full_profile());
  json["links"][0]["kind"] = "rack";
  try {
    profile_from_json(json);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr("links[0].kind"));
    EXPECT_THAT(error.message(), HasSubstr("rack"));
  }
}

}  // namespace
}  // namespace trireme::profile
