#include <torch/torch.h>

#include <limits>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string decode(const std::vector<std::int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Bytes of the texts, padded by zeros.
torch::Tensor bytes_of(const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  auto bytes = torch::zeros({std::ssize(texts), static_cast<std::int64_t>(longest)}, torch::kLong);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t k = 0; k < texts[i].size(); ++k) {
      bytes[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(k)] = texts[i][k];
    }
  }
  return bytes;
}

MakeMetric rate_of(WordErrorRateOptions options = {}) {
  options.padding = 0;
  return [options] { return word_error_rate(decode, options); };
}

const std::vector<std::string> kReferences = {"the cat sat", "on a mat", ""};

TEST(WordErrorRateMetric, IsTheShareOfWordsOfAllReferences) {
  // An insertion; a substitution and a deletion: 3 of 6 words.
  EXPECT_THAT(measured(rate_of(), {{"references", bytes_of(kReferences)},
                                   {"hypotheses", bytes_of({"the cat sat down", "in mat", ""})}}),
              ElementsAre(Pair("WER", 0.5)));
  EXPECT_THAT(
      measured(rate_of({.ignores_case = true, .name = "e"}),
               {{"references", bytes_of(kReferences)},
                {"hypotheses", bytes_of({"THE CAT SAT", "ON A MAT", ""}).to(torch::kByte)}}),
      ElementsAre(Pair("e", 0)));
}

/// Five substitutions cost more than three deletions and three insertions, which are six errors.
TEST(WordErrorRateMetric, CountsTheCheapestAlignment) {
  const Tensors outputs = {{"references", bytes_of({"a b c x y"})},
                           {"hypotheses", bytes_of({"x y d e f"})}};
  EXPECT_THAT(measured(rate_of(), outputs), ElementsAre(Pair("WER", 1)));
  EXPECT_THAT(measured(rate_of({.costs = {4, 3, 3}}), outputs), ElementsAre(Pair("WER", 6.0 / 5)));
}

TEST(WordErrorRateMetric, WithoutWords) {
  const auto nothing = torch::zeros({2, 3}, torch::kLong);
  EXPECT_THAT(measured(rate_of(), {{"references", nothing}, {"hypotheses", nothing}}),
              ElementsAre(Pair("WER", 0)));
  EXPECT_THAT(measured(rate_of(), {{"references", nothing}, {"hypotheses", bytes_of({"a", "b"})}}),
              ElementsAre(Pair("WER", std::numeric_limits<double>::infinity())));
}

TEST(WordErrorRateMetric, WhatItRefuses) {
  EXPECT_THAT(
      refusal(rate_of(), {{"references", torch::zeros({2, 3})},
                          {"hypotheses", torch::zeros({2, 3}, torch::kLong)}}),
      HasSubstr("'references' has shape [2, 3] of floats; give integers [samples, length]"));
  EXPECT_THAT(refusal(rate_of(), {{"references", torch::zeros({2}, torch::kLong)},
                                  {"hypotheses", torch::zeros({2}, torch::kLong)}}),
              HasSubstr("shape [2]; give integers"));
  EXPECT_THAT(refusal(rate_of(), {{"references", torch::zeros({2, 3}, torch::kLong)},
                                  {"hypotheses", torch::zeros({3, 3}, torch::kLong)}}),
              HasSubstr("one of each for a sample"));
  EXPECT_THAT(test::error_of([] { word_error_rate(nullptr); }).message(), HasSubstr("no decode"));
}

}  // namespace
}  // namespace trireme::metrics
