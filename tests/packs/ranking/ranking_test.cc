#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "packs/ranking/metrics/group_counts.h"
#include "packs/ranking/metrics/log_loss.h"
#include "packs/ranking/metrics/roc_auc.h"
#include "tests/base/error_of.h"
#include "tests/wire/collectives/group_world.h"
#include "trireme/kernels/isa.h"

namespace trireme::ranking {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Ranking {
  std::vector<float> scores;
  std::vector<std::uint8_t> labels;

  double auc() const {
    std::vector<float> sorted = scores;
    return roc_auc(sorted, labels);
  }

  /// The definition.
  double pairs() const {
    double twice = 0, count = 0;
    for (std::size_t p = 0; p < scores.size(); ++p) {
      for (std::size_t n = 0; n < scores.size(); ++n) {
        if (labels[p] != 1 || labels[n] != 0) continue;
        twice += scores[p] > scores[n] ? 2 : scores[p] == scores[n] ? 1 : 0;
        ++count;
      }
    }
    return twice / (2 * count);
  }
};

/// kind   0: normal numbers; 1: few values, many ties; 2: over all powers of two; 3: one value.
Ranking random_ranking(std::size_t n, int kind, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Ranking ranking;
  for (std::size_t i = 0; i < n; ++i) {
    ranking.labels.push_back(i < 2 ? static_cast<std::uint8_t>(i) : random() % 3 == 0);
    float score = normal(random) + 0.5F * static_cast<float>(ranking.labels.back());
    if (kind == 1) score = std::round(2 * score) / 2;
    if (kind == 2) score = std::ldexp(score, static_cast<int>(random() % 250) - 125);
    ranking.scores.push_back(kind == 3 ? 0.25F : score);
  }
  return ranking;
}

TEST(RocAucTest, EqualsItsDefinition) {
  for (const std::size_t n : {2, 3, 63, 64, 65, 1000, 3000}) {
    for (int kind = 0; kind < 4; ++kind) {
      const Ranking ranking = random_ranking(n, kind, static_cast<unsigned>(n));
      EXPECT_EQ(ranking.auc(), ranking.pairs()) << n << " of kind " << kind;
      const kernels::IsaLimit portable(Isa::kPortable);
      EXPECT_EQ(ranking.auc(), ranking.pairs()) << n << " of kind " << kind;
    }
  }
}

TEST(RocAucTest, SortsFullBuckets) {
  // One score far away leaves all others in one bucket.
  Ranking ranking = random_ranking(3000, 0, 7);
  ranking.scores[5] = 1e30F;
  EXPECT_EQ(ranking.auc(), ranking.pairs());
  ranking.scores[6] = -kInfinity;
  ranking.scores[7] = kInfinity;
  EXPECT_EQ(ranking.auc(), ranking.pairs());
}

/// `count` scores of one value and label before those of `ranking`.
Ranking with_equal(std::size_t count, float score, std::uint8_t label, Ranking ranking) {
  ranking.scores.insert(ranking.scores.begin(), count, score);
  ranking.labels.insert(ranking.labels.begin(), count, label);
  return ranking;
}

TEST(RocAucTest, BucketsOfOneValueAndLabel) {
  for (const std::size_t count : {1, 63, 64, 65, 100, 129, 5000}) {
    for (const std::uint8_t label : {0, 1}) {
      const auto other = static_cast<std::uint8_t>(1 - label);
      for (const float far : {1.0F, 0.0F, -1.0F, 0.5F}) {
        const Ranking ranking = with_equal(count, 0.5F, label, {{far}, {other}});
        EXPECT_EQ(ranking.auc(), ranking.pairs()) << count << " of " << int{label} << ", " << far;
        const Ranking below = with_equal(count, -0.5F, label, {{far}, {other}});
        EXPECT_EQ(below.auc(), below.pairs()) << count << " of " << int{label} << ", " << far;
      }
    }
  }
}

TEST(RocAucTest, BucketsWhoseBitsSpreadOverThreeDigits) {
  // Beside 1e30 all others are in the two buckets around zero, over all their bits.
  for (const std::size_t n : {65, 66, 127, 1000, 3001}) {
    Ranking ranking = random_ranking(n, 2, static_cast<unsigned>(n));
    for (float& score : ranking.scores) score = std::ldexp(score, -30);
    EXPECT_EQ(ranking.auc(), ranking.pairs()) << n;
    EXPECT_EQ(with_equal(3, 1e30F, 0, ranking).auc(), with_equal(3, 1e30F, 0, ranking).pairs());
    EXPECT_EQ(with_equal(70, 1e-30F, 1, ranking).auc(), with_equal(70, 1e-30F, 1, ranking).pairs());
  }
}

TEST(RocAucTest, SizesAroundWhatIsLookedAtAtATime) {
  for (std::size_t n = 2; n < 200; ++n) {
    for (const int kind : {0, 1}) {
      const Ranking ranking = random_ranking(n, kind, static_cast<unsigned>(n));
      EXPECT_EQ(ranking.auc(), ranking.pairs()) << n << " of kind " << kind;
      // One bucket of n, sorted by comparing or by digits.
      Ranking far = ranking;
      far.scores[n / 2] = 1e30F;
      EXPECT_EQ(far.auc(), far.pairs()) << n << " of kind " << kind;
    }
  }
}

TEST(RocAucTest, OrdersZerosAndInfinities) {
  EXPECT_EQ((Ranking{{-0.0F, 0.0F}, {0, 1}}.auc()), 0.5);
  EXPECT_EQ((Ranking{{0.0F, -0.0F}, {0, 1}}.auc()), 0.5);
  EXPECT_EQ((Ranking{{-kInfinity, -1, 1e-45F, kInfinity, kInfinity}, {0, 0, 1, 1, 1}}.auc()), 1);
  EXPECT_EQ((Ranking{{-1e-45F, 1e-45F}, {1, 0}}.auc()), 0);
  EXPECT_EQ((Ranking{{0, 0}, {1, 0}}.auc()), 0.5);
}

TEST(RocAucTest, DoesNotDependOnThreads) {
  for (const int kind : {0, 1, 2, 3}) {
    const Ranking ranking = random_ranking(1'200'000, kind, 5);
    std::vector<float> sorted = ranking.scores;
    const double expected = roc_auc(sorted, ranking.labels);
    for (const int num_threads : {1, 2, 3}) {
      sorted = ranking.scores;
      EXPECT_EQ(roc_auc(sorted, ranking.labels, kernels::on_threads(num_threads)), expected)
          << num_threads << " threads, kind " << kind;
    }
  }
}

TEST(RocAucTest, NamesBadInput) {
  const auto message = [](Ranking ranking) {
    return test::error_of([&] { ranking.auc(); }).message();
  };
  EXPECT_EQ(message({{1, NAN, 2}, {0, 1, 0}}), "ROC AUC: score 1 is NaN");
  EXPECT_EQ(message({{1, -NAN}, {0, 1}}), "ROC AUC: score 1 is NaN");
  EXPECT_EQ(message({{1, 2}, {0, 2}}), "ROC AUC: label 1 is 2, expected 0 or 1");
  EXPECT_EQ(message({{1, 2}, {0}}), "ROC AUC: 2 scores, but 1 labels");
  EXPECT_EQ(message({{1, 2}, {1, 1}}), "ROC AUC: all labels are 1, expected both classes");
  EXPECT_EQ(message({{}, {}}), "ROC AUC: all labels are 0, expected both classes");
}

/// What each of some ranks, which share the scores in turns, gets: the number's bits or an error.
std::vector<std::string> auc_of_ranks(const Ranking& ranking, int num_ranks,
                                      transport::test::Backend backend) {
  std::vector<std::string> results(num_ranks);
  const auto body = [&](collectives::Group& group) {
    std::string& result = results[group.group_rank()];
    Ranking own;
    for (std::size_t i = group.group_rank(); i < ranking.scores.size(); i += num_ranks) {
      own.scores.push_back(ranking.scores[i]);
      own.labels.push_back(ranking.labels[i]);
    }
    GroupCounts counts(group);
    try {
      result =
          std::to_string(std::bit_cast<std::uint64_t>(roc_auc(own.scores, own.labels, counts)));
    } catch (const Error& error) {
      result = error.message();
    }
  };
  transport::test::expect_no_errors(collectives::test::run_group(backend, num_ranks, body));
  return results;
}

TEST(RocAucTest, IsThatOfOneRankOnMany) {
  using transport::test::Backend;
  for (const std::size_t n : {2, 50, 3000}) {
    for (int kind = 0; kind < 4; ++kind) {
      const Ranking ranking = random_ranking(n, kind, 11);
      const auto expected = std::to_string(std::bit_cast<std::uint64_t>(ranking.auc()));
      for (const int num_ranks : {1, 2, 3}) {
        for (const Backend backend : {Backend::kSim, Backend::kSimShared}) {
          for (const auto& result : auc_of_ranks(ranking, num_ranks, backend)) {
            EXPECT_EQ(result, expected) << n << " of kind " << kind << " on " << num_ranks;
          }
        }
      }
    }
  }
}

TEST(RocAucTest, EndsOnAllRanksWhereOneHasBadInput) {
  using transport::test::Backend;
  const auto results = auc_of_ranks({{1, 2, 3, NAN}, {0, 1, 0, 1}}, 3, Backend::kSim);
  EXPECT_EQ(results[0], "ROC AUC: score 1 is NaN");
  EXPECT_EQ(results[1], "ROC AUC: 1 other ranks have bad input");
  const auto one_class = auc_of_ranks({{1, 2}, {0, 0}}, 2, Backend::kSim);
  EXPECT_EQ(one_class[1], "ROC AUC: all labels are 0, expected both classes");
}

TEST(LogLossTest, SumsAndClips) {
  const std::vector<double> p = {0.5, 1, 0, 0.25};
  const std::vector<std::uint8_t> labels = {1, 1, 1, 0};
  const LogLoss loss = log_loss(std::span<const double>(p), labels);
  const double eps = std::numeric_limits<double>::epsilon();
  EXPECT_EQ(loss.num_positives, 3);
  EXPECT_NEAR(loss.mean(),
              -(std::log(0.5) + std::log(1 - eps) + std::log(eps) + std::log(0.75)) / 4, 1e-14);
  const std::vector<double> base(16, 0.25);
  std::vector<std::uint8_t> quarter(16, 0);
  quarter[0] = quarter[5] = quarter[9] = quarter[15] = 1;
  LogLoss parts = log_loss(std::span<const double>(base).first(5), std::span(quarter).first(5));
  parts += log_loss(std::span<const double>(base).subspan(5), std::span(quarter).subspan(5));
  EXPECT_NEAR(parts.normalized_entropy(), 1, 1e-15);
}

TEST(LogLossTest, ClipsByTheTypesEpsilon) {
  const std::vector<float> p = {0, 1, 1e-9F};
  const std::vector<std::uint8_t> labels = {1, 0, 0};
  const double eps = 0x1p-23;
  EXPECT_NEAR(log_loss(std::span<const float>(p), labels).sum,
              -(2 * std::log(eps) + std::log(1 - eps)), 1e-14);
}

TEST(LogLossTest, DoesNotDependOnThreads) {
  std::vector<float> probabilities(700'001);
  std::vector<std::uint8_t> labels(probabilities.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    probabilities[i] = static_cast<float>(i * 7919 % 100'003) / 100'003;
    labels[i] = i % 3 == 0;
  }
  const std::span<const float> all = probabilities;
  const LogLoss expected = log_loss(all, labels);
  for (const int num_threads : {1, 2, 3}) {
    const LogLoss made = log_loss(all, labels, kernels::on_threads(num_threads));
    EXPECT_EQ(made.sum, expected.sum) << num_threads;
    EXPECT_EQ(made.num_positives, expected.num_positives);
  }
  probabilities[300'000] = 2;
  probabilities[600'000] = NAN;
  const Error error = test::error_of([&] { log_loss(all, labels, kernels::on_threads(3)); });
  EXPECT_NE(error.message().find("probability 300000 is 2"), std::string::npos) << error.message();
}

TEST(LogLossTest, NamesBadInput) {
  const auto message = [](std::vector<float> p, std::vector<std::uint8_t> labels) {
    return test::error_of([&] { log_loss(std::span<const float>(p), labels); }).message();
  };
  EXPECT_EQ(message({0.5F, NAN}, {0, 0}), "log loss: probability 1 is nan, expected 0 to 1");
  EXPECT_EQ(message({1.5F}, {0}), "log loss: probability 0 is 1.500000, expected 0 to 1");
  EXPECT_EQ(message({0.5F}, {3}), "log loss: label 0 is 3, expected 0 or 1");
  EXPECT_EQ(message({0.5F}, {}), "log loss: 1 probabilities, but 0 labels");
}

}  // namespace
}  // namespace trireme::ranking
