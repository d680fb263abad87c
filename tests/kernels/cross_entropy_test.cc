#include "trireme/kernels/loss/cross_entropy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

struct LossRows {
  std::vector<float> logits;
  std::vector<std::int64_t> classes;
  std::int64_t num_classes;

  LossRows(std::int64_t num_rows, std::int64_t k, float spread) : num_classes(k) {
    std::mt19937 random(static_cast<unsigned>(17 * num_rows + k));
    std::normal_distribution<float> normal(0, spread);
    for (std::int64_t i = 0; i < num_rows * k; ++i) logits.push_back(normal(random));
    for (std::int64_t i = 0; i < num_rows; ++i) {
      classes.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(k)));
    }
  }

  ClassRows rows() const {
    return {logits.data(), classes.data(), static_cast<std::int64_t>(classes.size()), num_classes};
  }

  struct Results {
    std::vector<float> losses, log_sums, made;
    bool operator==(const Results&) const = default;
  };

  Results results(const Spread& spread = on_caller) const {
    Results r{std::vector<float>(classes.size()), std::vector<float>(classes.size()),
              std::vector<float>(logits.size(), 7)};
    cross_entropy(rows(), r.losses.data(), r.log_sums.data(), spread);
    std::vector<float> gradients;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      gradients.push_back(i % 7 < 3 ? 0.0F : 0.5F + static_cast<float>(i));
    }
    cross_entropy_backward(rows(), r.log_sums.data(), gradients.data(), r.made.data(), spread);
    return r;
  }
};

TEST(CrossEntropyTest, IsTheFormula) {
  for (const std::int64_t k : {1, 2, 15, 16, 17, 33, 1024, 1025, 5000}) {
    const LossRows rows(7, k, 3);
    const LossRows::Results made = rows.results();
    for (std::size_t r = 0; r < rows.classes.size(); ++r) {
      const float* x = rows.logits.data() + static_cast<std::int64_t>(r) * k;
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += std::exp(static_cast<double>(x[i]));
      const double log_sum = std::log(sum);
      EXPECT_NEAR(made.log_sums[r], log_sum, 2e-6 * (1 + std::abs(log_sum)));
      EXPECT_NEAR(made.losses[r], log_sum - x[rows.classes[r]], 4e-6 * (2 + std::abs(log_sum)));
      const double g = r % 7 < 3 ? 0 : 0.5 + static_cast<double>(r);
      for (std::int64_t i = 0; i < k; ++i) {
        const double expected = g * (std::exp(x[i] - log_sum) - (i == rows.classes[r] ? 1 : 0));
        EXPECT_NEAR(made.made[static_cast<std::int64_t>(r) * k + i], expected, 4e-6 * g);
      }
    }
  }
}

TEST(CrossEntropyTest, HasTheSameBitsForAllInstructionsAndThreads) {
  for (const std::int64_t k : {1, 17, 81, 1300}) {
    const LossRows rows(500, k, 2);
    const LossRows::Results all = rows.results();
    EXPECT_EQ(rows.results(on_threads(3)), all);
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2}) {
      const IsaLimit limit(isa);
      EXPECT_EQ(rows.results(), all);
    }
  }
}

/// Rows that end where memory does.
TEST(CrossEntropyTest, TouchesNothingBehindTheLastRow) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<std::byte*>(pages) + page, page, PROT_NONE), 0);
  auto* const end = static_cast<float*>(pages) + page / sizeof(float);
  const std::int64_t last_class = 0;
  const float gradient = 1;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const IsaLimit limit(isa);
    for (std::int64_t k = 1; k < 34; ++k) {
      float* const row = end - k;
      std::fill(row, end, 0.0F);
      float loss = 0, log_sum = 0;
      cross_entropy({row, &last_class, 1, k}, &loss, &log_sum, on_caller);
      EXPECT_NEAR(log_sum, std::log(static_cast<float>(k)), 1e-6);
      std::vector<float> logits(static_cast<std::size_t>(k));
      cross_entropy_backward({logits.data(), &last_class, 1, k}, &log_sum, &gradient, row,
                             on_caller);
      EXPECT_NEAR(row[k - 1], 1.0F / static_cast<float>(k) - (k == 1 ? 1.0F : 0.0F), 1e-6);
    }
  }
  munmap(pages, 2 * page);
}

TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  LossRows rows(2, 20, 1);
  for (float& x : rows.logits) x += 1e4F;
  const LossRows::Results made = rows.results();
  for (const float loss : made.losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(CrossEntropyTest, ARowWithoutAClassIsNamed) {
  LossRows rows(5, 4, 1);
  rows.classes[3] = 4;
  try {
    rows.results();
    FAIL() << "class 4 of 4";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(error.message().find("row 3"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace trireme::kernels
