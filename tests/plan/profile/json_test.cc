#include "trireme/plan/profile/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <limits>

#include "trireme/base/error.h"
#include "trireme/base/files.h"

namespace trireme::profile {
namespace {

using ::testing::HasSubstr;

Profile full_profile() {
  Profile profile;
  profile.graph_sha256 = std::string(64, 'a');
  profile.microbatch = 4;
  profile.num_busy_ranks = 2;
  profile.hardware = {"Processor 9000", 8, "AVX2", "2.15.0"};
  profile.costs = {{"aten::relu [4, 8]", 1.5, 2, 0, 0.1, {}, {0}, 0, 16, 0},
                   {"aten::linear", 10, 8, 1.0 / 3, 0.05, {0, 1}, {}, 128, 0, 256}};
  profile.cost_of = {1, 0, 1};
  profile.ranges = {{0, 2, 12, 11}, {2, 3, 10, std::numeric_limits<double>::infinity()}};
  profile.links = {{"host", {{0, 5, 6}, {1024, 5.5, 7}}}, {"network", {{0, 50, 60}}}};
  profile.step = {1.5, 0.4, 0.1};
  return profile;
}

std::string complaint(const std::function<void(Json&)>& change) {
  Json json = to_json(full_profile());
  change(json);
  try {
    profile_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(ProfileJson, ProfileAndTextSurviveTheRoundTrip) {
  Profile smallest;
  smallest.microbatch = 1;
  for (const Profile& profile : {full_profile(), smallest}) {
    const std::string text = to_document_text(kProfileDocument, to_json(profile));
    const Profile back = profile_from_json(parse_document(kProfileDocument, text, "x"));
    EXPECT_EQ(back, profile);
    EXPECT_EQ(to_document_text(kProfileDocument, to_json(back)), text);
    EXPECT_EQ(profile_sha256(back), profile_sha256(profile));
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

TEST(ProfileJson, TheExampleOfTheFormatsIsWhatTheCodeWrites) {
  const std::string formats = read_file("docs/formats.md");
  const std::size_t section = formats.find("(`trireme.profile`)");
  const std::size_t begin = formats.find("```json\n", section) + 8;
  const std::string example = formats.substr(begin, formats.find("```\n", begin) - begin);
  const Json body = parse_document(kProfileDocument, example, "docs/formats.md");
  EXPECT_EQ(to_document_text(kProfileDocument, to_json(profile_from_json(body))), example);
}

TEST(ProfileJson, FilesLoadAndErrorsNameThem) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trireme_profile_" + std::to_string(::getpid()) + ".json");
  EXPECT_EQ(save(full_profile(), path), profile_sha256(full_profile()));
  EXPECT_EQ(load(path), full_profile());
  write_document(path, kProfileDocument, {{"costs", 1}});
  try {
    load(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trireme::profile
